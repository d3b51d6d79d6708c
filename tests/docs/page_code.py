"""The code of a page of the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import guides

ROOT = Path(__file__).parents[2]


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def fenced(name: str, language: str) -> list[str]:
    return [block.code for block in guides.blocks(page(name)) if block.language == language]


def commands(name: str) -> list[str]:
    """Every command of murp on a page, in fences or indented, without its comment."""
    lines = [line.strip() for code in fenced(name, "sh") for line in guides.commands(code)]
    lines += re.findall(r"^    (murp .*)$", page(name), re.MULTILINE)
    lines = [re.sub(r"^torchrun .*?-m murp ", "murp ", line) for line in lines]
    return [line for line in lines if line.startswith("murp ")]
