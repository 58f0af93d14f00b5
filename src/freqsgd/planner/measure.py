"""Measure how fast this machine trains, copies and sends, for ``freqsgd bench`` and benchmarks."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import torch
import torch.distributed as dist
from msgspec import convert
from numpy.typing import NDArray

from freqsgd.documents import SCHEMA
from freqsgd.documents.planner import KIND, Bench, BenchMachine, BenchRate, BenchSizes
from freqsgd.errors import DataError
from freqsgd.nn.fm import FM
from freqsgd.optimizers import Rule
from freqsgd.recommender.engine import Engine
from freqsgd.recommender.settings import Pass, Settings
from freqsgd.runs.machine import available_memory, byte_size, describe_machine
from freqsgd.tables.dataset import batches
from freqsgd.tables.generated.click_log import ClickLog
from freqsgd.tables.generated.clicks import ClickStream
from freqsgd.torchrec.group import join
from freqsgd.torchrec.limits import FLOAT, require_torchrec, row_width

__all__ = ["FULL", "QUICK", "BenchSizes", "measure"]

_DIMS = (16, 64)  # lengths of vectors: plan draws a line through both
_TIMEOUT = 180.0  # seconds for two processes to start and exchange bytes
_Progress = Callable[[str, int, int | None], None]
Steps = Callable[[], float]
"""Takes some steps, and returns examples per second."""


FULL = BenchSizes(26, 1_000_000, 65_536, rounds=5, copied=1 << 29, sent=1 << 26)
"""Tables that no cache holds: what ``freqsgd bench`` measures."""
QUICK = BenchSizes(26, 10_000, 4_096, rounds=3, copied=1 << 25, sent=1 << 22)
"""Tables that fit the cache, for a first look."""


def measure(sizes: BenchSizes = FULL, progress: _Progress | None = None) -> Bench:
    """Measure how fast this machine trains, copies and sends.

    Args:
        sizes: how much is measured
        progress: called with what is being measured, how much is done and how much there is
    """
    available = available_memory()
    if available is not None and sizes.memory > available:
        raise DataError(
            f"bench takes about {byte_size(sizes.memory)} of memory, {byte_size(available)} "
            "are available: freqsgd bench --quick takes less"
        )
    begin = time.perf_counter()
    tell = progress or (lambda what, done, total: None)
    no_torchrec = None
    try:
        require_torchrec()
    except DataError as error:
        no_torchrec = str(error)
    rates: list[BenchRate] = []
    with nullcontext() if no_torchrec else group_of_one():
        for number, dim in enumerate(_DIMS):
            tell(f"steps, vectors of {dim}", number, 4)
            rates += _row_rates(sizes, dim, torchrec=no_torchrec is None)
    tell("copying", 2, 4)
    rates.append(_rate("copy", copy_rates(sizes.copied, sizes.rounds)))
    tell("loopback", 3, 4)
    rates.append(_rate("loopback", loopback_rates(sizes.sent, sizes.rounds)))
    return Bench(
        schema=SCHEMA,
        kind=KIND,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        quick=sizes != FULL,
        machine=BenchMachine(
            **describe_machine(),
            available_memory=available_memory(),
            freqsgd=metadata.version("freqsgd"),
            torchrec=None if no_torchrec else metadata.version("torchrec"),
            no_torchrec=no_torchrec,
        ),
        sizes=sizes,
        seconds=round(time.perf_counter() - begin, 1),
        rates=tuple(rates),
    )


def _row_rates(sizes: BenchSizes, dim: int, *, torchrec: bool) -> list[BenchRate]:
    """Measure rows looked up and updated in a second, by one process and by TorchRec in turns."""
    rows = sizes.tokens * _DIMS[0] // dim
    some = examples(sizes.features, sizes.tokens, sizes.batch_size, 6, rows)
    row_bytes = {"cfsgd": FLOAT * (dim + 1), "torchrec": FLOAT * row_width(dim)}
    threads = torch.get_num_threads()
    contenders = {"cfsgd": engine_steps(some, FM(some.sizes, dim), "cfsgd", threads)}
    if torchrec:
        contenders["torchrec"] = torchrec_steps(some, dim, 2)
    return [
        _rate(
            what,
            [sizes.features * speed for speed in speeds],
            dim=dim,
            row_bytes=row_bytes[what],
            table_rows=sizes.features * rows,
        )
        for what, speeds in take_turns(contenders, sizes.rounds).items()
    ]


def _rate(what: str, found: Sequence[float], **of_rows: int) -> BenchRate:
    content = {
        "what": what,
        "unit": "rows" if of_rows else "bytes",
        "per_second": median(found),
        "slowest": min(found),
        "fastest": max(found),
        **of_rows,
    }
    return convert(content, BenchRate)


def take_turns(contenders: Mapping[str, Steps], rounds: int) -> dict[str, list[float]]:
    """Return the speeds of each; the first round, which compiles and warms up, is left out."""
    speeds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds + 1):
        for name, run in contenders.items():
            speeds[name].append(run())
    return {name: found[1:] for name, found in speeds.items()}


# ---- steps of training ---------------------------------------------------------------------------


class Examples(NamedTuple):
    """Batches of generated clicks."""

    stream: ClickStream
    ids: NDArray[np.int32]
    labels: NDArray[np.uint8]
    batch_size: int

    @property
    def sizes(self) -> list[int]:
        """Rows of each feature's table."""
        return [field.size for field in self.stream.fields]

    def batch(self, number: int) -> slice:
        """Return where a batch is."""
        return slice(number * self.batch_size, (number + 1) * self.batch_size)


