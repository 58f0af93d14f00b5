"""How fast are the row update and the self-updating embedding, against torch and FBGEMM?

    python -m benchmarks.optimizer_step [--batch 4096] [--seconds 20]

One embedding step of a click model: 26 tables x 100,000 rows x 16, a batch of 4096, ids by Zipf's
law with exponent 1.1 in shuffled order. Every contender runs the same batches in turn, round after
round, so that all of them see the same machine; figures are medians in milliseconds. The last two
columns are multiples of the limit: kernels that do only what no embedding step can do without.

FBGEMM takes part if it is installed; on a CPU: pip install --no-deps fbgemm-gpu-cpu==1.8.0
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

from benchmarks.figures import figure
from freqsgd import CFSGD, CFAdam
from freqsgd.kernels import threads
from freqsgd.kernels.machine import (
    AHEAD,
    LANES,
    add_scaled,
    kernel,
    pointer,
    prefetch,
    prefetch_only,
    take,
)
from freqsgd.nn import CFEmbedding

TABLES, ROWS, DIM, EXPONENT = 26, 100_000, 16, 1.1
MOMENT = 0.05  # milliseconds: what takes less is no step


def zipf_batches(batch: int, number: int, rows: int = ROWS, tables: int = TABLES) -> list[Tensor]:
    """Batches of ids, (batch, tables); every table has its own order of tokens."""
    rng = np.random.default_rng(0)
    cdf = np.cumsum(np.arange(1, rows + 1, dtype=np.float64) ** -EXPONENT)
    ranks = np.searchsorted(cdf / cdf[-1], rng.random((number, batch, tables))).clip(0, rows - 1)
    order = np.stack([rng.permutation(rows) for _ in range(tables)])
    return [torch.from_numpy(order[np.arange(tables), r]) for r in ranks]


class Bags:
    """nn.EmbeddingBag with sparse gradients and an optimizer."""

    def __init__(self, make: Callable[..., torch.optim.Optimizer]) -> None:
        self.bags = [
            torch.nn.EmbeddingBag(ROWS, DIM, mode="sum", sparse=True) for _ in range(TABLES)
        ]
        self.optimizer = make([bag.weight for bag in self.bags])

    def prepare(self, ids: Tensor) -> list[Tensor]:
        return [column.contiguous().unsqueeze(1) for column in ids.unbind(1)]

    def forward(self, ids: list[Tensor]) -> Tensor:
        self.optimizer.zero_grad()
        return torch.cat([bag(i) for bag, i in zip(self.bags, ids, strict=True)], 1)

    def step(self) -> None:
        self.optimizer.step()


class OurEmbedding:
    """CFEmbedding, which has no separate step."""

    def __init__(self, rule: str) -> None:
        self.embedding = CFEmbedding([ROWS] * TABLES, DIM, lr=0.1, rule=rule)

    def prepare(self, ids: Tensor) -> Tensor:
        return ids.contiguous()

    def forward(self, ids: Tensor) -> Tensor:
        return self.embedding(ids).flatten(1)

    def step(self) -> None:
        pass


class Fbgemm:
    """FBGEMM's table-batched embedding; COUNTER_SGD is CF-SGD with count="batch"."""

    def __init__(self, rule: str) -> None:
        from fbgemm_gpu.split_embedding_configs import EmbOptimType
        from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation
        from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
            ComputeDevice,
            CounterBasedRegularizationDefinition,
            CounterWeightDecayMode,
            LearningRateMode,
            SplitTableBatchedEmbeddingBagsCodegen,
            WeightDecayMode,
        )

        options: dict = {
            "optimizer": getattr(EmbOptimType, rule, EmbOptimType.EXACT_ROWWISE_ADAGRAD)
        }
        if rule == "COUNTER_SGD":
            options["weight_decay_mode"] = WeightDecayMode.COUNTER
            options["counter_based_regularization"] = CounterBasedRegularizationDefinition(
                counter_weight_decay_mode=CounterWeightDecayMode.NONE,
                counter_halflife=-1,
                adjustment_iter=-1,
                adjustment_ub=1.0,
                learning_rate_mode=LearningRateMode.COUNTER_SGD,
            )
        self.tables = SplitTableBatchedEmbeddingBagsCodegen(
            [(ROWS, DIM, EmbeddingLocation.HOST, ComputeDevice.CPU)] * TABLES,
            learning_rate=0.1,
            **options,
        )
        self.offsets = torch.empty(0)

    def prepare(self, ids: Tensor) -> Tensor:
        self.offsets = torch.arange(ids.numel() + 1)
        return ids.t().contiguous().view(-1)

    def forward(self, ids: Tensor) -> Tensor:
        return self.tables(ids, self.offsets)

    def step(self) -> None:
        pass


