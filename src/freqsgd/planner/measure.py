"""All that ``freqsgd bench`` measures."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn

from freqsgd.errors import DataError
from freqsgd.nn.fm import FM
from freqsgd.optimizers import Rule
from freqsgd.planner.speed import KIND, SCHEMA
from freqsgd.recommender.engine import Engine
from freqsgd.recommender.settings import Settings
from freqsgd.runs.machine import available_memory, describe_machine
from freqsgd.tables.clicks import ClickLog, ClickStream
from freqsgd.tables.stream import batches
from freqsgd.torchrec.group import join
from freqsgd.torchrec.layout import Layout
from freqsgd.torchrec.limits import require_torchrec

__all__ = [
    "FULL",
    "QUICK",
    "BenchSizes",
    "Contender",
    "Examples",
    "click_log",
    "copy_rates",
    "engine_steps",
    "examples",
    "group_of_one",
    "loopback_rates",
    "measure",
    "torch_steps",
    "torchrec_steps",
]

_FLOAT = 4
_Progress = Callable[[str, int, int | None], None]


@dataclass(frozen=True)
class BenchSizes:
    """How much is measured.

    Args:
        features: of an example
        tokens: of a feature, and rows of its table; a quarter of these where vectors have 64
            numbers, not 16
        batch_size: examples of a step
        rounds: of which the median is taken
        copied: bytes that are copied
        sent: bytes that are sent
    """

    features: int
    tokens: int
    batch_size: int
    rounds: int
    copied: int
    sent: int

    @property
    def memory(self) -> int:
        """About the most bytes that are held: tables and states of all contenders, a batch."""
        rows, batch = self.features * self.tokens, self.features * self.batch_size
        return rows * _FLOAT * (17 + 1 + 2 * 17 + 20 + 3) + 20 * batch * _FLOAT * 20


FULL = BenchSizes(26, 1_000_000, 65_536, rounds=5, copied=1 << 29, sent=1 << 26)
"""Tables that no cache holds: what ``freqsgd bench`` measures."""
QUICK = BenchSizes(26, 10_000, 4_096, rounds=3, copied=1 << 25, sent=1 << 22)
"""Tables that fit the cache, for a first look."""


def measure(sizes: BenchSizes = FULL, progress: _Progress | None = None) -> dict[str, Any]:
    """The rates of this machine: what :func:`~freqsgd.planner.measure.write_bench` keeps.

    Args:
        sizes: how much is measured
        progress: called with what is being measured, how much is done and how much there is
    """
    _check_memory(sizes)
    begin = time.perf_counter()
    tell = progress or (lambda what, done, total: None)
    torchrec, no_torchrec = _torchrec_version()
    rates: list[dict[str, Any]] = []
    with ExitStack() as stack:
        if torchrec is not None:
            stack.enter_context(group_of_one())
        for number, dim in enumerate((16, 64)):
            tell(f"steps, vectors of {dim}", number, 4)
            rates += _steps(sizes, dim, torchrec is not None)
    tell("copying", 2, 4)
    rates.append(_rate("copy", "bytes", copy_rates(sizes.copied, sizes.rounds)))
    tell("loopback", 3, 4)
    rates.append(_rate("loopback", "bytes", loopback_rates(sizes.sent, sizes.rounds)))
    return {
        "schema": SCHEMA,
        "kind": KIND,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": sizes != FULL,
        "machine": {
            **describe_machine(),
            "available_memory": available_memory(),
            "freqsgd": metadata.version("freqsgd"),
            "torchrec": torchrec,
            "no_torchrec": no_torchrec,
        },
        "sizes": asdict(sizes),
        "seconds": round(time.perf_counter() - begin, 1),
        "rates": rates,
    }


def _check_memory(sizes: BenchSizes) -> None:
    available = available_memory()
    if available is not None and sizes.memory > available:
        raise DataError(
            f"bench takes about {sizes.memory / 1e9:.1f} GB of memory, {available / 1e9:.1f} GB "
            "are available: freqsgd bench --quick takes less"
        )


def _torchrec_version() -> tuple[str | None, str | None]:
    """Or why it cannot be measured."""
    try:
        require_torchrec()
    except DataError as error:
        return None, str(error)
    return metadata.version("torchrec"), None


def _steps(sizes: BenchSizes, dim: int, torchrec: bool) -> list[dict[str, Any]]:
    """Rows looked up and updated in a second, by contenders that take turns."""
    rows = sizes.tokens * 16 // dim
    some = examples(sizes.features, sizes.tokens, sizes.batch_size, 6, rows)
    contenders, row_bytes = _contenders(some, dim, torchrec)
    found = _take_turns(contenders, sizes.rounds)
    return [
        _rate(what, "rows", [sizes.features * speed for speed in speeds])
        | {"dim": dim, "row_bytes": row_bytes[what], "table_rows": sizes.features * rows}
        for what, speeds in found.items()
    ]


def _contenders(
    some: Examples, dim: int, torchrec: bool
) -> tuple[dict[str, Contender], dict[str, int]]:
    """By name, with the bytes of their rows; torch's is only there to be compared with once."""
    short, padded = _FLOAT * (dim + 1), _FLOAT * Layout((), (), dim).row
    threads = torch.get_num_threads()
    contenders = {"cfsgd": engine_steps(some, FM(some.sizes, dim), "cfsgd", threads)}
    if torchrec:
        contenders["torchrec"] = torchrec_steps(some, dim, 2)
    if dim == 16:
        contenders["torch"] = torch_steps(some, dim, 1)
    return contenders, {"cfsgd": short, "torchrec": padded, "torch": short}


def _take_turns(contenders: Mapping[str, Contender], rounds: int) -> dict[str, list[float]]:
    """The speeds of each; the first round compiles and warms up."""
    speeds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds + 1):
        for name, run in contenders.items():
            speeds[name].append(run())
    return {name: found[1:] for name, found in speeds.items()}


