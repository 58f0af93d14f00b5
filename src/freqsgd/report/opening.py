"""How a page begins and ends, as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape

from freqsgd.report.headline import Tile
from freqsgd.report.summary import Statement

__all__ = ["command_html", "footer_html", "opening_html", "statements_html"]


def opening_html(tiles: Iterable[Tile], statements: Iterable[Statement]) -> str:
    """The numbers and sentences that come first."""
    numbers = "".join(
        f'<div class="card tile"><dt>{escape(tile.title)}</dt>'
        f"<dd><strong>{escape(tile.value)}</strong><span>{escape(tile.note)}</span></dd></div>"
        for tile in tiles
    )
    return f'<dl class="tiles">{numbers}</dl>{statements_html(statements)}'


def statements_html(statements: Iterable[Statement]) -> str:
    """Topics, and what is said of each."""
    words = "".join(
        f"<div><dt>{escape(each.topic)}</dt><dd>{escape(each.text)}</dd></div>"
        for each in statements
    )
    return f'<dl class="summary card">{words}</dl>'


def command_html(command: str | None) -> str:
    """The command that makes all this again."""
    if command is None:
        return ""
    return f"<h3>To do it again</h3><pre><code>{escape(command)}</code></pre>"


def footer_html(parts: Sequence[str], created: str | None) -> str:
    """With what and when a page was made."""
    made = [f"made {moment(created)}"] if created else []
    return " · ".join(map(escape, ("Report by freqsgd", *parts, *made)))


def moment(written: str) -> str:
    """An ISO time to the minute; anything else as it is."""
    try:
        return f"{datetime.fromisoformat(written):%Y-%m-%d %H:%M %Z}".strip()
    except ValueError:
        return written
