"""One pass over a click log: how fast, against torch and against what memory allows; how good.

    python -m benchmarks.one_pass [speed] [stream] [quality] [--tokens N] [--examples N]

26 features of a million tokens each (power laws, exponents from 0.8 to 1.3), hashed to tables of
a million rows, d=16, batches of 65,536, two threads; by default 20 million examples.

- speed: batches that are in memory. torch has a table (EmbeddingBag, sparse) for each feature and
  Adagrad; "limit" touches every row of a sample once to read it and every distinct row of a batch
  once to write it (benchmarks/row_touch.py). All take turns in one run.
- stream: `fit_stream` over the generator and over the same days as Parquet; memory on the way.
- quality: lifetime NE of CF-SGD and Adagrad, each at the best of five rates.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.figures import figure
from benchmarks.row_touch import touch_rows
from freqsgd.nn import FM
from freqsgd.optimizers import Rule
from freqsgd.planner.measure import Examples, Steps, click_log, engine_steps, examples, take_turns
from freqsgd.recommender.one_pass import fit_stream
from freqsgd.recommender.settings import Pass, Settings
from freqsgd.tables import ClickLog, ClickStream
from freqsgd.tables.generated.clicks import write_clicks
from freqsgd.tables.loading import open_stream
from freqsgd.tables.spec import StreamOptions

FEATURES, DIM, BATCH, KEPT, ROUNDS = 26, 16, 65_536, 6, 3
RATES = {"cfsgd": (0.3, 1.0, 3.0, 10.0, 30.0), "adagrad": (0.003, 0.01, 0.03, 0.1, 0.3)}


def ten_days(tokens: int, examples: int) -> ClickLog:
    """The last day is for evaluation."""
    return click_log(FEATURES, tokens, examples // 9, days=10)


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


def torch_steps(some: Examples, dim: int, number: int) -> Steps:
    """Return steps of torch over the first batches: EmbeddingBag(sparse) and Adagrad."""
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


def limit(model: FM, ids: np.ndarray, threads: int) -> Steps:
    weight = model.tokens.weight.detach().numpy()
    starts = np.cumsum([0, *model.sizes[:-1]])
    parts = [ids[first : first + BATCH] + starts for first in range(0, len(ids), BATCH)]
    distinct = [np.unique(part) for part in parts]
    pool = ThreadPoolExecutor(threads)

    def steps() -> float:
        start = time.perf_counter()
        for rows, some in zip(parts, distinct, strict=True):
            touch_rows(weight, rows, some, pool, threads)
        return len(ids) / (time.perf_counter() - start)

    return steps


def speed(tokens: int) -> None:
    some = examples(FEATURES, tokens, BATCH, KEPT)
    ids, sizes = some.ids, some.sizes
    distinct = np.mean([len(np.unique(ids[:BATCH, n])) for n in range(FEATURES)])
    print(f"\nspeed: {sum(sizes):,} rows, {distinct:,.0f} distinct tokens of a feature in a batch")
    model = FM(sizes, DIM)  # they share the table: its numbers do not matter
    contenders: dict[str, Steps] = {
        "torch EmbeddingBag(sparse) + Adagrad": torch_steps(some, DIM, 2),  # a second each
        "cfsgd": engine_steps(some, model, "cfsgd", 2),
        "adagrad": engine_steps(some, model, "adagrad", 2),
        "rowwise-adagrad": engine_steps(some, model, "rowwise-adagrad", 2),
        "cfsgd, 1 thread": engine_steps(some, model, "cfsgd", 1),
        "limit": limit(model, ids, 2),
    }
    best = {name: max(found) for name, found in take_turns(contenders, ROUNDS).items()}
    theirs = best["torch EmbeddingBag(sparse) + Adagrad"]
    for name in contenders:
        figure(f"training alone: {name}", best[name] / 1e6, "million examples/s")
    figure("training alone: cfsgd / torch, 2 threads", best["cfsgd"] / theirs)
    figure("training alone: the limit / cfsgd, 2 threads", best["limit"] / best["cfsgd"])


def resident() -> float:
    """GB that the process holds."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1e6


def watched() -> tuple[list[float], Callable[[Any, Any], None]]:
    sizes: list[float] = []
    return sizes, lambda progress, record: sizes.append(resident())


def stream(tokens: int, examples: int) -> None:
    log = ten_days(tokens, examples)
    print(f"\nstream: {examples:,} examples to learn from, {log.rows:,} to evaluate on")
    for name, source in sources(log, tokens):
        held, listener = watched()
        start = time.perf_counter()
        _, record = fit_stream(
            source,
            Rule("cfsgd", 3.0),
            Settings(dim=DIM, batch_size=BATCH),
            Pass(window=1_000_000),
            listener=listener,
        )
        spent = time.perf_counter() - start
        tenth = max(1, len(held) // 10)
        per_second = record["samples_per_second"] / 1e6
        figure(f"{examples / 1e6:g} million examples from {name}", per_second, "million examples/s")
        print(
            f"  {spent:.0f} s in "
            f"all; NE {record['train_ne']:.4f}, last day {record['test_ne']:.4f}; "
            f"GB held after 10%, 50%, 100%: {held[tenth]:.2f}, {held[len(held) // 2]:.2f}, "
            f"{held[-1]:.2f}",
            flush=True,
        )


def sources(log: ClickLog, tokens: int) -> Iterator[tuple[str, Any]]:
    yield "generator", ClickStream(log, [tokens] * FEATURES)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        write_clicks(log, Path(folder) / "days")
        spent = time.perf_counter() - start
        print(f"  written as Parquet: {log.rows * log.days / spent / 1e6:.3f} M rows/s", flush=True)
        options = StreamOptions(
            path=str(Path(folder) / "days"),
            label="label",
            features=log.feature_names,
            hash_rows=str(tokens),
        )
        yield "Parquet", open_stream(options)


def quality(tokens: int, examples: int) -> None:
    source = ClickStream(ten_days(tokens, examples), [tokens] * FEATURES)
    truth = source.truth(0, len(source.days) - 1)
    print(f"\nquality: {examples:,} examples; true probabilities: NE {truth.ne:.4f}")
    for name, rates in RATES.items():
        best = math.inf
        for rate in rates:
            settings = Settings(dim=DIM, batch_size=BATCH)
            _, record = fit_stream(source, Rule(name, rate), settings, Pass(window=1_000_000))
            if record["stopped"] != "end":
                print(f"  {name:10} lr {rate:<6g} {record['error']}", flush=True)
                continue
            print(
                f"  {name:10} lr {rate:<6g} NE {record['train_ne']:.5f}, last day "
                f"{record['test_ne']:.5f}, {record['samples_per_second'] / 1e6:.3f} M examples/s",
                flush=True,
            )
            best = min(best, record["train_ne"])
        figure(f"lifetime NE of {name}, at the best of {len(rates)} rates", best, "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help="speed, stream or quality (default: all)")
    parser.add_argument("--tokens", type=int, default=1_000_000)
    parser.add_argument("--examples", type=int, default=20_000_000)
    options = parser.parse_args()
    parts = options.parts or ["speed", "stream", "quality"]
    torch.set_num_threads(2)
    if "speed" in parts:
        speed(options.tokens)
    if "stream" in parts:
        stream(options.tokens, options.examples)
    if "quality" in parts:
        quality(options.tokens, options.examples)


if __name__ == "__main__":
    main()