LIMIT = np.dtype(
    [
        ("next", np.int64),
        ("weight", np.int64),  # addresses
        ("counts", np.int64),
        ("ids", np.int64),  # of the batch, table by table
        ("batch", np.int64),
        ("rows", np.int64),  # the distinct ids, table by table
        ("starts", np.int64),  # where each table's rows begin and end among them
        ("grad", np.int64),  # table by table
        ("out", np.int64),
        ("sums", np.int64),  # what was read, one number per table: nothing may be optimized away
    ]
)


@numba.njit(fastmath={"reassoc"})
def total(numbers):  # type: ignore[no-untyped-def]
    result = numbers.dtype.type(0)
    for number in numbers:
        result += number
    return result


@kernel(LIMIT)
def look_up(jobs):  # type: ignore[no-untyped-def]
    job = numba.carray(jobs, 1)[0]
    starts = numba.carray(pointer(job.starts), TABLES + 1, dtype=np.int64)
    rows = numba.carray(pointer(job.rows), starts[TABLES], dtype=np.int64)
    weight = numba.carray(pointer(job.weight), TABLES * ROWS * DIM, dtype=np.float32)
    ids = numba.carray(pointer(job.ids), TABLES * job.batch, dtype=np.int64)
    out = numba.carray(pointer(job.out), TABLES * job.batch * DIM, dtype=np.float32)
    sums = numba.carray(pointer(job.sums), TABLES, dtype=np.float64)
    table = take(jobs)
    while table < TABLES:
        first, last, base = starts[table], starts[table + 1], table * ROWS * DIM
        found = np.float32(0)
        for i in range(first, last):
            if i + AHEAD < last:
                prefetch_only(job.weight + (base + rows[i + AHEAD] * DIM) * 4)
            found += weight[base + rows[i] * DIM]
        sums[table] = found + total(ids[table * job.batch : (table + 1) * job.batch])
        out[table * job.batch * DIM : (table + 1) * job.batch * DIM] = found
        table = take(jobs)


@kernel(LIMIT)
def update(jobs):  # type: ignore[no-untyped-def]
    job = numba.carray(jobs, 1)[0]
    starts = numba.carray(pointer(job.starts), TABLES + 1, dtype=np.int64)
    rows = numba.carray(pointer(job.rows), starts[TABLES], dtype=np.int64)
    counts = numba.carray(pointer(job.counts), TABLES * ROWS, dtype=np.int32)
    ids = numba.carray(pointer(job.ids), TABLES * job.batch, dtype=np.int64)
    grad = numba.carray(pointer(job.grad), TABLES * job.batch * DIM, dtype=np.float32)
    sums = numba.carray(pointer(job.sums), TABLES, dtype=np.float64)
    table = take(jobs)
    while table < TABLES:
        first, last = starts[table], starts[table + 1]
        weight_address = job.weight + table * ROWS * DIM * 4
        counts_address = job.counts + table * ROWS * 4
        for i in range(first, last):
            if i + AHEAD < last:
                prefetch(weight_address + rows[i + AHEAD] * DIM * 4)
                prefetch(counts_address + rows[i + AHEAD] * 4)
            counts[table * ROWS + rows[i]] += 1
            for j in range(0, DIM, LANES):
                at = weight_address + (rows[i] * DIM + j) * 4
                add_scaled(at, at, numba.float32(1e-9))
        mine = slice(table * job.batch, (table + 1) * job.batch)
        sums[table] = total(ids[mine])
        sums[table] += total(grad[mine.start * DIM : mine.stop * DIM])
        table = take(jobs)


