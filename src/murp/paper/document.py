"""The parts of a report (headings, text, tables, pictures), and the two forms in which it is written."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from murp.paper.contents import anchor, contents
from murp.tables import table

STYLE = """
:root { color-scheme: light dark; --line: #8884; }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 80rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .5rem; border-bottom: 1px solid var(--line); text-align: right; }
th { vertical-align: bottom; } td { vertical-align: top; white-space: nowrap; }
.text { text-align: left; } td.long { white-space: normal; min-width: 11rem; } p { max-width: 62rem; }
th:first-child, td:first-child { position: sticky; left: 0; background: Canvas; }
figure { margin: 0; overflow-x: auto; } img { max-width: 100%; background: white; border-radius: 4px; }
figcaption { opacity: .8; font-size: .9rem; } code { font-size: .92em; }
@media (max-width: 40rem) {
  th:first-child, td:first-child { white-space: normal; overflow-wrap: anywhere; min-width: 7rem; max-width: 8rem; }
  img { max-width: none; width: 40rem; }
}
"""

LONG = 18  # characters of a table's cell that is prose and not a number
WRAPPED = 30  # characters of a cell that may run on over lines


@dataclass(frozen=True)
class Heading:
    """A heading; the report's own title has level 1."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Text:
    """A paragraph; `code` between backticks is all the markup there is."""

    text: str


@dataclass(frozen=True)
class Table:
    """A header and rows of cells, ready to print: columns of numbers are set right, those of words left."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def words(self) -> list[bool]:
        """Which columns hold words: the first, and those with a cell that is too long for a number."""
        return [i == 0 or any(len(row[i]) > LONG for row in self.rows) for i in range(len(self.header))]


@dataclass(frozen=True)
class Picture:
    """A PNG file, beside which its SVG and PDF lie, with what it shows."""

    path: Path
    caption: str


@dataclass(frozen=True)
class Contents:
    """Links to every heading of level 2."""


Block = Heading | Text | Table | Picture | Contents


def markdown(blocks: Sequence[Block], folder: Path) -> str:
    """GitHub's Markdown; pictures are linked relative to ``folder``."""
    parts = []
    for block in blocks:
        match block:
            case Heading(text, level):
                parts.append("#" * level + " " + text)
            case Text(text):
                parts.append(text)
            case Contents():
                parts.append(contents(_titles(blocks)))
            case Table(header, rows):
                right = [i for i, words in enumerate(block.words()) if not words]
                parts.append(table(header, rows, right, format="markdown"))
            case Picture(path, caption):
                shown = path.relative_to(folder).as_posix()
                others = ", ".join(
                    f"[{kind}]({Path(shown).with_suffix('.' + kind).as_posix()})" for kind in ("svg", "pdf")
                )
                parts.append(f"![{caption}]({shown})\n\n{caption} ({others})")
    return "\n\n".join(parts) + "\n"


def page(title: str, blocks: Sequence[Block]) -> str:
    """One self-contained HTML page: no script, no request, pictures inside."""
    parts = []
    for block in blocks:
        match block:
            case Heading(text, level):
                parts.append(f'<h{level} id="{anchor(text)}">{_text(text)}</h{level}>')
            case Text(text):
                parts.append(f"<p>{_text(text)}</p>")
            case Contents():
                links = (f'<li><a href="#{anchor(title)}">{_text(title)}</a></li>' for title in _titles(blocks))
                parts.append(f"<ul>{''.join(links)}</ul>")
            case Table(header, rows):
                words = block.words()
                head = "".join(map(_table_head, header, words))
                body = "".join("<tr>" + "".join(map(_table_data, row, words)) + "</tr>" for row in rows)
                parts.append(
                    f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
                )
            case Picture(path, caption):
                data = base64.b64encode(path.read_bytes()).decode("ascii")
                shown = f'<img alt="{html.escape(caption)}" src="data:image/png;base64,{data}">'
                parts.append(f"<figure>{shown}<figcaption>{_text(caption)}</figcaption></figure>")
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _titles(blocks: Sequence[Block]) -> list[str]:
    return [block.text for block in blocks if isinstance(block, Heading) and block.level == 2]


def _table_head(content: str, words: bool) -> str:
    return f'<th scope="col"{" class=text" if words else ""}>{_text(content)}</th>'


def _table_data(content: str, words: bool) -> str:
    """A number is set right, on one line; a sentence or a list of numbers is wrapped."""
    kinds = [kind for kind, is_so in (("text", words), ("long", len(content) > WRAPPED)) if is_so]
    return f'<td class="{" ".join(kinds)}">{_text(content)}</td>' if kinds else f"<td>{_text(content)}</td>"


def _text(text: str) -> str:
    """Escaped, with what stands between backticks as code and between ** as strong."""
    pieces = html.escape(text).replace(" ± ", "&nbsp;±&nbsp;").split("`")
    marked = [f"<code>{piece}</code>" if i % 2 else _strong(piece) for i, piece in enumerate(pieces)]
    return "".join(marked)


def _strong(text: str) -> str:
    pieces = text.split("**")
    return "".join(f"<strong>{piece}</strong>" if i % 2 else piece for i, piece in enumerate(pieces))
