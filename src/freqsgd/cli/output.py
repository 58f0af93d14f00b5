"""Numbers, names and tables as commands print them."""

from __future__ import annotations

from collections.abc import Collection

import msgspec
from rich.console import Console
from rich.table import Table


def screen(width: int) -> Console:
    """Return a console for results, of this width where they do not go to a terminal."""
    return Console(highlight=False, width=None if Console().is_terminal else width)


def grid(*titles: str, text: Collection[str] = ()) -> Table:
    """Return an empty table: the first column stands at the left, those of text may be broken."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in titles:
        if title in text:
            table.add_column(title)
        else:
            left = title == titles[0] and not text
            table.add_column(title, justify="left" if left else "right", no_wrap=True)
    return table


def number(value: float | None) -> str:
    """Format a score: four decimals, or six digits of a large number; "-" if there is none."""
    if value is None:
        return "-"
    return f"{value:.4f}" if abs(value) < 100 else f"{value:.6g}"


def shown(text: str) -> str:
    """Return a text that keeps to its line and cannot steer the terminal."""
    return text if text.isprintable() else repr(text)


def print_json(document: msgspec.Struct) -> None:
    """Print a document as JSON."""
    print(msgspec.json.format(msgspec.json.encode(document), indent=1).decode())
