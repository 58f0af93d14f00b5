"""A table whose rows the reader can sort by each column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

from freqsgd.report.tables import ABSENT, header

__all__ = ["Cells", "sortable_table"]

Cells = tuple[str, Callable[[float], str], Sequence[float | None]]  # title, how to show, values


def sortable_table(title: str, names: Sequence[tuple[str, str]], columns: Sequence[Cells]) -> str:
    """A row per name, given as it is shown and as it is sorted; a column of dashes is left out."""
    used = [column for column in columns if any(value is not None for value in column[2])]
    head = header(title, "ascending") + "".join(header(name, "descending") for name, _, _ in used)
    rows = "".join(
        f'<tr><th scope="row" data-value="{escape(key)}">{escape(name)}</th>'
        + "".join(cell(values[place], show) for _, show, values in used)
        + "</tr>"
        for place, (name, key) in enumerate(names)
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(title)}">'
        f'<table class="sortable"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


def cell(value: float | None, show: Callable[[float], str]) -> str:
    """One number, or a dash."""
    if value is None:
        return f"<td>{ABSENT}</td>"
    return f'<td data-value="{value!r}">{escape(show(value))}</td>'
