"""A model of one's own, sharded, and the same in one process: what the tests compare."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from freqsgd import CFSGD
from freqsgd.torchrec.limits import require_torchrec
from freqsgd.torchrec.sharding import dense_parameters, shard
from freqsgd.torchrec.table_rates import TableRates

ROWS = {"wide": 23, "narrow": 5}
FEATURES = {"wide": ["w"], "narrow": ["n1", "n2"]}
KINDS = {"bags": {"wide": 8, "narrow": 4}, "sequences": {"wide": 4, "narrow": 4}}  # columns
LR, DENSE_LR, BATCH, STEPS = 0.3, 0.05, 12, 20

Bags = dict[str, tuple[Tensor, Tensor]]  # of a feature: ids, and how many each sample has


def make_batches() -> list[tuple[Bags, Tensor]]:
    """Bags of 0 to 3 ids, a few of them frequent; the second half of batch 3 is empty."""
    random = torch.Generator().manual_seed(1)
    batches = []
    for step in range(STEPS):
        bags = {}
        for table, features in FEATURES.items():
            for feature in features:
                lengths = torch.randint(4, (BATCH,), generator=random)
                if step == 3:
                    lengths[BATCH // 2 :] = 0
                places = torch.rand(int(lengths.sum()), generator=random) ** 2
                bags[feature] = ((places * ROWS[table]).long(), lengths)
        batches.append((bags, torch.randn(BATCH, generator=random)))
    return batches


def part_of(bags: Bags, rank: int, world: int) -> Bags:
    """The samples of a rank."""
    first, last = rank * BATCH // world, (rank + 1) * BATCH // world
    return {
        feature: (ids[lengths[:first].sum() : lengths[:last].sum()], lengths[first:last])
        for feature, (ids, lengths) in bags.items()
    }


def make_network(kind: str) -> nn.Module:
    torch.manual_seed(3)
    width = sum(KINDS[kind][table] * len(FEATURES[table]) for table in ROWS)
    return nn.Sequential(nn.Linear(width, 6), nn.Tanh(), nn.Linear(6, 1), nn.Flatten(0))


def initial_weight(kind: str, table: str) -> Tensor:
    return torch.randn(ROWS[table], KINDS[kind][table], generator=torch.Generator().manual_seed(2))


class Single(nn.Module):
    """Sums of bags and a network, in plain torch."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.tables = nn.ModuleDict(
            {
                table: nn.EmbeddingBag.from_pretrained(
                    initial_weight(kind, table), freeze=False, mode="sum", sparse=True
                )
                for table in ROWS
            }
        )
        self.network = make_network(kind)

    def forward(self, bags: Bags) -> Tensor:
        sums = []
        for table, features in FEATURES.items():
            for feature in features:
                ids, lengths = bags[feature]
                sums.append(self.tables[table](ids, lengths.cumsum(0) - lengths))
        return self.network(torch.cat(sums, 1))


class Own(nn.Module):
    """The same with a collection of TorchRec."""

    def __init__(self, kind: str, device: str = "cpu") -> None:
        super().__init__()
        require_torchrec()
        import torchrec

        self.kind = kind
        config = torchrec.EmbeddingBagConfig if kind == "bags" else torchrec.EmbeddingConfig
        collection = (
            torchrec.EmbeddingBagCollection if kind == "bags" else torchrec.EmbeddingCollection
        )
        self.tables = collection(
            device=torch.device(device),
            tables=[
                config(
                    name=table,
                    num_embeddings=rows,
                    embedding_dim=KINDS[kind][table],
                    feature_names=FEATURES[table],
                )
                for table, rows in ROWS.items()
            ],
        )
        self.network = make_network(kind)

    def forward(self, bags: Bags) -> Tensor:
        from torchrec import KeyedJaggedTensor

        values, lengths = (torch.cat(parts) for parts in zip(*bags.values(), strict=True))
        found = self.tables(KeyedJaggedTensor(list(bags), values, lengths=lengths.int()))
        if self.kind == "bags":
            return self.network(found.values())
        sums = []
        for feature, (_, counts) in bags.items():
            rows = found[feature].values()
            samples = torch.arange(len(counts)).repeat_interleave(counts)
            sums.append(rows.new_zeros(len(counts), rows.shape[1]).index_add(0, samples, rows))
        return self.network(torch.cat(sums, 1))


