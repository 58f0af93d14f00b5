"""Neighbours on the screen, and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from freqsgd.vectors.vectors import Neighbor

__all__ = ["neighbors_json", "print_neighbors", "shown"]

Names = dict[str, str] | None


def neighbors_json(near: list[Neighbor], names: Names = None) -> list[dict[str, object]]:
    """The neighbours as JSON has them; with names, also theirs."""
    return [
        {
            "token": one.token,
            **({} if names is None else {"name": names.get(one.token)}),
            "cosine": one.cosine,
            "count": one.count,
        }
        for one in near
    ]


def print_neighbors(title: str, near: list[Neighbor], names: Names = None) -> None:
    """Print a title and a line per neighbour."""
    console = Console(highlight=False, width=None if Console().is_terminal else 1000)
    console.print(Text(title, "bold"), soft_wrap=True)
    console.print(_table(near, names))


def shown(text: str) -> str:
    """A text that keeps to its line and cannot steer the terminal."""
    return text if text.isprintable() else repr(text)


def _table(near: list[Neighbor], names: Names) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("rank", justify="right")
    table.add_column("token")
    if names is not None:
        table.add_column("name")
    table.add_column("cosine", justify="right", no_wrap=True)
    table.add_column("seen", justify="right", no_wrap=True)
    for rank, one in enumerate(near, start=1):
        name = [] if names is None else [Text(shown(names.get(one.token, "")))]
        seen = "-" if one.count is None else f"{one.count:,}"
        table.add_row(str(rank), Text(shown(one.token)), *name, f"{one.cosine:.4f}", seen)
    return table