def click_log(features: int, tokens: int, rows: int, days: int = 1) -> ClickLog:
    """Return a log with features of one size, by power laws with exponents from 0.8 to 1.3."""
    exponents = tuple(np.linspace(0.8, 1.3, features).tolist())
    return ClickLog((tokens,) * features, exponents, days=days, rows=rows)


def examples(
    features: int, tokens: int, batch_size: int, number: int, rows: int | None = None
) -> Examples:
    """Draw batches, hashed to tables of as many rows as there are tokens, or of ``rows``."""
    log = click_log(features, tokens, number * batch_size)
    stream = ClickStream(log, [rows or tokens] * features)
    taken = list(batches(stream.chunks(0, 1), batch_size))
    ids = np.concatenate([batch.ids for batch in taken])
    labels = np.concatenate([batch.labels for batch in taken])
    return Examples(stream, ids, labels, batch_size)


def engine_steps(some: Examples, model: FM, optimizer: str, threads: int) -> Steps:
    """Return steps of the engine over all batches."""
    rule = Rule(optimizer, 0.05)
    engine = Engine(model, rule, batch_size=some.batch_size, threads=threads)
    order, logits = np.arange(len(some.ids)), np.empty(len(some.ids), np.float32)
    lrs = np.full(len(some.ids) // some.batch_size, rule.lr)

    def steps() -> float:
        start = time.perf_counter()
        for _ in engine.train(some.ids, some.labels, order, lrs, logits=logits):
            pass
        return len(some.ids) / (time.perf_counter() - start)

    return steps


def torchrec_steps(
    some: Examples, dim: int, number: int, sharding: str = "row-wise", lr: float = 0.05
) -> Steps:
    """Return steps of TorchRec over the first batches, on the ranks of the group."""
    from freqsgd.torchrec.trainer import ShardedRun

    rule = Rule("cfsgd", lr, count="batch")
    settings = Settings(dim=dim, batch_size=some.batch_size)
    trainer = ShardedRun(some.stream, rule, settings, Pass(), None, sharding)
    trainer.begin()
    logits = np.empty(some.batch_size, np.float32)

    def steps() -> float:
        dist.barrier()
        start = time.perf_counter()
        for batch in map(some.batch, range(number)):
            trainer.learn(some.ids[batch], some.labels[batch], logits)
        dist.barrier()
        return number * some.batch_size / (time.perf_counter() - start)

    return steps


@contextmanager
def group_of_one() -> Iterator[None]:
    """Join the group that TorchRec needs, for as long as it is measured."""
    joined = dist.is_initialized()
    join()
    try:
        yield
    finally:
        if not joined:
            dist.destroy_process_group()


# ---- bytes ---------------------------------------------------------------------------------------


def copy_rates(size: int, rounds: int) -> list[float]:
    """Measure bytes copied in a second, with all of torch's threads."""
    source, target = torch.ones(size, dtype=torch.uint8), torch.zeros(size, dtype=torch.uint8)

    def copy() -> float:
        start = time.perf_counter()
        target.copy_(source)
        return size / (time.perf_counter() - start)

    return take_turns({"copy": copy}, rounds)["copy"]


def loopback_rates(size: int, rounds: int) -> list[float]:
    """Measure bytes that each of two processes sends the other in a second, by gloo."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "freqsgd.planner.measure", str(Path(folder) / "store")]
        processes = [
            subprocess.Popen(
                [*command, str(rank), str(size), str(rounds)],
                env=os.environ | _loopback(),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(2)
        ]
        try:
            answers = [process.communicate(timeout=_TIMEOUT) for process in processes]
        except subprocess.TimeoutExpired:
            raise DataError("two processes could not exchange bytes over loopback") from None
        finally:
            for process in processes:
                process.kill()
                process.wait()
    for process, (_, said) in zip(processes, answers, strict=True):
        if process.returncode:
            reason = (said.strip().splitlines() or ["it was killed"])[-1]
            raise DataError(f"two processes could not exchange bytes over loopback: {reason}")
    return [float(word) for word in answers[0][0].split()]


def _loopback() -> dict[str, str]:
    """Return what makes gloo use the interface of this machine alone."""
    names = [name for _, name in socket.if_nameindex() if name.startswith("lo")]
    return {"GLOO_SOCKET_IFNAME": names[0]} if names else {}


def _exchange(store: str, rank: int, size: int, rounds: int) -> list[float]:
    """Measure in one of the two processes; half of what it has is for the other."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", Path(store).as_uri(), rank=rank, world_size=2)
    source, target = torch.ones(2 * size, dtype=torch.uint8), torch.empty(2 * size).byte()

    def send() -> float:
        dist.barrier()
        start = time.perf_counter()
        dist.all_to_all_single(target, source)
        return size / (time.perf_counter() - start)

    rates = take_turns({"send": send}, rounds)["send"]
    dist.destroy_process_group()
    return rates


if __name__ == "__main__":
    _store, *_numbers = sys.argv[1:]
    print(*_exchange(_store, *map(int, _numbers)))
