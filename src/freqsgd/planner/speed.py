"""Predict what a step sends and how long it takes, from rates that ``freqsgd bench`` measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from freqsgd.errors import DataError
from freqsgd.files import read_file, read_json
from freqsgd.planner.workload import ROW_WISE, Workload
from freqsgd.tables.catalog import cache_folder
from freqsgd.torchrec.limits import FLOAT

SCHEMA = 1
KIND = "rates of a machine"
Points = Sequence[tuple[int, float]]  # bytes of a row, rows looked up and updated in a second


# ---- measured rates ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rates:
    """What was measured on one machine.

    Args:
        measured: where and when
        threads: that were used
        cfsgd: of the engine, in one process
        torchrec: of TorchRec, in one process; none where it was not measured
        copied: bytes of memory copied in a second
        sent: bytes that each of two processes sends the other in a second, over loopback
        quick: whether tables were small, which is too fast
    """

    measured: str
    threads: int
    cfsgd: Points
    torchrec: Points
    copied: float
    sent: float
    quick: bool

    @classmethod
    def of(cls, bench: dict[str, Any]) -> Rates:
        """Return those of the document that ``freqsgd bench`` writes."""
        machine = bench["machine"]
        points: dict[str, list[tuple[int, float]]] = {}
        bytes_per_second: dict[str, float] = {}
        for each in bench["rates"]:
            what, rate = each["what"], float(each["per_second"])
            if not 0 < rate < math.inf:
                raise ValueError(f"{what} has the rate {rate}")
            if each["unit"] == "rows":
                row_bytes = _at_least_one("row_bytes", each["row_bytes"])
                points.setdefault(what, []).append((row_bytes, rate))
            else:
                bytes_per_second[what] = rate
        return cls(
            measured=f"{machine['cpu']}, {machine['threads']} threads, {bench['created'][:10]}",
            threads=_at_least_one("threads", machine["threads"]),
            cfsgd=points["cfsgd"],
            torchrec=points.get("torchrec", []),
            copied=bytes_per_second["copy"],
            sent=bytes_per_second["loopback"],
            quick=bool(bench["quick"]),
        )


def stored_bench() -> Path:
    """Return the file of this machine's rates, in the cache folder."""
    return cache_folder() / "bench.json"


def read_rates(path: Path | None = None) -> Rates | None:
    """Read what was measured; None if nothing was stored yet, and no other file is named."""
    if path is None and not stored_bench().exists():
        return None
    path = path or stored_bench()
    try:
        bench = read_json(read_file(path), dict)
        if bench["kind"] != KIND:
            raise TypeError(bench["kind"])
        if bench["schema"] != SCHEMA:
            raise DataError(
                f"{path} has schema {bench['schema']}, this version of freqsgd reads {SCHEMA}: run "
                "freqsgd bench again"
            )
        return Rates.of(bench)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    except DataError:
        raise
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{path} is damaged or not what freqsgd bench writes: run freqsgd bench again"
        ) from error


def _at_least_one(name: str, value: Any) -> int:
    if int(value) < 1:
        raise ValueError(f"{name} is {value}")
    return int(value)


# ---- bytes that hosts send -----------------------------------------------------------------------

_ID, _LENGTH = 8, 4  # bytes, as freqsgd gives them to TorchRec
_SPLITS = 3 * 8  # that a host tells each other one: its numbers of ids, of lengths, of examples


@dataclass(frozen=True)
class Exchange:
    """Bytes that a host sends in a step.

    Tokens are taken to be spread evenly, so that every host sends as much as it receives.

    Args:
        ids: of tokens, to the hosts that have their rows
        lengths: how many tokens there are of each, to the same
        rows: what was looked up, back to the hosts that have the examples
        gradients: of these
        others: log odds, gradients of all other weights, and sums for batch norm
    """

    ids: int
    lengths: int
    rows: int
    gradients: int
    others: int

    @property
    def total(self) -> int:
        """All of it."""
        return sum(asdict(self).values())


def row_wise_sums(work: Workload, hosts: int) -> Exchange:
    """Return that of bags whose tables are spread by rows, as ``EmbeddingBagCollection`` has them.

    Every host has a partial sum, most of them 0, for each column of the whole batch: a
    reduce-scatter adds them up and an all-gather brings the gradients back. Neither becomes less
    with more hosts, and gloo runs a reduce-scatter as an all-reduce, which is twice as much.
    """
    outputs = _to_others(work.outputs, hosts)
    return _exchange(work, hosts, work.batch_size, 2 * outputs, outputs)


def row_wise_rows(work: Workload, hosts: int) -> Exchange:
    """Return that of tables spread by rows where rows are sent, as ``EmbeddingCollection`` does."""
    rows = _to_others(work.looked_up * work.row_bytes / hosts, hosts)
    return _exchange(work, hosts, work.batch_size, rows, rows)


