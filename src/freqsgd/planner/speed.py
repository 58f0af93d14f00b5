"""Predict what a step sends and how long it takes, from rates that ``freqsgd bench`` measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import astuple

from freqsgd.documents import read_document
from freqsgd.documents.planner import Bench, Exchange, Prediction, StepSeconds
from freqsgd.errors import DataError
from freqsgd.files import read_file, read_json
from freqsgd.planner.workload import ROW_WISE, ROWS_SENT, TABLE_WISE, Workload
from freqsgd.tables.catalog import cache_folder
from freqsgd.torchrec.limits import FLOAT


def stored_bench() -> Path:
    """Return the file of this machine's rates, in the cache folder."""
    return cache_folder() / "bench.json"


def read_bench(path: Path | None = None) -> Bench | None:
    """Read what was measured; None if nothing was stored yet, and no other file is named."""
    if path is None and not stored_bench().exists():
        return None
    path = path or stored_bench()
    try:
        content = read_json(read_file(path), dict)
    except DataError:
        raise
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise DataError(
            f"{path} is damaged or not what freqsgd bench writes: run freqsgd bench again"
        ) from error
    return read_document(content, Bench, str(path))


# ---- bytes that hosts send -----------------------------------------------------------------------

_ID, _LENGTH = 8, 4  # bytes, as freqsgd gives them to TorchRec
_SPLITS = 3 * 8  # that a host tells each other one: its numbers of ids, of lengths, of examples


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


EXCHANGES: dict[str, Callable[[Workload, int], Exchange]] = {
    ROW_WISE: row_wise_sums,
    ROWS_SENT: row_wise_rows,
    TABLE_WISE: table_wise,
}


def _exchange(work: Workload, hosts: int, told: float, rows: int, gradients: int) -> Exchange:
    """Return the exchange of hosts that are told the numbers of tokens of ``told`` examples."""
    ids = _to_others(work.looked_up / hosts * _ID, hosts)
    lengths = _to_others(told * work.columns * _LENGTH, hosts) + _SPLITS * (hosts - 1)
    norms = 4 * FLOAT * sum(work.hidden or ())  # two sums for each, and their gradients
    reduced = 2 * _to_others(work.dense + norms, hosts)  # an all-reduce sends everything twice
    others = reduced + _to_others(FLOAT * work.batch_size, hosts)
    parts = (ids, lengths, rows, gradients, others)
    return Exchange(*parts, total=sum(parts))


def _to_others(size: float, hosts: int) -> int:
    """Return the part of what all hosts get that the others get."""
    return round(size * (hosts - 1) / hosts)


# ---- seconds of a step ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Fleet:
    """The hosts.

    Args:
        hosts: their number
        cores: of each; None: as many as threads were measured
        network: bytes that a host sends in a second; None: as measured over loopback
    """

    hosts: int
    cores: int | None = None
    network: float | None = None


def predict_hosts(
    how: str, work: Workload, exchange: Exchange, fleet: Fleet, bench: Bench
) -> Prediction:
    """Predict a step of TorchRec, whose hosts exchange so much.

    Row-wise, each host fills and reads sums and gradients of the whole batch, as fast as memory is
    copied.
    """
    sums = 2 * work.outputs * (fleet.hosts - 1) / fleet.hosts if how == ROW_WISE else 0.0
    seconds = StepSeconds(
        updates=_updates(work, fleet, bench, "torchrec", work.row_bytes),
        buffers=sums / bench.bytes_per_second("copy"),
        exchange=exchange.total / (fleet.network or bench.bytes_per_second("loopback")),
    )
    return _prediction(how, work, fleet, bench, seconds)


def predict_one_process(work: Workload, fleet: Fleet, bench: Bench) -> Prediction:
    """Predict a step of the engine of freqsgd, on one host."""
    alone = Fleet(1, fleet.cores)
    seconds = StepSeconds(_updates(work, alone, bench, "cfsgd", FLOAT * (work.dim + 1)))
    return _prediction("one process", work, alone, bench, seconds)


def seconds_of_row(points: Sequence[tuple[int, float]], row_bytes: int) -> float:
    """Return the time of a row by the line through what was measured.

    A longer row never takes less than a shorter one.

    Args:
        points: bytes of a row, and rows looked up and updated in a second
        row_bytes: of the row
    """
    (short, fast), (long, slow) = min(points), max(points)
    if short == long:
        return row_bytes / short / fast
    slope = max((1 / slow - 1 / fast) / (long - short), 0.0)
    return max(1 / fast + slope * (row_bytes - short), min(1 / fast, 1 / slow))


def _updates(work: Workload, fleet: Fleet, bench: Bench, engine: str, row_bytes: int) -> float:
    rows, threads = work.looked_up / fleet.hosts, bench.machine.threads
    seconds = seconds_of_row(bench.rows(engine), row_bytes)
    return rows * seconds * threads / (fleet.cores or threads)


def _prediction(
    how: str, work: Workload, fleet: Fleet, bench: Bench, seconds: StepSeconds
) -> Prediction:
    threads, sent = bench.machine.threads, bench.bytes_per_second("loopback")
    cores = fleet.cores or threads
    assumptions = {
        f"updates are in proportion to cores: measured on {threads}, hosts have {cores}": (
            cores != threads
        ),
        f"each host sends {sent / 1e9:.2f} GB/s, as over loopback: --network is not given": (
            fleet.hosts > 1 and fleet.network is None
        ),
        "the time of DeepFM's network is left out": work.hidden is not None,
        "the rates are of bench --quick, whose tables fit the cache: too high": bench.quick,
    }
    step = sum(astuple(seconds))
    speed = work.batch_size / step
    return Prediction(
        how=how,
        hosts=fleet.hosts,
        seconds=seconds,
        examples_per_second=speed,
        assumptions=tuple(text for text, holds in assumptions.items() if holds),
        step_seconds=step,
        hours=None if work.examples is None else work.examples / speed / 3600,
    )
