"""How fast FM and DeepFM train, against torch and against what memory allows.

    python -m benchmarks.fm [--xlearn PROGRAM]

Shapes: two fields as MovieLens-1M has them (6,040 x 3,706, 800,000 samples, d=64) and 39 fields as
Criteo has them (d=16), batch 1024. With FREQSGD_DATA set the samples are MovieLens-1M's and
Criteo's own, otherwise drawn by Zipf's law. All train on tensors in memory, in the same run.

- torch: the module FM with autograd and dense Adam, on two threads; 60 steps of it are timed.
- xlearn: the program xlearn_train, if given (it does not take exact minibatches).
- the limit: a kernel that reads the rows of each sample, writes and reads the sums, and reads and
  writes each distinct row of the batch once: what an exact minibatch step must touch.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numba
import numpy as np
import torch

from benchmarks.figures import figure
from freqsgd.nn import FM, DeepFM
from freqsgd.optimizers import Rule
from freqsgd.recommender.engine import engine_for
from freqsgd.tables.loading import load
from freqsgd.tables.spec import DataOptions

BATCH, ROUNDS = 1024, 8


class Samples:
    def __init__(self, name: str, sizes: list[int], ids: np.ndarray, labels: np.ndarray) -> None:
        self.name, self.sizes, self.ids, self.labels = name, sizes, ids, labels
        self.order = np.random.default_rng(0).permutation(len(ids))


def from_dataset(name: str) -> Samples:
    data = load(DataOptions(dataset=name))
    rows = data.splits.train
    return Samples(name, [f.size for f in data.fields], data.ids[rows], data.labels[rows])


def generated(name: str, sizes: list[int], rows: int) -> Samples:
    rng = np.random.default_rng(0)
    columns = []
    for size in sizes:
        p = 1.0 / np.arange(1, size + 1)
        columns.append(rng.choice(size, rows, p=p / p.sum()))
    ids = np.ascontiguousarray(np.stack(columns, 1), np.int32)
    return Samples(name, sizes, ids, rng.integers(0, 2, rows).astype(np.uint8))


def best_of(contenders: dict[str, Callable[[], float]]) -> dict[str, float]:
    """The best speed of each; they take turns, so that a slow moment of the machine hits all."""
    best = dict.fromkeys(contenders, 0.0)
    for _ in range(ROUNDS):
        for name, run in contenders.items():
            best[name] = max(best[name], run())
    return best


def engine(
    samples: Samples, dim: int, threads: int, optimizer: str = "cfsgd"
) -> Callable[[], float]:
    """Samples per second of an epoch."""
    model = FM(samples.sizes, dim)
    rule = Rule(optimizer, 0.1 if "sgd" in optimizer else 0.001)
    trainer = engine_for(model, rule, batch_size=BATCH, threads=threads)
    lrs = np.full(-(-len(samples.ids) // BATCH), rule.lr)

    def epoch() -> float:
        start = time.perf_counter()
        for _ in trainer.train(samples.ids, samples.labels, samples.order, lrs):
            pass
        return len(samples.ids) / (time.perf_counter() - start)

    return epoch


def autograd(model: FM, samples: Samples, steps: int = 60) -> Callable[[], float]:
    """Samples per second of autograd and dense Adam."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    ids, labels = torch.from_numpy(samples.ids), torch.from_numpy(samples.labels).float()
    order = torch.from_numpy(samples.order)

    def some() -> float:
        start = time.perf_counter()
        for batch in order[: steps * BATCH].split(BATCH):
            optimizer.zero_grad()
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                model(ids[batch]), labels[batch]
            )
            loss.backward()
            optimizer.step()
        return min(steps * BATCH, len(order)) / (time.perf_counter() - start)

    return some


def deep_engine(samples: Samples, dim: int, steps: int = 60) -> Callable[[], float]:
    trainer = engine_for(DeepFM(samples.sizes, dim), Rule("cfsgd", 0.01), batch_size=BATCH)
    order = samples.order[: steps * BATCH]

    def some() -> float:
        start = time.perf_counter()
        for _ in trainer.train(samples.ids, samples.labels, order, np.full(steps, 0.01)):
            pass
        return len(order) / (time.perf_counter() - start)

    return some


@cache
def limit_kernel():
    @numba.njit(fastmath=True)
    def touch(weight, sums, rows, distinct, starts, steps):
        total = np.float32(0)
        batch, columns, dim = rows.shape[1], rows.shape[2], weight.shape[1]
        for s in range(steps):
            for b in range(batch):
                for c in range(columns):
                    row = rows[s, b, c]
                    for j in range(dim):
                        total += weight[row, j]
                for j in range(sums.shape[1]):
                    sums[b, j] = total
            for k in range(starts[s], starts[s + 1]):
                row = distinct[k]
                for j in range(dim):
                    weight[row, j] *= np.float32(0.999)
            for b in range(batch):
                for j in range(sums.shape[1]):
                    total += sums[b, j]
        return total

    return touch