class Limit:
    """What no embedding step can do without, and nothing else.

    Forward: read the ids and each distinct row once, write the output once. Step: read the ids and
    the gradient once, read and write each distinct row and its counter once. No backward pass lies
    between, so its rows are still in the cache; torch's optimizers find theirs partly evicted.
    """

    def __init__(self, grad: Tensor) -> None:
        self.tensors = {
            "weight": torch.zeros(TABLES, ROWS, DIM),
            "counts": torch.zeros(TABLES, ROWS, dtype=torch.int32),
            "grad": grad,
            "out": torch.empty_like(grad),
            "sums": torch.zeros(TABLES, dtype=torch.float64),
        }
        self.job = np.zeros(1, LIMIT)
        for name, tensor in self.tensors.items():
            self.job[name] = tensor.data_ptr()

    def prepare(self, ids: Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        columns = [list(dict.fromkeys(column.tolist())) for column in ids.unbind(1)]
        starts = np.cumsum([0, *map(len, columns)])
        return ids.t().contiguous().numpy(), np.concatenate(columns), starts

    def forward(self, batch: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
        for name, array in zip(("ids", "rows", "starts"), batch, strict=True):
            self.job[name] = array.ctypes.data
        self.job["batch"] = batch[0].shape[1]
        self.run(look_up)

    def step(self) -> None:
        self.run(update)

    def run(self, function: object) -> None:
        self.job["next"] = 0
        threads.run(function, self.job, torch.get_num_threads())


def contenders(grad: Tensor) -> dict[str, Any]:
    found: dict[str, Any] = {
        "torch SGD": Bags(lambda p: torch.optim.SGD(p, lr=0.1)),
        "torch Adagrad": Bags(lambda p: torch.optim.Adagrad(p, lr=0.1)),
        "torch SparseAdam": Bags(lambda p: torch.optim.SparseAdam(p, lr=0.1)),
        "CFSGD plain": Bags(lambda p: CFSGD(p, lr=0.1, fused=False)),
        "CFSGD fused": Bags(lambda p: CFSGD(p, lr=0.1, fused=True)),
        "CFAdam plain": Bags(lambda p: CFAdam(p, lr=1e-3, fused=False)),
        "CFAdam fused": Bags(lambda p: CFAdam(p, lr=1e-3, fused=True)),
        "CFEmbedding sgd": OurEmbedding("sgd"),
        "CFEmbedding adam": OurEmbedding("adam"),
    }
    try:
        for rule in ("EXACT_SGD", "EXACT_ROWWISE_ADAGRAD", "COUNTER_SGD"):
            found[f"FBGEMM {rule}"] = Fbgemm(rule)
    except ImportError as error:
        print(f"FBGEMM is left out: {error}")
    found["limit"] = Limit(grad)
    return found


def measure(batches: list[Tensor], seconds: float) -> dict[str, dict[str, float]]:
    """Median milliseconds of forward, backward and step of each contender."""
    times: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    grad = torch.randn(batches[0].shape[0], TABLES * DIM) * 1e-3
    runners = contenders(grad)
    prepared = {name: [runner.prepare(ids) for ids in batches] for name, runner in runners.items()}
    start, rounds = time.perf_counter(), 0
    while rounds < 3 or time.perf_counter() - start < seconds:
        for name, runner in runners.items():
            ids = prepared[name][rounds % len(batches)]
            marks = [time.perf_counter()]
            out = runner.forward(ids)
            marks.append(time.perf_counter())
            if out is not None:
                out.backward(grad)
            marks.append(time.perf_counter())
            runner.step()
            marks.append(time.perf_counter())
            if rounds >= 2:  # the first rounds compile and warm up
                parts = zip(("forward", "backward", "step"), np.diff(marks), strict=True)
                for part, spent in parts:
                    times[name][part].append(spent * 1e3)
                times[name]["whole"].append((marks[-1] - marks[0]) * 1e3)
        rounds += 1
    return {n: {k: statistics.median(v) for k, v in parts.items()} for n, parts in times.items()}


def report(results: dict[str, dict[str, float]], threads: int) -> None:
    names = ("forward", "backward", "step", "whole")
    print(" " * 30 + "".join(f"{name:>9}" for name in (*names, "step", "whole")))
    limit = results["limit"]
    for name, parts in results.items():
        cells = [f"{parts[key]:.2f}" for key in names]
        updates_itself = parts["step"] < MOMENT  # then its backward is no part of the limit's step
        ratios = {key: f"{parts[key] / limit[key]:.1f} x" for key in ("step", "whole")}
        cells += ["" if updates_itself else ratios["step"], ratios["whole"]]
        print(f"{name:30}" + "".join(f"{cell:>9}" for cell in cells))

    def compare(part: str, name: str, other: str) -> None:
        claim = f"{part}: {name} / {other}, {threads} thread{'s' * (threads > 1)}"
        figure(claim, results[name][part] / results[other][part])

    for fused in ("CFSGD fused", "CFAdam fused"):
        for name in ("torch SGD", "torch Adagrad", "torch SparseAdam"):
            compare("step", name, fused)
    compare("step", "CFAdam fused", "CFSGD fused")
    for name in ("CFSGD fused", "CFAdam fused"):
        compare("step", name, "limit")
    for ours in ("CFEmbedding sgd", "CFEmbedding adam"):
        for name in results:
            if name.startswith("FBGEMM"):
                compare("whole", name, ours)
        compare("whole", ours, "limit")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--seconds", type=float, default=20.0, help="per number of threads")
    options = parser.parse_args()
    batches = zipf_batches(options.batch, 20)
    for number in (1, 2):
        torch.set_num_threads(number)
        print(f"\n{number} thread{'s' * (number > 1)}, milliseconds")
        report(measure(batches, options.seconds), number)


if __name__ == "__main__":
    main()
