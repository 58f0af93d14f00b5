"""Factorization machine on MovieLens-1M: does a user like a film?"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from benchmarks.zoo.data import movielens, random_split
from benchmarks.zoo.task import ClickTask, rarest_fifth


class FM(nn.Module):
    """Score a user and a film by a dot product, a weight for each and a bias."""

    def __init__(self, rows: int, dim: int, sparse: bool) -> None:
        super().__init__()
        self.vectors = nn.Embedding(rows, dim, sparse=sparse)
        self.weights = nn.Embedding(rows, 1, sparse=sparse)
        self.bias = nn.Parameter(torch.zeros(()))
        nn.init.xavier_uniform_(self.vectors.weight)
        nn.init.zeros_(self.weights.weight)

    def forward(self, ids: Tensor) -> Tensor:
        user, item = self.vectors(ids).unbind(1)
        return (user * item).sum(1) + self.weights(ids).sum((1, 2)) + self.bias


class FMTask(ClickTask):
    """Users and films share a table. The rare token of a sample is its film."""

    source = "ml-1m"
    epochs = 3
    batch_size = 1024
    tokens_per_sample = {"vectors": 2, "weights": 2}  # noqa: RUF012

    def __init__(self) -> None:
        ratings = movielens()
        self.rows = ratings.user_count + ratings.item_count
        self.ids = torch.stack([ratings.users, ratings.user_count + ratings.items], 1)
        self.labels = ratings.liked
        self.split = random_split(len(self.labels))
        counts = ratings.item_counts(self.split.train)
        self.rare = rarest_fifth(counts[ratings.items[self.split.test]])

    def model(self, sparse: bool) -> FM:
        return FM(self.rows, dim=64, sparse=sparse)

    def inputs(self, rows: Tensor) -> tuple[Tensor]:
        return (self.ids[rows],)
