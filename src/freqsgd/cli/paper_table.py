"""Every figure of the paper and what came of it, on the screen."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

__all__ = ["print_paper"]

_DATA = {"real": "real", "stand-in": "generated", "none": "missing", "simulated": "simulated"}
_STYLES = {"agrees": "green", "agrees in part": "yellow", "differs": "red"}
_WIDE = 110  # columns that a table needs; below, figures are listed one by one
_INDENT = 10


def print_paper(document: Mapping[str, Any], names: Iterable[str]) -> None:
    """A row per figure that was asked for; then the runs that did not come to their end."""
    console = Console(highlight=False, width=None if Console().is_terminal else 120)
    asked = set(names)
    figures = [figure for figure in document["figures"] if figure["name"] in asked]
    console.print()
    if console.width >= _WIDE:
        console.print(_table(figures))
    else:
        for figure in figures:
            _stack(figure, console)
    wanted = dict.fromkeys(run for figure in figures for run in figure["runs"])
    _print_troubles({name: document["runs"][name] for name in wanted}, console)


def _table(figures: list[Mapping[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0), expand=True)
    table.add_column("figure", width=13)
    table.add_column("the paper says", ratio=3)
    table.add_column("measured", ratio=5)
    table.add_column("verdict", width=14)
    table.add_column("data", width=9)
    for figure in figures:
        table.add_row(
            figure["name"],
            Text(figure["brief"]),
            Text(_measured(figure)),
            Text(figure["verdict"], _STYLES.get(figure["verdict"], "dim")),
            _DATA[figure["data"]],
        )
    return table


def _stack(figure: Mapping[str, Any], console: Console) -> None:
    """A figure on lines of its own."""
    verdict, data = figure["verdict"], _DATA[figure["data"]]
    head = Text(f"{figure['name']:<{_INDENT}} ", "bold")
    head.append(verdict, _STYLES.get(verdict, "dim"))
    head.append(f" ({data} data)")
    console.print(head)
    for topic, text in (("paper", figure["brief"]), ("measured", _measured(figure))):
        first, rest = f"  {topic:<{_INDENT - 1}}", " " * (_INDENT + 1)
        filled = textwrap.fill(text, console.width, initial_indent=first, subsequent_indent=rest)
        console.print(Text(filled))


def _measured(figure: Mapping[str, Any]) -> str:
    """How many rules hold, and what was measured of the first that does not, or of the first."""
    rules = figure["rules"]
    known = [rule for rule in rules if rule["holds"] is not None]
    if not known:
        return "-"
    failed = [rule for rule in known if not rule["holds"]]
    shown = (failed or known)[0]
    where = f"{shown['run']}: " if len(figure["runs"]) > 1 else ""
    text = f"{where}{shown['measured']}"
    if len(rules) == 1:
        return text
    held = f"{len(known) - len(failed)} of {len(rules)} rules hold"
    return f"{held}; {'against it: ' if failed else ''}{text}"


def _print_troubles(runs: Mapping[str, Mapping[str, Any]], console: Console) -> None:
    """Runs without results, and why; a sentence that several share is said once."""
    reasons: dict[str, list[str]] = {}
    for name, run in runs.items():
        if run["why"]:
            state = "generated data" if run["status"] == "done" else run["status"]
            reasons.setdefault(f"{state}: {run['why']}", []).append(name)
    if reasons:
        console.print()
    for reason, names in reasons.items():
        console.print(Text(f"{', '.join(names)}: {reason}"), soft_wrap=True)
