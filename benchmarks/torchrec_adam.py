"""How good are untuned tables of TorchRec: scale="adam", row-wise Adagrad, Adam?

    python -m benchmarks.torchrec_adam [--seeds 0 1 2] [--rows 100000]

The click log that `freqsgd stream generate --rows 100000` writes: 16 features of 100 to 200,000
tokens, 10 days of 100,000 rows; drift and new tokens every day. Each contender learns days 0 to 8
once, in batches of 1,024, and is scored on the last day, which it does not learn. All of this was
fixed beforehand, but for the rows of a day, which a run of 4,096 rows was timed for.

The model has a vector of 16 numbers for each feature; all vectors and their products in pairs go
through a hidden layer of 64. The hidden layers learn by Adam at 1e-3 in every contender: only the
tables differ. They start alike, from TorchRec's default. TorchRec runs as one rank; FBGEMM has no
Adam on CPUs, so Adam and, for comparison, CFAdam train the same model in plain torch.

Figures are the normalised entropy of the last day (lower is better; 1 is the base rate), and that
of the batches before they were learned. "truth" is that of the true probabilities.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.figures import figure
from benchmarks.torchrec_adapter import plain
from freqsgd import CFAdam
from freqsgd.tables.generated.clicks import ClickLog
from freqsgd.tables.streaming_metrics import normalized
from freqsgd.torchrec import TableRates, dense_parameters, join, leave, require_torchrec, shard

BATCH, DIM, HIDDEN, LR = 1024, 16, 64, 1e-3
ADAGRAD_RATES = (1e-3, 0.01, 0.03, 0.1)


class Clicks(nn.Module):
    """A network over the vectors of all features and their products in pairs.

    ``tables`` finds the vectors of samples: (samples, features, DIM).
    """

    def __init__(self, tables: nn.Module, features: int) -> None:
        super().__init__()
        self.tables = tables
        pairs = torch.triu_indices(features, features, 1)
        self.register_buffer("pairs", pairs, persistent=False)
        width = features * DIM + pairs.shape[1]
        self.network = nn.Sequential(nn.Linear(width, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1))

    def forward(self, ids: Tensor) -> Tensor:
        found = self.tables(self.features_of(ids))
        vectors = found if isinstance(found, Tensor) else found.values()
        vectors = vectors.view(len(ids), -1, DIM)
        products = vectors @ vectors.transpose(1, 2)
        inputs = [vectors.flatten(1), products[:, self.pairs[0], self.pairs[1]]]
        return self.network(torch.cat(inputs, 1)).squeeze(1)

    def features_of(self, ids: Tensor) -> Any:
        if isinstance(self.tables, Embeddings):
            return ids
        from torchrec import KeyedJaggedTensor

        lengths = torch.ones(ids.numel(), dtype=torch.int32)
        names = [f"f{n}" for n in range(ids.shape[1])]
        return KeyedJaggedTensor(names, ids.t().reshape(-1).contiguous(), lengths=lengths)


class Embeddings(nn.Module):
    """A table of plain torch for each feature."""

    def __init__(self, start: list[Tensor], sparse: bool) -> None:
        super().__init__()
        self.tables = nn.ModuleList(
            nn.Embedding.from_pretrained(rows.clone(), freeze=False, sparse=sparse)
            for rows in start
        )

    def forward(self, ids: Tensor) -> Tensor:
        return torch.stack([table(ids[:, n]) for n, table in enumerate(self.tables)], 1)


def collection(start: list[Tensor]) -> nn.Module:
    """The same tables in TorchRec."""
    from torchrec import EmbeddingBagCollection, EmbeddingBagConfig

    tables = [
        EmbeddingBagConfig(
            name=f"t{n}", num_embeddings=len(rows), embedding_dim=DIM, feature_names=[f"f{n}"]
        )
        for n, rows in enumerate(start)
    ]
    return EmbeddingBagCollection(device=torch.device("meta"), tables=tables)


Contender = tuple[nn.Module, Callable[[], None], Callable[[], None]]
"""A model, what comes before its forward pass, and what comes after its backward pass."""


def adam_of(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=LR, fused=True)


def in_torch(start: list[Tensor], make: Callable[[nn.Module], Any], sparse: bool) -> Contender:
    torch.manual_seed(0)  # of the network
    model = Clicks(Embeddings(start, sparse), len(start))
    optimizer = make(model)
    return model, optimizer.zero_grad, optimizer.step


def in_torchrec(start: list[Tensor], make: Callable[[nn.Module], Any], scale: bool) -> Contender:
    torch.manual_seed(0)
    model = make(Clicks(collection(start), len(start)))
    with torch.no_grad():
        for name, weight in model.state_dict().items():
            if name.startswith("tables."):
                (part,) = weight.local_shards()
                part.tensor.copy_(start[int(name.split(".")[-2][1:])])
    rates = TableRates(model, scale="adam") if scale else None
    optimizer = adam_of(dense_parameters(model))

    def begin() -> None:
        if rates is not None:
            rates.step()
        optimizer.zero_grad()

    return model, begin, optimizer.step


CONTENDERS: dict[str, Callable[[list[Tensor]], Contender]] = {
    'COUNTER_SGD, scale="adam", 1e-3': lambda start: in_torchrec(
        start, lambda model: shard(model, lr=LR), scale=True
    ),
    **{
        f"ROWWISE_ADAGRAD, {lr:g}": lambda start, lr=lr: in_torchrec(
            start, lambda model: plain(model, "EXACT_ROWWISE_ADAGRAD", lr), scale=False
        )
        for lr in ADAGRAD_RATES
    },
    "Adam, 1e-3 (torch)": lambda start: in_torch(
        start, lambda model: adam_of(list(model.parameters())), sparse=False
    ),
    "CFAdam, 1e-3 (torch)": lambda start: in_torch(
        start, lambda model: CFAdam(model, lr=LR), sparse=True
    ),
}


def pass_over(log: ClickLog, contender: Contender) -> tuple[float, float]:
    """Learn all days but the last; return NE of the last, and of the batches before each step."""
    model, begin, end = contender
    losses = [0.0, 0.0]
    clicks, samples = [0, 0], [0, 0]
    for day in range(log.days):
        last = day == log.days - 1
        for number in range(log.blocks):
            block = log.block(day, number)
            for first in range(0, len(block.labels), BATCH):
                ids = torch.from_numpy(block.tokens[first : first + BATCH]).long()
                labels = torch.from_numpy(block.labels[first : first + BATCH]).float()
                if not last:
                    begin()
                with torch.set_grad_enabled(not last):
                    loss = nn.functional.binary_cross_entropy_with_logits(model(ids), labels)
                if not last:
                    loss.backward()
                    end()
                losses[last] += loss.item() * len(labels)
                clicks[last] += int(labels.sum())
                samples[last] += len(labels)
    learned, scored = (
        normalized(losses[k] / samples[k], clicks[k], samples[k]) or np.nan for k in range(2)
    )
    return scored, learned


def true_entropy(log: ClickLog) -> float:
    """NE of the true probabilities on the last day."""
    blocks = [log.block(log.days - 1, number) for number in range(log.blocks)]
    odds, labels = (
        torch.from_numpy(np.concatenate(parts)).float()
        for parts in zip(*((block.log_odds, block.labels) for block in blocks), strict=True)
    )
    loss = nn.functional.binary_cross_entropy_with_logits(odds, labels).item()
    return normalized(loss, int(labels.sum()), len(labels)) or np.nan


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rows", type=int, default=100_000, help="of a day")
    options = parser.parse_args()
    require_torchrec()
    join()
    found: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for seed in options.seeds:
        log = ClickLog.of(rows=options.rows, seed=seed)
        found["truth"].append((true_entropy(log),))
        random = torch.Generator().manual_seed(seed)
        start = [
            torch.empty(rows, DIM).uniform_(-(rows**-0.5), rows**-0.5, generator=random)
            for rows in log.tokens
        ]
        for name, make in CONTENDERS.items():
            begin = time.perf_counter()
            found[name].append(pass_over(log, make(start)))
            scored, learned = found[name][-1]
            spent = time.perf_counter() - begin
            print(f"seed {seed}  {name:34} {scored:.4f} {learned:.4f}  {spent:4.0f} s", flush=True)
    print(f"\n{'':34} last day          while learning")
    for name, pairs in found.items():
        columns = [
            f"{statistics.mean(column):.4f}"
            + (f" ± {statistics.stdev(column):.4f}" if len(column) > 1 else "")
            for column in zip(*pairs, strict=True)
        ]
        print(f"{name:34} {'   '.join(columns)}")
        figure(f"NE of the last day: {name}", statistics.mean(pair[0] for pair in pairs), "")


if __name__ == "__main__":
    main()
    leave()
