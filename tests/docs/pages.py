"""The pages that people read, and the blocks of code in them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
_BLOCK = re.compile(
    r"^(?:<!-- not run\b(?P<marker>[^\n]*)-->\n)?```(?P<language>\w*)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    """A fenced block.

    Args:
        line: number of its first line of code
        marker: what follows "not run" in the comment right above; None: no such comment
    """

    language: str
    code: str
    line: int
    marker: str | None


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[Block]:
    text = page.read_text("utf-8")
    return [
        Block(found["language"], found["code"], _line(text, found.start("code")), found["marker"])
        for found in _BLOCK.finditer(text)
    ]


def prose(page: Path) -> str:
    """All but the blocks."""
    return _BLOCK.sub("", page.read_text("utf-8"))


def python_blocks(page: Path, run: bool) -> list[Block]:
    """Those that run as they stand, or those that are marked as not."""
    return [
        block
        for block in blocks(page)
        if block.language == "python" and (block.marker is None) == run
    ]


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1
