"""DeepFM on Criteo: a factorization machine and an MLP over the same vectors."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from benchmarks.zoo.data import criteo
from benchmarks.zoo.task import ClickTask, rarest_fifth


class DeepFM(nn.Module):
    """Add the scores of a factorization machine and of an MLP."""

    def __init__(self, rows: int, fields: int, dim: int, sparse: bool) -> None:
        super().__init__()
        self.vectors = nn.Embedding(rows, dim, sparse=sparse)
        self.weights = nn.Embedding(rows, 1, sparse=sparse)
        self.bias = nn.Parameter(torch.zeros(()))
        self.mlp = nn.Sequential(
            nn.Linear(fields * dim, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1)
        )
        nn.init.normal_(self.vectors.weight, std=0.01)
        nn.init.zeros_(self.weights.weight)

    def forward(self, ids: Tensor) -> Tensor:
        vectors = self.vectors(ids)
        pairs = (vectors.sum(1).square() - vectors.square().sum(1)).sum(1) / 2
        linear = self.weights(ids).sum((1, 2)) + self.bias
        return pairs + linear + self.mlp(vectors.flatten(1)).squeeze(1)


class OneTableTask(ClickTask):
    """Criteo with one table for all 39 fields. The rare token is the rarest of a row."""

    source = "criteo"
    epochs = 3
    batch_size = 512
    fields = 39
    tokens_per_sample = {"vectors": 39, "weights": 39}  # noqa: RUF012

    def __init__(self) -> None:
        clicks = criteo()
        self.rows = sum(clicks.sizes)
        self.ids = clicks.tokens + torch.tensor([0, *clicks.sizes[:-1]]).cumsum(0)
        self.labels, self.split = clicks.labels, clicks.split
        self.rare = rarest_fifth(clicks.rarity(clicks.split.test))

    def inputs(self, rows: Tensor) -> tuple[Tensor]:
        return (self.ids[rows],)


class DeepFMTask(OneTableTask):
    """DeepFM with 16 dimensions."""

    def model(self, sparse: bool) -> DeepFM:
        return DeepFM(self.rows, self.fields, dim=16, sparse=sparse)
