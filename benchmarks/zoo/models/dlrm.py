"""DLRM on Criteo: 26 tables, 13 numbers and the dot products of all pairs."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from benchmarks.zoo.data import criteo
from benchmarks.zoo.task import ClickTask, rarest_fifth

NUMBERS = 13


class DLRM(nn.Module):
    """Score the numbers' vector together with the dot products of all pairs of vectors."""

    def __init__(self, sizes: list[int], dim: int, sparse: bool) -> None:
        super().__init__()
        tables = [nn.Embedding(size, dim, sparse=sparse) for size in sizes]
        for size, table in zip(sizes, tables, strict=True):
            nn.init.uniform_(table.weight, -(size**-0.5), size**-0.5)
        self.tables = nn.ModuleList(tables)
        self.bottom = nn.Sequential(nn.Linear(NUMBERS, 32), nn.ReLU(), nn.Linear(32, dim))
        self.pairs = torch.tril_indices(len(sizes) + 1, len(sizes) + 1, offset=-1)
        self.top = nn.Sequential(
            nn.Linear(dim + self.pairs.shape[1], 64), nn.ReLU(), nn.Linear(64, 1)
        )

    def forward(self, numbers: Tensor, ids: Tensor) -> Tensor:
        dense = self.bottom(numbers)
        looked_up = [table(ids[:, field]) for field, table in enumerate(self.tables)]
        vectors = torch.stack([dense, *looked_up], 1)
        first, second = self.pairs
        products = (vectors @ vectors.mT)[:, first, second]
        return self.top(torch.cat([dense, products], 1)).squeeze(1)


class DLRMTask(ClickTask):
    """Criteo with a table for each category. The rare token is the rarest of a row."""

    source = "criteo"
    epochs = 3
    batch_size = 512

    def __init__(self) -> None:
        clicks = criteo()
        self.numbers = clicks.numbers
        self.ids, self.sizes = clicks.tokens[:, NUMBERS:], clicks.sizes[NUMBERS:]
        self.labels, self.split = clicks.labels, clicks.split
        self.rare = rarest_fifth(clicks.rarity(clicks.split.test))

    def model(self, sparse: bool) -> DLRM:
        return DLRM(self.sizes, dim=16, sparse=sparse)

    def inputs(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        return self.numbers[rows], self.ids[rows]