def train_single(kind: str) -> dict[str, Any]:
    """Tables, counts and network after all batches, by CFSGD that counts by batch."""
    model = Single(kind)
    optimizer = CFSGD(
        [
            {"params": model.tables.parameters(), "lr": LR, "count": "batch"},
            {"params": model.network.parameters(), "lr": DENSE_LR},
        ],
        lr=LR,
        fused=False,
    )
    for bags, targets in make_batches():
        optimizer.zero_grad()
        (model(bags) - targets).square().mean().backward()
        optimizer.step()
    return {
        "weights": {table: bag.weight.detach() for table, bag in model.tables.items()},
        "counts": {table: optimizer.counts(bag.weight) for table, bag in model.tables.items()},
        "network": [p.detach() for p in model.network.parameters()],
    }


def train_single_adam(kind: str) -> dict[str, Any]:
    """The same by the formulas of ``scale="adam"``, from the gradient of each occurrence."""
    tables = {table: initial_weight(kind, table) for table in ROWS}
    counts = {table: torch.zeros(rows) for table, rows in ROWS.items()}
    moments = dict.fromkeys(ROWS, (0.0, 0))
    network = make_network(kind)
    optimizer = CFSGD(network.parameters(), lr=DENSE_LR, fused=False)
    for step, (bags, targets) in enumerate(make_batches(), 1):
        found = {f: tables[t][bags[f][0]].requires_grad_() for t in ROWS for f in FEATURES[t]}
        samples = {f: torch.arange(BATCH).repeat_interleave(bags[f][1]) for f in found}
        sums = [
            torch.zeros(BATCH, rows.shape[1]).index_add(0, samples[f], rows)
            for f, rows in found.items()
        ]
        optimizer.zero_grad()
        (network(torch.cat(sums, 1)) - targets).square().mean().backward()
        optimizer.step()
        for table, features in FEATURES.items():
            ids = torch.cat([bags[f][0] for f in features])
            gradients = torch.cat([found[f].grad for f in features])
            held = ids.unique()
            moment, seen = moments[table]
            squares = gradients.square().mean(1).sum().item() / len(held)
            moment, seen = 0.999 * moment + 0.001 * squares, seen + 1
            moments[table] = moment, seen
            counts[table][held] += 1
            root = math.sqrt(moment / (1 - 0.999**seen)) + 1e-8
            rates = LR / root / (counts[table][ids] / step).sqrt()
            tables[table].index_add_(0, ids, -rates[:, None] * gradients)
    return {
        "weights": tables,
        "counts": {table: count.long() for table, count in counts.items()},
        "network": [p.detach() for p in network.parameters()],
    }


class Sharded:
    """A run on one of the ranks."""

    def __init__(
        self, kind: str = "bags", sharding: str = "row-wise", scale: str | None = None
    ) -> None:
        model = Own(kind)
        for name, weight in model.tables.named_parameters():
            weight.data = initial_weight(kind, name.split(".")[-2])
        self.model = shard(model, lr=LR, sharding=sharding)
        self.rates = TableRates(self.model, LR, scale=scale)
        self.optimizer = CFSGD(dense_parameters(self.model), lr=DENSE_LR)

    def train(self, steps: slice = slice(None)) -> None:
        rank, world = dist.get_rank(), dist.get_world_size()
        for bags, targets in make_batches()[steps]:
            self.rates.step()
            out = self.model(part_of(bags, rank, world))
            self.optimizer.zero_grad()
            (out - targets.chunk(world)[rank]).square().mean().backward()
            self.optimizer.step()

    def result(self) -> dict[str, Any]:
        """As of :func:`train_single`, of the rows that this rank holds, after their first row."""
        weights = {
            name.split(".")[-2]: (part.metadata.shard_offsets[0], part.tensor.clone())
            for name, weight in self.model.state_dict().items()
            if name.startswith("tables.")
            for part in weight.local_shards()
        }
        counts = {name.split(".")[-2]: found for name, found in self.rates.counts().items()}
        network = [p.detach().clone() for p in dense_parameters(self.model)]
        return {"weights": weights, "counts": counts, "network": network}


def train_sharded(rank: int, kind: str, sharding: str, scale: str | None = None) -> dict[str, Any]:
    run = Sharded(kind, sharding, scale)
    run.train()
    return run.result()


def join_rows(parts: list[dict[str, tuple[int, Tensor]]]) -> dict[str, Tensor]:
    """Whole tables of what the ranks hold."""
    return {
        table: torch.cat(
            [
                rows
                for _, rows in sorted((p[table] for p in parts if table in p), key=lambda p: p[0])
            ]
        )
        for table in ROWS
    }
