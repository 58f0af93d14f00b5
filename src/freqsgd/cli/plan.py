"""``freqsgd plan``."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from msgspec.structs import astuple
from rich.console import Console
from rich.table import Table

from freqsgd.cli.numbers import count_of, quantity
from freqsgd.cli.options import option, takes, words
from freqsgd.cli.plan_size import size_options
from freqsgd.cli.session import named_files, target
from freqsgd.documents import write_document
from freqsgd.documents.planner import Exchange, Plan, PlannedOptimizer, Prediction
from freqsgd.errors import DataError
from freqsgd.files import check_target
from freqsgd.planner.document import plan as make_plan
from freqsgd.planner.speed import read_bench
from freqsgd.planner.workload import PLANNED, Workload
from freqsgd.runs.machine import available_memory

__all__ = ["plan"]

_HOSTS, _OUTPUT = "Hosts", "Output"
_INDENT = 14  # of statements, whose topics stand at the left
_PARTS = {
    "ids": "ids of tokens",
    "lengths": "how many there are",
    "rows": "rows or sums",
    "gradients": "their gradients",
    "others": "everything else",
    "total": "in all",
}


def host_options(
    host_memory: Annotated[
        str | None,
        option("Of each host: 1T, 512GiB (default: what is free here now).", panel=_HOSTS),
    ] = None,
    hosts: Annotated[
        int | None, option("How many (default: as many as are needed).", panel=_HOSTS)
    ] = None,
    host_cores: Annotated[
        int | None, option("Of each host (default: as many as bench used).", panel=_HOSTS)
    ] = None,
    network: Annotated[
        str | None,
        option("Bits a host sends in a second: 25G (default: bench's loopback).", panel=_HOSTS),
    ] = None,
    optimizers: Annotated[str, option("To compare.", panel=_HOSTS)] = ",".join(PLANNED),
    bench: Annotated[
        Path | None,
        option("Rates that freqsgd bench --out wrote (default: this machine's).", panel=_HOSTS),
    ] = None,
) -> dict[str, Any]:
    """Return what :func:`freqsgd.planner.document.plan` takes of the hosts."""
    for name, value in (("--hosts", hosts), ("--host-cores", host_cores)):
        if value is not None and value < 1:
            raise DataError(f"{name} must be at least 1, got {value}")
    return {
        "host_memory": _memory(host_memory),
        "hosts": hosts,
        "cores": host_cores,
        "network": None if network is None else quantity("--network", network, unit="bit") / 8,
        "optimizers": _optimizers(optimizers),
        "bench": read_bench(bench),
    }


@takes(work=size_options, there=host_options)
def plan(
    context: typer.Context,
    *,
    out: Annotated[
        Path | None, target("File for the plan as JSON.", rich_help_panel=_OUTPUT)
    ] = None,
    force: Annotated[bool, option("Replace a file that exists.", "--force", panel=_OUTPUT)] = False,
    as_json: Annotated[bool, option("Print JSON.", "--json", panel=_OUTPUT)] = False,
    work: Workload,
    there: dict[str, Any],
) -> None:
    """Estimate memory, hosts and training time for tables of any size.

    Example: freqsgd plan --features 800 --rows 1e8 --dim 64 --host-memory 1T
    """
    if out is not None:
        check_target(out, force=force, inputs=named_files(context))
    found = make_plan(work, **there)
    if out is not None:
        write_document(out, found)
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(found), indent=1).decode())
    else:
        print_plan(found, free_now=context.params["host_memory"] is None)


def _memory(text: str | None) -> int:
    if text is not None:
        return quantity("--host-memory", text, unit="B")
    available = available_memory()
    if available is None:
        raise DataError("how much memory this machine has is not known: say --host-memory")
    return available


def _optimizers(text: str) -> list[str]:
    names = list(dict.fromkeys(words(text)))
    for name in names:
        if name not in PLANNED:
            raise DataError(f"unknown optimizer {name!r}: known are {', '.join(PLANNED)}")
    if not names:
        raise DataError("--optimizers names none")
    return names


def print_plan(plan: Plan, *, free_now: bool = False) -> None:
    """Print sizes, optimizers, exchange, prediction and limits; ``free_now``: memory is ours."""
    console = Console(highlight=False, width=None if Console().is_terminal else 110)
    size, host = plan.size, plan.host
    deep = "" if size.hidden is None else f", network {list(size.hidden)}"
    print(
        f"\n{count_of(size.features, 'feature')}, {size.rows:,} rows in all, vectors of "
        f"{size.dim}{deep}; {count_of(size.tokens_per_example, 'token')} per example, "
        f"batches of {size.batch_size:,}"
    )
    alone = plan.one_process
    print(
        f"weights {_bytes(plan.weights)}; one process of freqsgd would take "
        f"{_bytes(alone.bytes)}, which {'fits' if alone.fits else 'does not fit'} a host of "
        f"{_bytes(host.memory)}{', which is free here now' if free_now else ''}"
    )
    console.print(_optimizer_table(plan.optimizers))
    if plan.hosts > 1 and any(plan.exchange.values()):
        print(f"\nsent by each of {plan.hosts:,} hosts in a step")
        console.print(_exchange_table(plan.exchange))
    if plan.predictions:
        print(f"\nprediction, from rates measured on {plan.rates}")
        console.print(_prediction_table(plan.predictions))
    assumed = [text for each in plan.predictions for text in each.assumptions]
    statements = {
        "Bottleneck": [plan.bottleneck],
        "Prediction": [plan.no_prediction] if plan.no_prediction else [],
        "Assumptions": list(dict.fromkeys(assumed)),
        "Notes": plan.notes,
    }
    print()
    lines = textwrap.TextWrapper(console.width, break_on_hyphens=False)
    lines.subsequent_indent = " " * (_INDENT + 2)
    for topic, texts in statements.items():
        for number, text in enumerate(texts):
            lines.initial_indent = f"{'' if number else topic:{_INDENT}}"
            print(lines.fill(text))


def _optimizer_table(rows: Sequence[PlannedOptimizer]) -> Table:
    table = table_of(
        "optimizer",
        "keeps",
        "bytes a row",
        "state",
        "with weights",
        "hosts, row-wise",
        "table-wise",
    )
    for each in rows:
        table.add_row(
            each.optimizer,
            each.keeps,
            f"{each.state_per_row:,}",
            _bytes(each.state),
            _bytes(each.total),
            *(
                "-" if hosts is None else f"{hosts:,}{'*' if each.hypothetical else ''}"
                for hosts in each.hosts.values()
            ),
        )
    return table


def _exchange_table(ways: Mapping[str, Exchange | None]) -> Table:
    table = table_of("", *ways)
    for part, name in _PARTS.items():
        table.add_row(
            name, *("-" if sent is None else _bytes(getattr(sent, part)) for sent in ways.values())
        )
    times = [None if sent is None else sent.seconds for sent in ways.values()]
    if any(times):
        table.add_row(
            "at --network", *("-" if time is None else f"{_about(time)} s" for time in times)
        )
    return table


def _prediction_table(predictions: Sequence[Prediction]) -> Table:
    titles = ("hosts", "row updates", "sums", "exchange", "step", "examples/s", "training")
    table = table_of("", *titles)
    for each in predictions:
        table.add_row(
            each.how,
            f"{each.hosts:,}",
            *(f"{_about(part)} s" for part in astuple(each.seconds)),
            f"{_about(each.step_seconds)} s",
            f"about {_about(each.examples_per_second)}",
            "-" if each.hours is None else _hours(each.hours),
        )
    return table


def table_of(*titles: str) -> Table:
    """Return an empty table; numbers stand at the right."""
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
    """Format in two digits, which is more than a prediction knows."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.1e}")
    return f"{rounded:,.{max(1 - math.floor(math.log10(rounded)), 0)}f}"