def _rate(what: str, unit: str, found: Sequence[float]) -> dict[str, Any]:
    return {
        "what": what,
        "unit": unit,
        "per_second": median(found),
        "slowest": min(found),
        "fastest": max(found),
    }


Contender = Callable[[], float]  # takes some steps, and returns examples per second


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
        """Where a batch is."""
        return slice(number * self.batch_size, (number + 1) * self.batch_size)


def click_log(features: int, tokens: int, rows: int, days: int = 1) -> ClickLog:
    """Features of one size by power laws with exponents from 0.8 to 1.3."""
    exponents = tuple(np.linspace(0.8, 1.3, features).tolist())
    return ClickLog((tokens,) * features, exponents, days=days, rows=rows)


def examples(
    features: int, tokens: int, batch_size: int, number: int, rows: int | None = None
) -> Examples:
    """So many batches, hashed to tables of as many rows as there are tokens, or of ``rows``."""
    log = click_log(features, tokens, number * batch_size)
    stream = ClickStream(log, [rows or tokens] * features)
    taken = list(batches(stream.chunks(0, 1), batch_size))
    ids = np.concatenate([batch.ids for batch in taken])
    labels = np.concatenate([batch.labels for batch in taken])
    return Examples(stream, ids, labels, batch_size)


class Bags(nn.Module):
    """A factorization machine with an EmbeddingBag for each feature."""

    def __init__(self, sizes: Sequence[int], dim: int) -> None:
        super().__init__()
        self.dim = dim
        bound = (6 / (sum(sizes) + dim)) ** 0.5
        self.bias = nn.Parameter(torch.zeros(()))
        self.tables = nn.ModuleList(
            nn.EmbeddingBag.from_pretrained(
                torch.empty(size, dim + 1).uniform_(-bound, bound),
                freeze=False,
                mode="sum",
                sparse=True,
            )
            for size in sizes
        )

    def forward(self, ids: Tensor) -> Tensor:
        """The log odds of each example."""
        rows = torch.stack([table(ids[:, n : n + 1]) for n, table in enumerate(self.tables)], 1)
        vectors, linear = rows[..., : self.dim], rows[..., self.dim]
        pairs = vectors.sum(1).square().sum(1) - vectors.square().sum((1, 2))
        return self.bias + linear.sum(1) + pairs / 2


def torch_steps(some: Examples, dim: int, number: int) -> Contender:
    """Of torch: EmbeddingBag with sparse gradients, and Adagrad; it takes the first batches."""
    model = Bags(some.sizes, dim)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
    tokens, clicks = torch.from_numpy(some.ids).long(), torch.from_numpy(some.labels).float()

    def steps() -> float:
        start = time.perf_counter()
        for batch in map(some.batch, range(number)):
            optimizer.zero_grad()
            odds = model(tokens[batch])
            nn.functional.binary_cross_entropy_with_logits(odds, clicks[batch]).backward()
            optimizer.step()
        return number * some.batch_size / (time.perf_counter() - start)

    return steps


def engine_steps(some: Examples, model: FM, optimizer: str, threads: int) -> Contender:
    """Of the engine, over all batches."""
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


@contextmanager
def group_of_one() -> Iterator[None]:
    """The group that TorchRec needs, for as long as it is measured."""
    joined = dist.is_initialized()
    join()
    try:
        yield
    finally:
        if not joined:
            dist.destroy_process_group()


def torchrec_steps(some: Examples, dim: int, number: int) -> Contender:
    """Of the first batches, within :func:`group_of_one`."""
    from freqsgd.torchrec.trainer import ShardedTrainer

    rule = Rule("cfsgd", 0.05, count="batch")
    settings = Settings(dim=dim, batch_size=some.batch_size)
    trainer = ShardedTrainer(some.stream, rule, settings, "row-wise")
    trainer.begin()
    logits = np.empty(some.batch_size, np.float32)

    def steps() -> float:
        start = time.perf_counter()
        for batch in map(some.batch, range(number)):
            trainer.learn(some.ids[batch], some.labels[batch], logits)
        return number * some.batch_size / (time.perf_counter() - start)

    return steps


_TIMEOUT = 60.0  # seconds


def copy_rates(size: int, rounds: int) -> list[float]:
    """Bytes copied in a second, with all of torch's threads."""
    source, target = torch.ones(size, dtype=torch.uint8), torch.zeros(size, dtype=torch.uint8)
    target.copy_(source)
    rates = []
    for _ in range(rounds):
        start = time.perf_counter()
        target.copy_(source)
        rates.append(size / (time.perf_counter() - start))
    return rates


def loopback_rates(size: int, rounds: int) -> list[float]:
    """Bytes that each of two processes sends the other in a second, by gloo's all-to-all."""
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
    """What makes gloo use the interface of this machine alone."""
    names = [name for _, name in socket.if_nameindex() if name.startswith("lo")]
    return {"GLOO_SOCKET_IFNAME": names[0]} if names else {}


def _exchange(store: str, rank: int, size: int, rounds: int) -> list[float]:
    """One of the two: half of what it has is for the other."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", Path(store).as_uri(), rank=rank, world_size=2)
    source, target = torch.ones(2 * size, dtype=torch.uint8), torch.empty(2 * size).byte()
    rates = []
    for _ in range(rounds + 1):
        dist.barrier()
        start = time.perf_counter()
        dist.all_to_all_single(target, source)
        rates.append(size / (time.perf_counter() - start))
    dist.destroy_process_group()
    return rates[1:]


if __name__ == "__main__":
    _store, *_numbers = sys.argv[1:]
    print(*_exchange(_store, *map(int, _numbers)))
