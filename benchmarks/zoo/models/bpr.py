"""Matrix factorization on MovieLens-1M, trained by Bayesian personalized ranking (BPR)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.zoo.data import movielens
from benchmarks.zoo.task import RetrievalTask


class Factorization(nn.Module):
    """Score films for a user by a dot product and a bias of the film."""

    def __init__(self, users: int, items: int, dim: int, sparse: bool) -> None:
        super().__init__()
        self.users = nn.Embedding(users, dim, sparse=sparse)
        self.items = nn.Embedding(items, dim, sparse=sparse)
        self.biases = nn.Embedding(items, 1, sparse=sparse)
        nn.init.normal_(self.users.weight, std=0.1)
        nn.init.normal_(self.items.weight, std=0.1)
        nn.init.zeros_(self.biases.weight)

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        products = self.users(users)[:, None] * self.items(items)
        return products.sum(2) + self.biases(items).squeeze(2)


class BPRTask(RetrievalTask):
    """A film that the user rated must score above a random one. The rare token is the film."""

    epochs = 3
    batch_size = 1024
    tokens_per_sample = {"items": 2, "biases": 2}  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__(movielens(), samples=500_000)

    def model(self, sparse: bool) -> Factorization:
        return Factorization(self.ratings.user_count, self.ratings.item_count, 32, sparse)

    def batches(self, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
        for rows in super().batches(generator):
            negatives = torch.randint(self.ratings.item_count, rows.shape, generator=generator)
            yield self.ratings.users[rows], torch.stack([self.ratings.items[rows], negatives], 1)

    def loss(self, model: Factorization, batch: tuple[Tensor, Tensor]) -> Tensor:
        positive, negative = model(*batch).unbind(1)
        return F.softplus(negative - positive).mean()

    def scorer(self, model: Factorization) -> Callable[[Tensor], Tensor]:
        items, biases = model.items.weight, model.biases.weight
        return lambda users: model.users(users) @ items.T + biases.T
