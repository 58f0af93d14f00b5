"""What does CF-SGD add to a step of TorchRec with its plain SGD?

    python -m benchmarks.torchrec_adapter [--batch 65536] [--rows 1000000] [--rounds 8]

26 tables x 1 million rows x 20 (16 for vectors and a linear weight, filled up to a multiple of 4),
a batch of 65,536 over all ranks, ids by Zipf's law, rows sharded over 1 and over 2 ranks on this
machine, which has its cores divided among them. A step is forward, loss and backward, which
updates the tables. EXACT_SGD, COUNTER_SGD alone, COUNTER_SGD with TableRates.step() and that with
scale="adam" take the same batches in turn, round after round; figures are medians in milliseconds
and their ratios.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from benchmarks.figures import figure
from benchmarks.optimizer_step import zipf_batches
from freqsgd.torchrec.group import join
from freqsgd.torchrec.limits import require_torchrec
from freqsgd.torchrec.sharding import make_plan, shard
from freqsgd.torchrec.table_rates import TableRates

TABLES, DIM, LR, BATCHES, WARM_UP = 26, 20, 0.1, 4, 3


class Model(nn.Module):
    """All values of a sample, summed."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        from torchrec import EmbeddingBagCollection, EmbeddingBagConfig

        self.tables = EmbeddingBagCollection(
            device=torch.device("meta"),
            tables=[
                EmbeddingBagConfig(
                    name=f"t{i}", num_embeddings=rows, embedding_dim=DIM, feature_names=[f"f{i}"]
                )
                for i in range(TABLES)
            ],
        )
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, features: Any) -> Tensor:
        return self.tables(features).values().sum(1) + self.bias


def plain(model: nn.Module, optimizer: str, lr: float) -> nn.Module:
    """Sharded as :func:`freqsgd.torchrec.sharding.shard` does it, with an optimizer of FBGEMM."""
    from fbgemm_gpu.split_embedding_configs import EmbOptimType
    from torchrec.distributed import DistributedModelParallel
    from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder

    kernel = {"optimizer": EmbOptimType[optimizer], "learning_rate": lr}
    sharders = [EmbeddingBagCollectionSharder(fused_params=kernel)]
    tables = dict(model.tables.named_parameters(prefix="tables"))
    plan = make_plan(model, tables, "row-wise", sharders)
    return DistributedModelParallel(model, device=torch.device("cpu"), plan=plan, sharders=sharders)


def features_of(ids: Tensor) -> Any:
    from torchrec import KeyedJaggedTensor

    names = [f"f{i}" for i in range(TABLES)]
    lengths = torch.ones(ids.numel(), dtype=torch.int64)
    return KeyedJaggedTensor(names, ids.t().reshape(-1).contiguous(), lengths=lengths)


def measure(options: argparse.Namespace) -> dict[str, float]:
    """Median milliseconds of a step of each contender."""
    rank, world = dist.get_rank(), dist.get_world_size()
    batches = [
        features_of(ids[rank::world])
        for ids in zipf_batches(options.batch, BATCHES, options.rows, TABLES)
    ]
    labels = torch.zeros(options.batch // world)
    sgd = plain(Model(options.rows), "EXACT_SGD", LR)
    counter, scaled = (shard(Model(options.rows), lr=LR) for _ in range(2))
    rates, adams = TableRates(counter, LR), TableRates(scaled, LR, scale="adam")

    def learn(model: nn.Module, features: Any) -> None:
        out = model(features)
        nn.functional.binary_cross_entropy_with_logits(out, labels).backward()

    def adapted(rates: TableRates, model: nn.Module) -> Callable[[Any], None]:
        def step(features: Any) -> None:
            rates.step()
            learn(model, features)

        return step

    contenders: dict[str, Callable[[Any], None]] = {
        "EXACT_SGD": lambda features: learn(sgd, features),
        "COUNTER_SGD alone": lambda features: learn(counter, features),
        "COUNTER_SGD and TableRates": adapted(rates, counter),
        'TableRates(scale="adam")': adapted(adams, scaled),
    }
    times: dict[str, list[float]] = defaultdict(list)
    for number in range(WARM_UP + options.rounds):
        for name, step in contenders.items():
            dist.barrier()
            start = time.perf_counter()
            step(batches[number % BATCHES])
            dist.barrier()
            if number >= WARM_UP:
                times[name].append((time.perf_counter() - start) * 1e3)
    return {name: statistics.median(spent) for name, spent in times.items()}


def report(medians: dict[str, float], options: argparse.Namespace) -> None:
    for name, spent in medians.items():
        speed = options.batch / spent / 1e3
        print(f"{name:30}{spent:9.1f} ms{speed:8.2f} million examples/s")
    sgd, kernel, adapted, scaled = medians.values()
    ranks = dist.get_world_size()
    on = f"{ranks} rank{'s' * (ranks > 1)}"
    figure(f"step with COUNTER_SGD / with EXACT_SGD, {on}", kernel / sgd)
    figure(f"step with TableRates / with EXACT_SGD, {on}", adapted / sgd)
    figure(f'step with TableRates(scale="adam") / with TableRates, {on}', scaled / adapted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=65536)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of each table")
    parser.add_argument("--rounds", type=int, default=8)
    options = parser.parse_args()
    require_torchrec()
    if "RANK" in os.environ:
        join()
        medians = measure(options)
        if dist.get_rank() == 0:
            report(medians, options)
        dist.destroy_process_group()
        return
    for ranks in (1, 2):
        threads = max(1, (os.cpu_count() or 1) // ranks)
        print(
            f"\n{ranks} rank{'s' * (ranks > 1)} of {threads} thread{'s' * (threads > 1)}",
            flush=True,
        )
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        command += [f"--nproc-per-node={ranks}", "-m", "benchmarks.torchrec_adapter"]
        subprocess.run(
            command + sys.argv[1:],
            env={**os.environ, "OMP_NUM_THREADS": str(threads)},
            check=True,
        )


if __name__ == "__main__":
    main()
