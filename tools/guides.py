"""Fill the outputs of the guides from results/guides.json; with --check, only say whether they are up to date.

    python tools/guides.py --run first-graph own-data   # run these guides, store what they print, copy their pictures
    python tools/guides.py --run                        # all of them (MURP_DATA names the folder with WN18RR)
    python tools/guides.py

A guide is a page under docs/guides/. Its ``sh`` and ``python`` blocks are run in order in one folder; what a block
prints is written after it where the page has a place for it, between ``<!-- output -->`` and ``<!-- end -->``. A
picture of the page that its commands made is copied beside the page. A ``python`` block that begins with the comment
``# NAME.py`` is a file of the reader's, which ``export PYTHONPATH=.`` lets Python find. Commands of murp run in
this process, so that PyTorch is imported once; ``murp explore`` is served until the guide's end.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import origins
import small_png

ROOT = Path(__file__).resolve().parent.parent
PAGES, STORED = ROOT / "docs" / "guides", ROOT / "results" / "guides.json"
# In the order in which a reader meets them.
GUIDES = (
    "first-graph",
    "own-data",
    "reading-results",
    "geometry-and-dimension",
    "hierarchies",
    "explorer",
    "own-model",
    "mathematics",
    "wn18rr",
)
BLOCK = re.compile(
    r"^```(?P<language>sh|python)\n(?P<code>.*?)^```\n(?P<shown>\n<!-- output -->\n(?P<output>.*?)<!-- end -->\n)?",
    re.DOTALL | re.MULTILINE,
)
MADE = re.compile(r"(<!-- made -->\n).*?(<!-- end -->)", re.DOTALL)
FILE = re.compile(r"# (\w+\.py)\n")
AFTER = re.compile(r"^<!-- after: (.+) -->$", re.MULTILINE)
SERVED = "http://127.0.0.1:8000"


class GuideError(Exception):
    """A command of a guide failed, or a page shows what was never run."""


@dataclass(frozen=True)
class Block:
    """A piece of a guide to be run, and what the page shows of its output (None: nothing)."""

    language: str
    code: str
    output: str | None


def page(name: str) -> str:
    """The text of a guide."""
    return (PAGES / f"{name}.md").read_text(encoding="utf-8")


def blocks(text: str) -> list[Block]:
    """What a page asks its reader to run."""
    found = (match.groupdict() for match in BLOCK.finditer(text))
    return [Block(b["language"], b["code"], b["output"] and _unfenced(b["output"])) for b in found]


def commands(code: str) -> list[str]:
    """The lines of a shell block, continued ones joined."""
    lines = code.replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def run(name: str, folder: Path, *, epochs: int | None = None) -> list[str]:
    """Run a guide in ``folder`` and return what each of its blocks printed.

    ``epochs`` stands in for every number of epochs in it, so that a test need not wait for a good model. What it says
    it comes ``after`` is trained first. Training that shows no output is not repeated where ``folder`` has its run.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.chdir(folder))
        for earlier in AFTER.findall(page(name)):
            for block in blocks(page(earlier)):
                for line in commands(_quickened(block.code, epochs)):
                    if line.startswith("murp train") and not _trained(line):
                        _murp(line)
        names: dict[str, Any] = {}
        address = SERVED
        printed = []
        for block in blocks(page(name)):
            code = _quickened(block.code, epochs).replace(SERVED, address)
            with contextlib.redirect_stdout(io.StringIO()) as out:
                if (file := FILE.match(code)) is not None:
                    Path(file[1]).write_text(code, encoding="utf-8")
                elif block.language == "python":
                    exec(compile(code, f"{name}.md", "exec"), names)
                for line in commands(code) if block.language == "sh" else ():
                    if line == "export PYTHONPATH=.":
                        stack.enter_context(_importing(folder))
                        continue
                    if line.startswith("murp explore") and "--export" not in line:
                        told = stack.enter_context(_served(line))
                        address = told.split()[1].rstrip("/")
                        print(told, end="")
                    elif block.output is None and line.startswith("murp train") and _trained(line):
                        continue
                    elif line.startswith("murp "):
                        # A picture of an earlier run in this folder is no reason to stop.
                        _murp(line.replace("murp plot ", "murp plot --force ", 1))
                    else:
                        print(subprocess.run(["sh", "-c", line], check=True, stdout=-1, text=True).stdout, end="")
            printed.append(out.getvalue().replace(address, SERVED))
    return printed


