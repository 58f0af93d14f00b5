"""``freqsgd plan``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from freqsgd.cli.numbers import quantity
from freqsgd.cli.options import option, takes, words
from freqsgd.cli.plan_size import size_options
from freqsgd.cli.plan_table import print_plan
from freqsgd.cli.session import named_files, target
from freqsgd.errors import DataError
from freqsgd.files import check_target, write_json
from freqsgd.planner.document import plan as make_plan
from freqsgd.planner.speed import Rates, read_rates
from freqsgd.planner.workload import KEPT, Workload
from freqsgd.runs.machine import available_memory

__all__ = ["plan"]

_HOSTS, _OUTPUT = "Hosts", "Output"


class Hosts(NamedTuple):
    """What there is to train on, and with; memory that was not given is what is free now."""

    memory: int
    free_now: bool
    number: int | None
    cores: int | None
    network: float | None
    optimizers: list[str]
    rates: Rates | None


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
    optimizers: Annotated[str, option("To compare.", panel=_HOSTS)] = ",".join(KEPT),
    bench: Annotated[
        Path | None,
        option("Rates that freqsgd bench --out wrote (default: this machine's).", panel=_HOSTS),
    ] = None,
) -> Hosts:
    """The hosts."""
    for name, value in (("--hosts", hosts), ("--host-cores", host_cores)):
        if value is not None and value < 1:
            raise DataError(f"{name} must be at least 1, got {value}")
    return Hosts(
        memory=_memory(host_memory),
        free_now=host_memory is None,
        number=hosts,
        cores=host_cores,
        network=None if network is None else quantity("--network", network, unit="bit") / 8,
        optimizers=_optimizers(optimizers),
        rates=read_rates(bench),
    )


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
    there: Hosts,
) -> None:
    """Reckon the memory, hosts and time that tables of any size take.

    Example: freqsgd plan --features 800 --rows 1e8 --dim 64 --host-memory 1T
    """
    if out is not None:
        check_target(out, force=force, inputs=named_files(context))
    found = make_plan(
        work,
        host_memory=there.memory,
        hosts=there.number,
        cores=there.cores,
        network=there.network,
        optimizers=there.optimizers,
        rates=there.rates,
    )
    if out is not None:
        write_json(out, found)
    if as_json:
        print(json.dumps(found, indent=1))
    else:
        print_plan(found, free_now=there.free_now)


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
        if name not in KEPT:
            raise DataError(f"unknown optimizer {name!r}: known are {', '.join(KEPT)}")
    if not names:
        raise DataError("--optimizers names none")
    return names
