"""What was found in some data, on the screen."""

from __future__ import annotations

import textwrap
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from freqsgd.cli.neighbor_table import shown
from freqsgd.report.inspection import read_inspection
from freqsgd.report.inspection_words import summarize

__all__ = ["print_inspection"]

_LONGEST_NAME = 24
_NBSP = "\N{NO-BREAK SPACE}"
_INDENT = 16  # of statements, whose topics stand at the left
_COLUMNS = (
    "once: share of the tokens that were seen once. effective: so many equally frequent tokens "
    "would be as unlikely to repeat. top 1%, 10%: share of the occurrences that these tokens "
    "have. tail: the nearer of two fits to rank n. median, 90%: SGD's iterations over FA-SGD's to "
    "an equal bound, for the token that so many tokens are more frequent than (in brackets: how "
    "often it was seen)."
)


def print_inspection(document: dict[str, Any]) -> None:
    """A row per field, then the statements of the report."""
    console = Console(highlight=False, width=None if Console().is_terminal else 100)
    data, *others = summarize(read_inspection(document))
    print(f"\n{_fill(data.text, console.width)}")
    console.print(_table(document["fields"]))
    print()
    for topic, text in [("Columns", _COLUMNS), *((each.topic, each.text) for each in others)]:
        print(_fill(f"{topic:{_INDENT}}{text}", console.width))


def _fill(text: str, width: int) -> str:
    """Lines, without what could steer the terminal or keep them from being broken."""
    spaced = text.replace(_NBSP, " ")
    plain = "".join(one if one.isprintable() else repr(one)[1:-1] for one in spaced)
    return textwrap.fill(plain, width, subsequent_indent=" " * _INDENT)


def _table(fields: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("field", no_wrap=True, max_width=_LONGEST_NAME, overflow="ellipsis")
    for name in ("tokens", "once", "effective", "top 1%", "10%", "tail", "median", "90%"):
        table.add_column(name, justify="right", no_wrap=True)
    for field in fields:
        promise = field["promise"]
        table.add_row(
            Text(shown(field["name"])),
            f"{field['tokens']:,}",
            f"{field['singletons'] / field['tokens']:.0%}",
            f"{field['effective_tokens']:,.{0 if field['effective_tokens'] >= 100 else 1}f}",
            f"{field['top_1']:.0%}",
            f"{field['top_10']:.0%}",
            _tail(field["fit"]),
            _factor(promise["median"]),
            _factor(promise["p90"]),
        )
    return table


def _tail(fit: dict[str, Any]) -> str:
    """The better of the two fits."""
    if fit["family"] is None:
        return "-"
    return f"exp(-{fit['tau']:.2g} n)" if fit["family"] == "exponential" else f"n^-{fit['nu']:.2f}"


def _factor(promise: dict[str, Any]) -> str:
    """A ratio in three digits, or whole, and of how many occurrences it comes."""
    iterations = promise["iterations"]
    ratio = f"{iterations:.3g}" if iterations < 1000 else f"{iterations:,.0f}"
    return f"{ratio} x ({promise['count']:,})"