@contextlib.contextmanager
def _importing(folder: Path) -> Iterator[None]:
    """Modules are found in ``folder`` too; what was imported from there is forgotten afterwards."""
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            if str(getattr(sys.modules[name], "__file__", None)).startswith(str(folder)):
                del sys.modules[name]


def _quickened(code: str, epochs: int | None) -> str:
    return code if epochs is None else re.sub(r"(--epochs |epochs=)\d+", rf"\g<1>{epochs}", code)


def _trained(line: str) -> bool:
    """Whether the run that a ``murp train`` would make is there."""
    words = shlex.split(line, comments=True)
    return Path(words[words.index("--out") + 1]).exists()


def _murp(line: str) -> None:
    """One command in this process."""
    from murp.cli.main import main

    words = shlex.split(line, comments=True)[1:]
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            status = main(words)
    except SystemExit as stop:
        status = int(stop.code or 0)
    if status:
        raise GuideError(f"{line}\nended with {status}: {complaint.getvalue()}")


@contextlib.contextmanager
def _served(line: str) -> Iterator[str]:
    """What an explorer on a free port prints."""
    words = shlex.split(line, comments=True)[1:]
    process = subprocess.Popen([sys.executable, "-m", "murp", *words, "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline()
    finally:
        process.terminate()
        process.wait()


def store(name: str, folder: Path) -> None:
    """Run a guide as it stands; keep what it printed, its pictures, and on what machine and when that was."""
    from murp.provenance import identity
    from murp.runs.stamp import stamp

    identity()  # of the code as it is now, not as it may be edited before the guide has run
    text = page(name)
    outputs = run(name, folder)
    stored = read()
    stored[name] = {
        **stamp(),
        "blocks": [
            {"code": block.code, "output": output}
            for block, output in zip(blocks(text), outputs, strict=True)
            if block.output is not None
        ],
    }
    ordered = {guide: stored[guide] for guide in GUIDES if guide in stored}
    STORED.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for picture in re.findall(r"!\[[^]]*\]\(([^/)]+)\)", text):
        small_png.write((folder / picture).read_bytes(), PAGES / picture)


def read() -> dict[str, Any]:
    """What was stored of every guide."""
    values: dict[str, Any] = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}
    return values


def filled(name: str) -> str:
    """The page with its outputs as they were stored."""
    stored = read().get(name, {"blocks": []})
    outputs = {block["code"]: block["output"] for block in stored["blocks"]}

    def replaced(match: re.Match[str]) -> str:
        if match["shown"] is None:
            return match[0]
        if match["code"] not in outputs:
            raise GuideError(f"{name}: never run as it stands now; `python tools/guides.py --run {name}`:\n{match[0]}")
        head = match[0].removesuffix(match["shown"])
        return f"{head}\n<!-- output -->\n```text\n{outputs[match['code']].strip(chr(10))}\n```\n<!-- end -->\n"

    text = BLOCK.sub(replaced, page(name))
    return MADE.sub(lambda match: match[1] + _made(stored) + "\n" + match[2], text)


def _made(stored: dict[str, Any]) -> str:
    here = stored["machine"]
    how = f"murp {here['murp']}, torch {here['torch']}, {here['device']}, {here['cores']} cores, {stored['date'][:10]}"
    how += f", {origins.said(stored, STORED.parent)}"
    return f"*All outputs and pictures on this page come from running it: {how}.*"


def _unfenced(output: str) -> str:
    return output.removeprefix("```text\n").removesuffix("```\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if an output is out of date")
    parser.add_argument("--run", nargs="*", choices=GUIDES, metavar="GUIDE", help="first run these, or all")
    parser.add_argument("--folder", type=Path, help="with --run: where; default: one for each, removed afterwards")
    options = parser.parse_args()
    if options.check:
        return int(any(filled(name) != page(name) for name in GUIDES))
    if options.run is not None:
        for name in options.run or GUIDES:
            # A guide shows what it does by itself, not what another one has left in its run.
            with tempfile.TemporaryDirectory() as scratch:
                store(name, options.folder or Path(scratch))
    origins.refresh(STORED.parent)
    for name in options.run or GUIDES:
        (PAGES / f"{name}.md").write_text(filled(name), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