def table_wise(work: Workload, hosts: int) -> Exchange:
    """Return that of whole tables, as many on each host."""
    rows = _to_others(work.outputs / hosts, hosts)
    return _exchange(work, hosts, work.batch_size / hosts, rows, rows)


def _exchange(work: Workload, hosts: int, told: float, rows: int, gradients: int) -> Exchange:
    """Return the exchange of hosts that are told the numbers of tokens of ``told`` examples."""
    norms = 4 * FLOAT * sum(work.hidden or ())  # two sums for each, and their gradients
    reduced = 2 * _to_others(work.dense + norms, hosts)  # an all-reduce sends everything twice
    return Exchange(
        ids=_to_others(work.looked_up / hosts * _ID, hosts),
        lengths=_to_others(told * work.columns * _LENGTH, hosts) + _SPLITS * (hosts - 1),
        rows=rows,
        gradients=gradients,
        others=reduced + _to_others(FLOAT * work.batch_size, hosts),
    )


def _to_others(size: float, hosts: int) -> int:
    """Return the part of what all hosts get that the others get."""
    return round(size * (hosts - 1) / hosts)


# ---- seconds of a step ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Fleet:
    """The hosts.

    Args:
        hosts: how many
        cores: of each; None: as many as threads were measured
        network: bytes that a host sends in a second; None: as measured over loopback
    """

    hosts: int
    cores: int | None = None
    network: float | None = None


@dataclass(frozen=True)
class StepSeconds:
    """Where the time of a step goes; nothing is taken to overlap.

    Args:
        updates: looking rows up, the loss and its gradients, updating rows
        buffers: filling and reading the sums of the whole batch that each host has
        exchange: sending
    """

    updates: float
    buffers: float = 0.0
    exchange: float = 0.0

    @property
    def total(self) -> float:
        """All of it."""
        return self.updates + self.buffers + self.exchange


@dataclass(frozen=True)
class Prediction:
    """How fast training would be.

    Args:
        how: "one process" (the engine of freqsgd), or a way of sharding (TorchRec)
        hosts: how many
        seconds: of a step
        examples_per_second: of all hosts together
        assumptions: what is taken for something else; docs/scaling.md has those of all predictions
    """

    how: str
    hosts: int
    seconds: StepSeconds
    examples_per_second: float
    assumptions: tuple[str, ...]


def predict_hosts(
    how: str, work: Workload, exchange: Exchange, fleet: Fleet, rates: Rates
) -> Prediction:
    """Predict a step of TorchRec, whose hosts exchange so much.

    Row-wise, each host fills and reads sums and gradients of the whole batch, as fast as memory is
    copied.
    """
    sums = 2 * work.outputs * (fleet.hosts - 1) / fleet.hosts if how == ROW_WISE else 0.0
    seconds = StepSeconds(
        updates=_updates(work, fleet, rates.torchrec, rates.threads, work.row_bytes),
        buffers=sums / rates.copied,
        exchange=exchange.total / (fleet.network or rates.sent),
    )
    return _prediction(how, work, fleet, rates, seconds)


def predict_one_process(work: Workload, fleet: Fleet, rates: Rates) -> Prediction:
    """Predict a step of the engine of freqsgd, on one host."""
    alone = Fleet(1, fleet.cores)
    row_bytes = FLOAT * (work.dim + 1)
    seconds = StepSeconds(_updates(work, alone, rates.cfsgd, rates.threads, row_bytes))
    return _prediction("one process", work, alone, rates, seconds)


def seconds_of_row(points: Points, row_bytes: int) -> float:
    """Return the time of a row by the line through what was measured.

    A longer row never takes less than a shorter one.
    """
    (short, fast), (long, slow) = min(points), max(points)
    if short == long:
        return row_bytes / short / fast
    slope = max((1 / slow - 1 / fast) / (long - short), 0.0)
    return max(1 / fast + slope * (row_bytes - short), min(1 / fast, 1 / slow))


def _updates(work: Workload, fleet: Fleet, points: Points, threads: int, row_bytes: int) -> float:
    rows = work.looked_up / fleet.hosts
    return rows * seconds_of_row(points, row_bytes) * threads / (fleet.cores or threads)


def _prediction(
    how: str, work: Workload, fleet: Fleet, rates: Rates, seconds: StepSeconds
) -> Prediction:
    cores = fleet.cores or rates.threads
    assumptions = {
        f"updates are in proportion to cores: measured on {rates.threads}, hosts have {cores}": (
            cores != rates.threads
        ),
        f"each host sends {rates.sent / 1e9:.2f} GB/s, as over loopback: --network is not given": (
            fleet.hosts > 1 and fleet.network is None
        ),
        "the time of DeepFM's network is left out": work.hidden is not None,
        "the rates are of bench --quick, whose tables fit the cache: too high": rates.quick,
    }
    told = tuple(text for text, holds in assumptions.items() if holds)
    return Prediction(how, fleet.hosts, seconds, work.batch_size / seconds.total, told)
