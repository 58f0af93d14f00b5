"""``freqsgd plan``."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import astuple
from rich.table import Table

from freqsgd.cli import options as opt
from freqsgd.cli.options import option, target, words
from freqsgd.cli.output import grid, print_json, screen
from freqsgd.cli.plan_size import quantity, workload
from freqsgd.cli.session import named_files
from freqsgd.documents import write_document
from freqsgd.documents.planner import Exchange, Plan, PlannedOptimizer, Prediction
from freqsgd.errors import DataError
from freqsgd.files import check_target
from freqsgd.planner.document import plan as make_plan
from freqsgd.planner.speed import read_bench
from freqsgd.planner.workload import PLANNED
from freqsgd.report.wording import count_of
from freqsgd.runs.machine import available_memory, byte_size

_INDENT = 14  # of statements, whose topics stand at the left
_PARTS = {
    "ids": "ids of tokens",
    "lengths": "how many there are",
    "rows": "rows or sums",
    "gradients": "their gradients",
    "others": "everything else",
    "total": "in all",
}


_in_size = partial(option, panel="Size")
_in_data = partial(option, panel="Size of what is there")
_in_hosts = partial(option, panel="Hosts")


def plan(
    context: typer.Context,
    features: Annotated[
        str | None, _in_size("Number of features; with --data, their columns: a,b,c.")
    ] = None,
    rows: Annotated[
        str | None, _in_size("Rows of the table of each feature, on average: 1e8, 100M.")
    ] = None,
    dim: Annotated[
        int | None,
        _in_size(
            "Dimension of the vectors (default: 64; with --hidden, --dataset or --data 16).", min=1
        ),
    ] = None,
    hidden: Annotated[
        str | None, _in_size("Sizes of DeepFM's hidden layers: 16,16 (default: none, an FM).")
    ] = None,
    batch_size: Annotated[
        str | None,
        _in_size(
            "Batch size over all hosts, in examples (default: 65536; with --dataset or --data "
            "1024)."
        ),
    ] = None,
    tokens_per_example: Annotated[
        str | None, _in_size("Tokens per example, in all features (default: one in each).")
    ] = None,
    examples: Annotated[str | None, _in_size("Number of training examples: 2.5e10.")] = None,
    model: Annotated[
        Path | None, _in_data("Folder of a trained model whose sizes to take.")
    ] = None,
    dataset: Annotated[
        str | None, _in_data("Dataset: movielens-1m, criteo, clicks-small, ...")
    ] = None,
    path: Annotated[
        str | None, _in_data("Your own files, whose tokens are counted.", "--data")
    ] = None,
    label: Annotated[str | None, _in_data("Column of the label, which is not needed.")] = None,
    numeric: Annotated[str | None, _in_data("Columns of numbers, a,b,c.")] = None,
    separator: Annotated[str | None, _in_data("Separator of cells in text files.")] = None,
    columns: Annotated[
        str | None, _in_data("Names of all columns, a,b,c, for text files without a header line.")
    ] = None,
    hash_rows: Annotated[
        str | None, _in_data("Rows that tokens are hashed to, as in freqsgd stream train.")
    ] = None,
    host_memory: Annotated[
        str | None, _in_hosts("Memory per host: 1T, 512GiB (default: what is free here now).")
    ] = None,
    hosts: Annotated[
        int | None, _in_hosts("Number of hosts (default: as many as are needed).", min=1)
    ] = None,
    host_cores: Annotated[
        int | None, _in_hosts("Number of cores per host (default: as many as bench used).", min=1)
    ] = None,
    network: Annotated[
        str | None, _in_hosts("Bits a host sends per second: 25G (default: bench's loopback).")
    ] = None,
    optimizers: Annotated[str, _in_hosts("Optimizers to compare, a,b,c.")] = ",".join(PLANNED),
    bench: Annotated[
        Path | None, _in_hosts("Rates that freqsgd bench --out wrote (default: this machine's).")
    ] = None,
    out: Annotated[Path | None, target("File for the plan as JSON.")] = None,
    force: opt.Force = False,
    as_json: opt.AsJson = False,
) -> None:
    """Estimate memory, hosts and training time for tables of any size.

    Example: freqsgd plan --features 800 --rows 1e8 --dim 64 --host-memory 1T
    """
    work = workload(context)
    found_memory = _memory(host_memory)
    bytes_sent = None if network is None else quantity("--network", network, unit="bit") / 8
    if out is not None:
        check_target(out, force=force, inputs=named_files(context))
    found = make_plan(
        work,
        host_memory=found_memory,
        hosts=hosts,
        cores=host_cores,
        network=bytes_sent,
        optimizers=_optimizers(optimizers),
        bench=read_bench(bench),
    )
    if out is not None:
        write_document(out, found)
    if as_json:
        print_json(found)
    else:
        print_plan(found, free_now=host_memory is None)


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
    console = screen(110)
    size, host = plan.size, plan.host
    deep = "" if size.hidden is None else f", network {list(size.hidden)}"
    print(
        f"\n{count_of(size.features, 'feature')}, {size.rows:,} rows in all, vectors of "
        f"{size.dim}{deep}; {count_of(size.tokens_per_example, 'token')} per example, "
        f"batches of {size.batch_size:,}"
    )
    alone, unpadded = plan.one_process, size.dim + 1
    padded = size.row_width > unpadded
    print(
        f"weights {byte_size(plan.weights)} in TorchRec"
        + (f", whose rows of {unpadded} numbers are padded to {size.row_width}" if padded else "")
    )
    print(
        f"one process of freqsgd{', without padding,' if padded else ''} would take "
        f"{byte_size(alone.bytes)}, which {'fits' if alone.fits else 'does not fit'} a host of "
        f"{byte_size(host.memory)}{', which is free here now' if free_now else ''}"
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
    titles = ("bytes a row", "state", "with weights", "hosts, row-wise", "table-wise")
    table = grid("optimizer", "keeps", *titles, text=("optimizer", "keeps"))
    for each in rows:
        table.add_row(
            each.optimizer,
            each.keeps,
            f"{each.state_per_row:,}",
            byte_size(each.state),
            byte_size(each.total),
            *(
                "-" if hosts is None else f"{hosts:,}{'*' if each.hypothetical else ''}"
                for hosts in each.hosts.values()
            ),
        )
    return table


def _exchange_table(ways: Mapping[str, Exchange | None]) -> Table:
    table = grid("", *ways)
    for part, name in _PARTS.items():
        table.add_row(
            name,
            *("-" if sent is None else byte_size(getattr(sent, part)) for sent in ways.values()),
        )
    times = [None if sent is None else sent.seconds for sent in ways.values()]
    if any(times):
        table.add_row(
            "at --network", *("-" if time is None else f"{_about(time)} s" for time in times)
        )
    return table


def _prediction_table(predictions: Sequence[Prediction]) -> Table:
    titles = ("hosts", "row updates", "sums", "exchange", "step", "examples/s", "training")
    table = grid("", *titles)
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


def _hours(hours: float) -> str:
    return f"{_about(hours / 24)} days" if hours >= 48 else f"{_about(hours)} hours"


def _about(value: float) -> str:
    """Format in two digits, which is more than a prediction knows."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.1e}")
    return f"{rounded:,.{max(1 - math.floor(math.log10(rounded)), 0)}f}"
