"""Tables as rows of cells, which the page writes as HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

ABSENT = "\N{EN DASH}"
ASCENDING, DESCENDING = "ascending", "descending"
Item = TypeVar("Item")


@dataclass(frozen=True)
class Cell:
    """What a cell shows.

    Args:
        text: its words
        key: by what its column is sorted; None puts it last
        best: the best of its column
        mark: colour of the dot before the text
        link: address that the text leads to, within the page or beside it
    """

    text: str
    key: float | str | None = None
    best: bool = False
    mark: str = ""
    link: str = ""


@dataclass(frozen=True)
class Table:
    """Rows under a head.

    Args:
        head: titles of the columns
        rows: cells; a row begins with what it is about
        label: what the table holds, for those who cannot see it
        kind: ``"data"`` of numbers, ``"settings"`` or ``"words"`` of text
        first: by column, the direction in which a first click sorts; none: it cannot be sorted
        title: a heading above the table
        note: a remark below it
        folded: words that stand for the table until it is opened
    """

    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    label: str = "Table of data"
    kind: str = "data"
    first: Sequence[str] = ()
    title: str = ""
    note: str = ""
    folded: str = ""


@dataclass(frozen=True)
class Column(Generic[Item]):
    """A number that every item of a table may have."""

    title: str
    value: Callable[[Item], float | None]
    show: Callable[[float], str]
    best: Callable[[Iterable[float]], float] | None = None  # max or min, where one is better


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[str | Cell | None]],
    *,
    kind: str = "data",
    label: str = "",
    title: str = "",
    note: str = "",
    folded: str = "",
) -> Table:
    """Return a table of text; None becomes a dash."""
    cells = [
        [each if isinstance(each, Cell) else Cell(each or ABSENT) for each in row] for row in rows
    ]
    label = label or f"Table of {kind}"
    return Table(head, cells, label, kind, title=title, note=note, folded=folded)


def sortable_table(
    title: str,
    items: Sequence[tuple[Cell, Item]],
    columns: Iterable[Column[Item]],
    *,
    label: str,
    note: str = "",
) -> Table:
    """Return a table with a row per item, named by its cell, that readers can sort by any column.

    Columns that no item fills are left out. The best of a column is marked, also several times.
    """
    used = [one for one in columns if any(one.value(item) is not None for _, item in items)]
    made = [_cells(column, [item for _, item in items]) for column in used]
    rows = [[name, *cells] for (name, _), *cells in zip(items, *made, strict=True)]
    head = [title, *(column.title for column in used)]
    directions = [DESCENDING if column.best is max else ASCENDING for column in used]
    first = [ASCENDING, *directions]
    return Table(head, rows, label, first=first, note=note)


def _cells(column: Column[Item], items: Sequence[Item]) -> list[Cell]:
    """Return a column; what is shown like the best is marked like it."""
    values = [column.value(item) for item in items]
    known = [value for value in values if value is not None]
    several = column.best is not None and len(items) > 1
    best = column.show(column.best(known)) if column.best and several else None
    return [
        Cell(ABSENT)
        if value is None
        else Cell(column.show(value), value, best=column.show(value) == best)
        for value in values
    ]


def shown(value: float | None, show: Callable[[float], str]) -> str | None:
    """Return a number that may be missing as text."""
    return None if value is None else show(value)
