"""Estimate memory, hosts, exchange and speed: the document of ``freqsgd plan``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from msgspec import structs

from freqsgd.documents import SCHEMA
from freqsgd.documents.planner import (
    Bench,
    Exchange,
    OneProcess,
    Plan,
    PlannedHost,
    PlannedOptimizer,
    PlannedSize,
    Prediction,
)
from freqsgd.errors import DataError
from freqsgd.optimizers import COUNTER_SGD
from freqsgd.planner.speed import EXCHANGES, Fleet, predict_hosts, predict_one_process
from freqsgd.planner.workload import (
    PLANNED,
    RESERVE,
    ROW_WISE,
    ROWS_SENT,
    TABLE_WISE,
    Workload,
    held,
    hosts_needed,
    state_of_row,
    usable_memory,
)
from freqsgd.runs.machine import byte_size
from freqsgd.torchrec.limits import FLOAT, MAX_STEPS

__all__ = ["plan"]

_PARTS = {  # of a step
    "updates": "row updates",
    "buffers": "filling and reading sums of the whole batch",
    "exchange": "the exchange",
}
_Needed = Mapping[str, int | None]  # hosts by way of sharding; None: no number of them holds it
_Exchanges = Mapping[str, Exchange | None]


def plan(
    work: Workload,
    *,
    host_memory: int,
    hosts: int | None = None,
    cores: int | None = None,
    network: float | None = None,
    optimizers: Sequence[str] = tuple(PLANNED),
    bench: Bench | None = None,
) -> Plan:
    """Estimate what a workload takes; the speed only where rates were measured.

    Args:
        work: what is to be trained
        host_memory: bytes of each host
        hosts: how many there are; None: as many as TorchRec's COUNTER_SGD needs
        cores: of each host; None: as many as were measured
        network: bytes that a host sends in a second; None: as measured over loopback
        optimizers: to be compared, of :data:`~freqsgd.planner.workload.PLANNED`
        bench: rates that ``freqsgd bench`` measured
    """
    usable = usable_memory(host_memory)
    needed = _hosts(COUNTER_SGD, work, usable)
    alone = work.one_process().total
    fits = alone <= usable
    if not fits and not any(needed.values()):
        raise DataError(_too_small(work, host_memory, usable))
    fleet = Fleet(hosts or needed[ROW_WISE] or needed[TABLE_WISE] or 1, cores, network)
    exchanges = _exchanges(work, fleet, usable)
    predictions, missing = _predictions(work, fleet, exchanges, bench, needed, fits)
    return Plan(
        schema=SCHEMA,
        size=PlannedSize(
            features=len(work.tables),
            rows=work.rows,
            tokens_per_example=work.looked_up // work.batch_size,
            dim=work.dim,
            row_width=work.row_width,
            hidden=work.hidden,
            batch_size=work.batch_size,
            examples=work.examples,
        ),
        host=PlannedHost(
            memory=host_memory,
            reserve=RESERVE,
            workspace=work.workspace(ROW_WISE, fleet.hosts),
            usable=usable,
            cores=cores,
            network_bytes_per_second=network,
        ),
        weights=work.weights,
        one_process=OneProcess(alone, fits),
        optimizers=tuple(_optimizer(name, work, usable) for name in optimizers),
        hosts=fleet.hosts,
        exchange=exchanges,
        rates=None if bench is None else bench.measured,
        predictions=tuple(predictions),
        no_prediction=missing,
        bottleneck=_bottleneck(fleet, exchanges, needed, fits, predictions),
        notes=tuple(_notes(work, exchanges, needed, optimizers)),
    )


def _optimizer(name: str, work: Workload, usable: int) -> PlannedOptimizer:
    state = state_of_row(name, work)
    return PlannedOptimizer(
        optimizer=name,
        keeps=PLANNED[name].state_of(linear=False).words,
        state_per_row=state,
        state=state * work.rows,
        total=work.weights + state * work.rows,
        hosts=_hosts(name, work, usable),
        hypothetical=PLANNED[name].fbgemm != name,
    )


def _hosts(optimizer: str, work: Workload, usable: int) -> dict[str, int | None]:
    """Return the fewest that hold it, by way of sharding."""
    of_row = work.row_bytes + state_of_row(optimizer, work)
    return {how: hosts_needed(how, work, of_row, usable) for how in (ROW_WISE, TABLE_WISE)}


def _too_small(work: Workload, host_memory: int, usable: int) -> str:
    table = max(work.tables) * (work.row_bytes + state_of_row(COUNTER_SGD, work))
    single = _hosts(COUNTER_SGD, replace(work, batch_size=1), usable)
    smaller = "smaller batches" if any(single.values()) else "a smaller dimension (--dim)"
    return (
        f"a host of {byte_size(host_memory)} is too small, however many there are: row-wise "
        f"each has sums and gradients of the whole batch, {byte_size(3 * work.outputs)}, and "
        f"rows of {len(work.tables):,} tables; table-wise the largest table takes "
        f"{byte_size(table)}, beside a batch; take {smaller} or more memory"
    )


def _exchanges(work: Workload, fleet: Fleet, usable: int) -> dict[str, Exchange | None]:
    of_row = work.row_bytes + state_of_row(COUNTER_SGD, work)
    found: dict[str, Exchange | None] = {}
    for how, sent in EXCHANGES.items():
        idle = how == TABLE_WISE and fleet.hosts > len(work.tables)
        if idle or held(how, work, of_row, fleet.hosts) > usable:
            found[how] = None
            continue
        exchange = sent(work, fleet.hosts)
        seconds = None if fleet.network is None else exchange.total / fleet.network
        found[how] = structs.replace(exchange, seconds=seconds)
    return found


def _predictions(
    work: Workload,
    fleet: Fleet,
    exchanges: _Exchanges,
    bench: Bench | None,
    needed: _Needed,
    fits: bool,
) -> tuple[list[Prediction], str | None]:
    """Return what is predicted, and why something is not."""
    if bench is None:
        return [], "no speed is predicted: freqsgd bench measures the rates that are missing"
    found = [predict_one_process(work, fleet, bench)] if fits else []
    if fits and fleet.hosts == 1:
        return found, None
    ways = [(how, sent) for how in (ROW_WISE, TABLE_WISE) if (sent := exchanges[how])]
    if not ways:
        asked = f"{_asked(needed)} are needed, not {fleet.hosts:,}"
        return found, f"no speed of TorchRec is predicted: {asked}"
    if not bench.rows("torchrec"):
        return found, "no speed of TorchRec is predicted: freqsgd bench did not measure it"
    return found + [predict_hosts(how, work, sent, fleet, bench) for how, sent in ways], None


def _asked(needed: _Needed) -> str:
    """Say how many hosts memory asks for."""
    told = [f"{number:,} hosts {how}" for how, number in needed.items() if number is not None]
    return " or ".join(told) or "larger hosts"


def _bottleneck(
    fleet: Fleet,
    exchanges: _Exchanges,
    needed: _Needed,
    fits: bool,
    predictions: Sequence[Prediction],
) -> str:
    """Say what limits training, and what would shorten a step."""
    memory = "not memory: one process holds it" if fits else f"memory asks for {_asked(needed)}"
    if not fits and exchanges[ROW_WISE] is None and exchanges[TABLE_WISE] is None:
        return f"{memory}, not {fleet.hosts:,}"
    spread = [each for each in predictions if each.how in EXCHANGES and each.hosts > 1]
    if not spread:
        return memory if fits else f"{memory}; what takes the time of a step is not known"
    first = spread[0]
    part, most = max(structs.asdict(first.seconds).items(), key=lambda each: each[1])
    share = f"{most / first.step_seconds:.0%} of a {first.how} step"
    said = f"{memory}; {_PARTS[part]} would take {share}"
    if part == "updates":
        return f"{said}, which more hosts or cores shorten"
    if first.how == TABLE_WISE:
        return f"{said}, which more hosts shorten"
    sent = {how: each.total for how, each in exchanges.items() if each is not None}
    less = [
        f"{sent[ROW_WISE] / sent[how]:.1f} times less {words}"
        for how, words in ((TABLE_WISE, "table-wise"), (ROWS_SENT, "if rows were sent"))
        if how in sent
    ]
    return f"{said}, which more hosts do not shorten; to send would be {' and '.join(less)}"


def _notes(
    work: Workload, exchanges: _Exchanges, needed: _Needed, optimizers: Sequence[str]
) -> list[str]:
    """Return limits, and advice; docs/scaling.md explains the arithmetic."""
    told = work.examples is not None
    notes = {
        "counter-sgd: FBGEMM's COUNTER_SGD, which is cfsgd counting batches; freqsgd stream train "
        "--engine torchrec trains with it": COUNTER_SGD in optimizers,
        "*: no engine shards the counter of cfsgd, TorchRec trains with counter-sgd": (
            any(PLANNED[name].counts for name in optimizers)
        ),
        "row-wise sharding fits no number of these hosts": needed[ROW_WISE] is None,
        "whole tables are too few for these hosts, or too large: no table-wise sharding": (
            exchanges[TABLE_WISE] is None
        ),
        "counters of cfsgd have 4 bytes up to 2^31 counts, then 8: see --examples": not told,
        f"FBGEMM's counters end at {MAX_STEPS:,} batches, fewer than these examples make: take "
        "larger batches": (work.examples or 0) > MAX_STEPS * work.batch_size,
        "cfsgd counts occurrences in 8 bytes here; batches (--count batch) need 4": (
            told and state_of_row("cfsgd", work) > FLOAT
        ),
    }
    return [note for note, holds in notes.items() if holds]
