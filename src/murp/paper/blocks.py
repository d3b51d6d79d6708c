"""What a report is made of, headings, text, tables and pictures, and the two forms it is written in."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

STYLE = """
:root { color-scheme: light dark; --line: #8884; }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 80rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
td.long { text-align: left; white-space: normal; } p { max-width: 62rem; }
img { max-width: 100%; background: white; border-radius: 4px; }
figcaption { opacity: .8; font-size: .9rem; } code { font-size: .92em; }
"""

LONG = 18  # characters of a table's cell that is prose and not a figure


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
    """A header and rows of cells, ready to print; the first column is set left, the others right."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Picture:
    """A PNG file, beside which its SVG and PDF lie, with what it shows."""

    path: Path
    caption: str


Block = Heading | Text | Table | Picture


def markdown(blocks: Sequence[Block], folder: Path) -> str:
    """GitHub's Markdown; pictures are linked relative to ``folder``."""
    parts = []
    for block in blocks:
        match block:
            case Heading(text, level):
                parts.append("#" * level + " " + text)
            case Text(text):
                parts.append(text)
            case Table(header, rows):
                aligned = ["---", *["---:"] * (len(header) - 1)]
                lines = [header, aligned, *rows]
                parts.append("\n".join("| " + " | ".join(_cell(c) for c in line) + " |" for line in lines))
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
                parts.append(f"<h{level}>{_text(text)}</h{level}>")
            case Text(text):
                parts.append(f"<p>{_text(text)}</p>")
            case Table(header, rows):
                head = "".join(f'<th scope="col">{_text(cell)}</th>' for cell in header)
                body = "".join("<tr>" + "".join(map(_table_data, row)) + "</tr>" for row in rows)
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


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _table_data(content: str) -> str:
    """A figure stands at the right and whole; a sentence or a list of figures runs on over lines."""
    return f"<td{' class=long' if len(content) > LONG else ''}>{_text(content)}</td>"


def _text(text: str) -> str:
    """Escaped, with what stands between backticks as code and between ** as strong."""
    pieces = html.escape(text).split("`")
    marked = [f"<code>{piece}</code>" if i % 2 else _strong(piece) for i, piece in enumerate(pieces)]
    return "".join(marked)


def _strong(text: str) -> str:
    pieces = text.split("**")
    return "".join(f"<strong>{piece}</strong>" if i % 2 else piece for i, piece in enumerate(pieces))
