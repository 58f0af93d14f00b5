"""All that ``freqsgd bench`` measures."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from statistics import median
from typing import Any

import torch

from freqsgd.bench.contenders import Contender, Examples, engine_steps, examples, torch_steps
from freqsgd.bench.store import KIND, SCHEMA
from freqsgd.bench.torchrec_steps import group_of_one, torchrec_steps
from freqsgd.bench.transfers import copy_rates, loopback_rates
from freqsgd.data.dataset import DataError
from freqsgd.distributed.layout import Layout
from freqsgd.distributed.libraries import require_torchrec
from freqsgd.nn.fm import FM
from freqsgd.training.available_memory import available_memory
from freqsgd.training.machine import describe_machine

__all__ = ["FULL", "QUICK", "BenchSizes", "measure"]

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
    """The rates of this machine: what :func:`~freqsgd.bench.write_bench` keeps.

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
