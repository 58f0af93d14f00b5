"""DCN-V2 on Criteo: low-rank cross layers beside an MLP."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from benchmarks.zoo.models.deepfm import OneTableTask


class CrossLayer(nn.Module):
    """Multiply the input by a low-rank map of the layer before: x0 * (U V x + b) + x."""

    def __init__(self, width: int, rank: int) -> None:
        super().__init__()
        self.down = nn.Linear(width, rank, bias=False)
        self.up = nn.Linear(rank, width)

    def forward(self, first: Tensor, hidden: Tensor) -> Tensor:
        return first * self.up(self.down(hidden)) + hidden


class DCNv2(nn.Module):
    """Score the concatenated outputs of cross layers and of an MLP."""

    def __init__(self, rows: int, fields: int, dim: int, sparse: bool) -> None:
        super().__init__()
        width = fields * dim
        self.vectors = nn.Embedding(rows, dim, sparse=sparse)
        self.cross = nn.ModuleList(CrossLayer(width, rank=32) for _ in range(2))
        self.mlp = nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.output = nn.Linear(width + 32, 1)
        nn.init.normal_(self.vectors.weight, std=0.01)

    def forward(self, ids: Tensor) -> Tensor:
        first = hidden = self.vectors(ids).flatten(1)
        for layer in self.cross:
            hidden = layer(first, hidden)
        return self.output(torch.cat([hidden, self.mlp(first)], 1)).squeeze(1)


class DCNv2Task(OneTableTask):
    """DCN-V2 with 16 dimensions and two cross layers of rank 32."""

    def model(self, sparse: bool) -> DCNv2:
        return DCNv2(self.rows, self.fields, dim=16, sparse=sparse)
