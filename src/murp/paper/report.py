"""The report: Markdown, an HTML page and figures, from stored results and nothing else."""

from __future__ import annotations

from pathlib import Path

from murp.commands import command
from murp.errors import RunError
from murp.files import write_text
from murp.paper import ablations, claims, history, methods, pictures, relations, tables
from murp.paper.document import Block, Contents, Heading, Text, markdown, page
from murp.paper.evidence import Evidence, decimals
from murp.provenance import ROOT

TITLE = "Multi-relational Poincaré Graph Embeddings, reproduced"


def write(out: Path, folder: Path) -> list[Path]:
    """Write ``reproduction.md`` and ``reproduction.html`` into ``folder``, figures beside them; what was written."""
    if not any(out.glob("*.json")):
        run = command("paper", "run", "all", "--out", out)
        raise RunError(f"{out} holds no results. Run `{run}` first, or name another --out.")
    text, html = folder / "reproduction.md", folder / "reproduction.html"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        content = blocks(Evidence(out), folder / "reproduction")
        write_text(text, markdown(content, folder))
        write_text(html, page(TITLE, content))
    except OSError as error:
        raise RunError(f"could not write into {folder}: {error.strerror}. Choose another --to.") from error
    except (ArithmeticError, AttributeError, LookupError, StopIteration, TypeError, ValueError) as error:
        raise RunError(
            f"a result in {out} is not as `murp paper run` stores it ({error!r}). Remove the file you changed, "
            "and run its item again."
        ) from error
    return [text, html]


def code_warnings(out: Path) -> list[str]:
    """Ask git about the code that the stored results name, keep its answers beside them; what there is to warn of."""
    results = Evidence(out).results()
    return history.warnings(results, history.refresh(out, results.values(), ROOT)) if results else []


def blocks(evidence: Evidence, figures: Path) -> list[Block]:
    """The headline, then everything that is stored, in the paper's order, and where it comes from."""
    return [
        Heading(TITLE, 1),
        *headline(evidence),
        Contents(),
        *claims.claims(evidence),
        Heading("How it was measured"),
        *methods.method(evidence),
        *tables.table1(evidence),
        *pictures.figure3a(evidence, figures),
        *pictures.figure3b(evidence, figures),
        *ablations.table2(evidence),
        *relations.table3(evidence),
        *pictures.table3_bars(evidence, figures),
        *pictures.figure4(evidence, figures),
        *pictures.figure5(evidence, figures),
        *tables.nell(evidence),
        *pictures.figure6(evidence, figures),
        *relations.hierarchy(evidence),
        *methods.subject_removed(evidence),
        *methods.flaws(evidence),
        *methods.diverged(evidence),
        *methods.origins(evidence),
    ]


def headline(evidence: Evidence) -> list[Block]:
    """The result in a few sentences."""
    items = [(name, item) for name in tables.CLOSE if (item := evidence.item(name)) is not None]
    cells = [tables.compared(evidence, item["cells"], name) for name, item in items]
    near = [f"{met} of {all_of_them} MRR values of {title}" for title, met, all_of_them in cells if all_of_them]
    holds, partly, fails = claims.counts(evidence)
    parts = ["We trained the models of the paper again and compared every table and figure with the printed one."]
    if near:
        limits = " and ".join(decimals(limit) for limit in tables.CLOSE.values())
        parts.append(f"**{' and '.join(near)} are at most {limits} below the printed ones.**")
    if holds or partly or fails:
        parts.append(
            f"Of {holds + partly + fails} claims of the paper, {holds} hold, {partly} hold in part or cannot be "
            f"decided with these runs, and {fails} do not hold."
        )
    return [Text(" ".join(parts))]