def limit(samples: Samples, dim: int) -> Callable[[], float]:
    """Samples per second, on one thread, of touching the memory that a step must touch."""
    model = FM(samples.sizes, dim)
    steps = min(200, len(samples.ids) // BATCH)
    chosen = samples.order[: steps * BATCH]
    rows = (samples.ids[chosen] + model.columns_start.numpy()).reshape(steps, BATCH, -1)
    distinct = [np.unique(part) for part in rows]
    starts = np.cumsum([0, *(len(d) for d in distinct)])
    weight, sums = model.tokens.weight.detach().numpy(), np.empty((BATCH, dim), np.float32)
    arguments = (weight, sums, rows, np.concatenate(distinct), starts)
    limit_kernel()(*arguments, 1)

    def run() -> float:
        start = time.perf_counter()
        limit_kernel()(*arguments, steps)
        return steps * BATCH / (time.perf_counter() - start)

    return run


def xlearn_speed(program: str, samples: Samples, dim: int, threads: int) -> float:
    """Samples per second of the fastest epoch, by the times that the program prints."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.txt"
        starts = np.cumsum([0, *samples.sizes[:-1]])
        with path.open("w") as file:
            for row, label in zip(samples.ids + starts, samples.labels, strict=True):
                file.write(f"{label} " + " ".join(f"{i}:1" for i in row) + "\n")
        command = [program, str(path), "-s", "1", "-k", str(dim), "-e", "12", "--dis-es"]
        command += ["-nthread", str(threads), "--no-norm"]
        environment = {"USER": "nobody", **os.environ}  # without one the program crashes
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    text = re.sub(r"\x1b\[[\d;]*m", "", done.stdout)  # without colours
    line = r"\]\s+\d+\s+[\d.]+\s+([\d.]+)\s*$"  # epoch, loss, seconds
    seconds = [float(x) for x in re.findall(line, text, re.M)]
    return len(samples.ids) / min(seconds)


def bound(samples: Samples, dim: int) -> str:
    """Where the rows of a step lie, which is what bounds it."""
    table = sum(samples.sizes) * (dim + 1) * 4
    step = BATCH * (len(samples.sizes) * (dim + 1) + dim) * 4
    return f"a table of {table / 1e6:.1f} MB, {step / 1e6:.2f} MB of rows and sums a step"


def tell(what: str, speed: float) -> None:
    figure(what, speed / 1e6, "million samples/s")


def report(samples: Samples, dim: int, xlearn: str | None) -> None:
    torch.set_num_threads(2)
    print(f"\n{samples.name}: {len(samples.sizes)} fields, {len(samples.ids):,} samples, d={dim}")
    speed = best_of(
        {
            "torch": autograd(FM(samples.sizes, dim, sparse=False), samples),
            "one": engine(samples, dim, 1),
            "two": engine(samples, dim, 2),
            "limit": limit(samples, dim),
            "adagrad": engine(samples, dim, 2, "adagrad"),
            "adam": engine(samples, dim, 2, "adam"),
        }
    )
    name, torchs = samples.name, speed["torch"]
    tell(f"{name}: cfsgd, 1 thread", speed["one"])
    tell(f"{name}: cfsgd, 2 threads", speed["two"])
    for each, ours in {"cfsgd": "two", "adagrad": "adagrad", "adam": "adam"}.items():
        figure(f"{name}: {each} / torch autograd + dense Adam, 2 threads", speed[ours] / torchs)
    figure(f"{name}: the limit / cfsgd, 1 thread", speed["limit"] / speed["one"])
    print(f"  {bound(samples, dim)}")
    for threads, ours in ((1, speed["one"]), (2, speed["two"])) if xlearn else ():
        theirs = xlearn_speed(xlearn, samples, dim, threads)
        figure(f"{name}: cfsgd / xLearn, {threads} thread{'s' * (threads > 1)}", ours / theirs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--xlearn", help="the program xlearn_train")
    xlearn = parser.parse_args().xlearn
    real = "FREQSGD_DATA" in os.environ
    if real:
        shapes = [(from_dataset("movielens-1m"), 64), (from_dataset("criteo"), 16)]
    else:
        shapes = [
            (generated("two fields", [6040, 3706], 800_000), 64),
            (generated("39 fields", [60] * 13 + [1000] * 26, 64_000), 16),
        ]
    for samples, dim in shapes:
        report(samples, dim, xlearn)

    large = generated("39 fields, a million rows", [25_641] * 39, 61_440)
    torch.set_num_threads(2)
    theirs = autograd(DeepFM(large.sizes, 16, sparse=False), large, steps=4)
    speed = best_of({"torch": theirs, "cfsgd": deep_engine(large, 16)})
    claim = f"DeepFM, {large.name}: cfsgd / torch autograd + dense Adam, 2 threads"
    figure(claim, speed["cfsgd"] / speed["torch"])


if __name__ == "__main__":
    main()
