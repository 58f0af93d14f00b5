"""A plan, on the screen."""

from __future__ import annotations

import math
import textwrap
from typing import Any

from rich.console import Console
from rich.table import Table

from freqsgd.cli.numbers import count_of

__all__ = ["print_plan"]

_INDENT = 14  # of statements, whose topics stand at the left
_HOSTS = ("hosts, row-wise", "table-wise")
_PARTS = {
    "ids": "ids of tokens",
    "lengths": "how many there are",
    "rows": "rows or sums",
    "gradients": "their gradients",
    "others": "everything else",
    "total": "in all",
}


def print_plan(plan: dict[str, Any], *, free_now: bool = False) -> None:
    """Sizes, optimizers, exchange, prediction and what limits it."""
    console = Console(highlight=False, width=None if Console().is_terminal else 110)
    size, host = plan["size"], plan["host"]
    deep = "" if size["hidden"] is None else f", network {size['hidden']}"
    print(
        f"\n{count_of(size['features'], 'feature')}, {size['rows']:,} rows in all, vectors of "
        f"{size['dim']}{deep}; {count_of(size['tokens_per_example'], 'token')} per example, "
        f"batches of {size['batch_size']:,}"
    )
    alone = plan["one_process"]
    print(
        f"weights {_bytes(plan['weights'])}; one process of freqsgd would take "
        f"{_bytes(alone['bytes'])}, which {'fits' if alone['fits'] else 'does not fit'} a host of "
        f"{_bytes(host['memory'])}{', which is free here now' if free_now else ''}"
    )
    console.print(_optimizers(plan["optimizers"]))
    if plan["hosts"] > 1 and any(plan["exchange"].values()):
        print(f"\nsent by each of {plan['hosts']:,} hosts in a step")
        console.print(_exchange(plan["exchange"]))
    if plan["predictions"]:
        print(f"\nprediction, from rates measured on {plan['rates']}")
        console.print(_predictions(plan["predictions"]))
    assumed = [text for each in plan["predictions"] for text in each["assumptions"]]
    statements = {
        "Bottleneck": [plan["bottleneck"]],
        "Prediction": [] if plan["no_prediction"] is None else [plan["no_prediction"]],
        "Assumptions": list(dict.fromkeys(assumed)),
        "Arithmetic": plan["notes"],
    }
    print()
    for topic, texts in statements.items():
        for number, text in enumerate(texts):
            start = f"{'' if number else topic:{_INDENT}}"
            print(
                textwrap.fill(
                    text,
                    console.width,
                    initial_indent=start,
                    subsequent_indent=" " * (_INDENT + 2),
                    break_on_hyphens=False,
                )
            )


def _optimizers(rows: list[dict[str, Any]]) -> Table:
    table = _table("optimizer", "keeps", "bytes a row", "state", "with weights", *_HOSTS)
    for each in rows:
        table.add_row(
            each["optimizer"],
            each["keeps"],
            f"{each['state_per_row']:,}",
            _bytes(each["state"]),
            _bytes(each["total"]),
            *(_number(each, hosts) for hosts in each["hosts"].values()),
        )
    return table


def _number(optimizer: dict[str, Any], hosts: int | None) -> str:
    if hosts is None:
        return "-"
    return f"{hosts:,}*" if optimizer["hypothetical"] else f"{hosts:,}"


def _exchange(ways: dict[str, dict[str, Any] | None]) -> Table:
    table = _table("", *ways)
    for part, name in _PARTS.items():
        table.add_row(
            name, *("-" if sent is None else _bytes(sent[part]) for sent in ways.values())
        )
    if any(sent is not None and sent["seconds"] is not None for sent in ways.values()):
        times = ("-" if sent is None else f"{_about(sent['seconds'])} s" for sent in ways.values())
        table.add_row("at --network", *times)
    return table


def _predictions(predictions: list[dict[str, Any]]) -> Table:
    titles = ("hosts", "row updates", "sums", "exchange", "step", "examples/s", "training")
    table = _table("", *titles)
    for each in predictions:
        seconds = each["seconds"]
        table.add_row(
            each["how"],
            f"{each['hosts']:,}",
            *(f"{_about(seconds[part])} s" for part in ("updates", "buffers", "exchange")),
            f"{_about(each['step_seconds'])} s",
            f"about {_about(each['examples_per_second'])}",
            "-" if each["hours"] is None else _hours(each["hours"]),
        )
    return table


def _table(*titles: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, title in enumerate(titles):
        left = number == 0 or title == "keeps"
        table.add_column(title, justify="left" if left else "right", no_wrap=True)
    return table


def _bytes(count: int) -> str:
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:,.1f} {unit}"
    return f"{count} B"


def _hours(hours: float) -> str:
    return f"{_about(hours / 24)} days" if hours >= 48 else f"{_about(hours)} hours"


def _about(value: float) -> str:
    """In two digits, which is more than a prediction knows."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.1e}")
    return f"{rounded:,.{max(1 - math.floor(math.log10(rounded)), 0)}f}"
