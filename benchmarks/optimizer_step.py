"""How fast are the row update and the self-updating embedding, against torch and FBGEMM?

    python -m benchmarks.optimizer_step [--batch 4096] [--seconds 20]

One embedding step of a click model: 26 tables x 100,000 rows x 16, a batch of 4096, ids by Zipf's
law with exponent 1.1 in shuffled order. Every contender runs the same batches in turn, round after
round, so that all of them see the same machine; figures are medians in milliseconds.

FBGEMM takes part if it is installed; on a CPU: pip install --no-deps fbgemm-gpu-cpu==1.8.0
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Callable

import numba
import numpy as np
import torch
from torch import Tensor

from freqsgd import CFSGD, CFAdam
from freqsgd.kernels import threads
from freqsgd.kernels.machine import BLOCK, LANES, add_scaled, kernel, pointer, prefetch, take
from freqsgd.nn import CFEmbedding

TABLES, ROWS, DIM, EXPONENT = 26, 100_000, 16, 1.1


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


TOUCH = np.dtype(
    [
        ("next", np.int64),
        ("weight", np.int64),  # addresses
        ("rows", np.int64),
        ("starts", np.int64),  # where each table's rows begin and end among them
    ]
)


@kernel(TOUCH)
def touch(jobs):  # type: ignore[no-untyped-def]
    job = numba.carray(jobs, 1)[0]
    starts = numba.carray(pointer(job.starts), TABLES + 1, dtype=np.int64)
    rows = numba.carray(pointer(job.rows), starts[TABLES], dtype=np.int64)
    table = take(jobs)
    while table < TABLES:
        base = job.weight + table * ROWS * DIM * 4
        for i in range(starts[table], starts[table + 1]):
            if i + BLOCK < starts[table + 1]:
                prefetch(base + rows[i + BLOCK] * DIM * 4)
            for j in range(0, DIM, LANES):
                at = base + (rows[i] * DIM + j) * 4
                add_scaled(at, at, numba.float32(1e-9))
        table = take(jobs)


class Limit:
    """Reads and writes each distinct row of the batch once, as it first occurs; nothing else."""

    def __init__(self) -> None:
        self.weight = torch.zeros(TABLES, ROWS, DIM)

    def prepare(self, ids: Tensor) -> tuple[np.ndarray, np.ndarray]:
        columns = [list(dict.fromkeys(column.tolist())) for column in ids.unbind(1)]
        return np.concatenate(columns), np.cumsum([0, *map(len, columns)])

    def run(self, ids: tuple[np.ndarray, np.ndarray]) -> None:
        job = np.zeros(1, TOUCH)
        job["weight"] = self.weight.data_ptr()
        job["rows"], job["starts"] = (part.ctypes.data for part in ids)
        threads.run(touch, job, torch.get_num_threads())


def contenders() -> dict[str, object]:
    found: dict[str, object] = {
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
    found["limit"] = Limit()
    return found


def measure(batches: list[Tensor], seconds: float) -> dict[str, dict[str, float]]:
    """Median milliseconds of forward, backward and step of each contender."""
    times: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    runners = contenders()
    prepared = {name: [runner.prepare(ids) for ids in batches] for name, runner in runners.items()}
    grad = torch.randn(batches[0].shape[0], TABLES * DIM) * 1e-3
    start, rounds = time.perf_counter(), 0
    while rounds < 3 or time.perf_counter() - start < seconds:
        for name, runner in runners.items():
            ids = prepared[name][rounds % len(batches)]
            marks = [time.perf_counter()]
            if isinstance(runner, Limit):
                runner.run(ids)
                marks.append(time.perf_counter())
            else:
                out = runner.forward(ids)
                marks.append(time.perf_counter())
                out.backward(grad)
                marks.append(time.perf_counter())
                runner.step()
                marks.append(time.perf_counter())
            if rounds >= 2:  # the first rounds compile and warm up
                parts = zip(("forward", "backward", "step"), np.diff(marks), strict=False)
                for part, spent in parts:
                    times[name][part].append(spent * 1e3)
                times[name]["whole"].append((marks[-1] - marks[0]) * 1e3)
        rounds += 1
    return {n: {k: statistics.median(v) for k, v in parts.items()} for n, parts in times.items()}


def report(results: dict[str, dict[str, float]]) -> None:
    print(f"{'':30}{'forward':>9}{'backward':>9}{'step':>9}{'whole':>9}")
    for name, parts in results.items():
        cells = [parts.get(k) for k in ("forward", "backward", "step", "whole")]
        if name == "limit":
            cells = [None, None, None, parts["whole"]]
        print(f"{name:30}" + "".join(f"{'' if c is None else f'{c:.2f}':>9}" for c in cells))
    for fused in ("CFSGD fused", "CFAdam fused"):
        for name in ("torch SGD", "torch Adagrad", "torch SparseAdam"):
            print(f"step: {name} / {fused} = {results[name]['step'] / results[fused]['step']:.2f}")
    ratio = results["CFAdam fused"]["step"] / results["CFSGD fused"]["step"]
    print(f"step: CFAdam fused / CFSGD fused = {ratio:.2f}")
    for ours in ("CFEmbedding sgd", "CFEmbedding adam"):
        for name in results:
            if name.startswith("FBGEMM"):
                ratio = results[name]["whole"] / results[ours]["whole"]
                print(f"whole: {name} / {ours} = {ratio:.2f}")
    for name, part in (("CFSGD fused", "step"), ("CFEmbedding sgd", "whole")):
        print(f"{part}: {name} / limit = {results[name][part] / results['limit']['whole']:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--seconds", type=float, default=20.0, help="per number of threads")
    options = parser.parse_args()
    batches = zipf_batches(options.batch, 20)
    for number in (1, 2):
        torch.set_num_threads(number)
        print(f"\n{number} thread{'s' * (number > 1)}, milliseconds")
        report(measure(batches, options.seconds))


if __name__ == "__main__":
    main()
