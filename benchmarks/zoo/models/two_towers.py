"""Two towers on MovieLens-1M, trained by softmax over the batch with logQ correction."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.zoo.data import movielens
from benchmarks.zoo.task import RetrievalTask


class TwoTowers(nn.Module):
    """Map users and films, the latter with their genres, to vectors of one space."""

    def __init__(self, users: int, genres: Tensor, dim: int, sparse: bool) -> None:
        super().__init__()
        self.genre_ids = genres
        self.users = nn.Embedding(users, dim, sparse=sparse)
        self.items = nn.Embedding(len(genres), dim, sparse=sparse)
        self.genres = nn.EmbeddingBag(
            int(genres.max()) + 1, 8, mode="mean", sparse=sparse, padding_idx=0
        )
        self.user_tower = nn.Linear(dim, dim)
        self.item_tower = nn.Linear(dim + 8, dim)
        for table in (self.users, self.items, self.genres):
            nn.init.normal_(table.weight, std=0.1)

    def user_vectors(self, users: Tensor) -> Tensor:
        return self.user_tower(self.users(users))

    def item_vectors(self, items: Tensor) -> Tensor:
        genres = self.genres(self.genre_ids[items])
        return self.item_tower(torch.cat([self.items(items), genres], 1))


class TwoTowersTask(RetrievalTask):
    """The films of a batch are each other's negatives. The rare token is the film.

    Frequent films are negatives more often than rare ones. Subtracting the logarithm of a film's
    frequency from its score corrects for that.
    """

    epochs = 3
    batch_size = 512
    tokens_per_sample = {"genres": 2}  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__(movielens(), samples=200_000)
        self.log_frequencies = (self.counts.clamp(min=1) / len(self.train)).log()

    def model(self, sparse: bool) -> TwoTowers:
        return TwoTowers(self.ratings.user_count, self.ratings.genres, dim=32, sparse=sparse)

    def loss(self, model: TwoTowers, batch: Tensor) -> Tensor:
        users, items = self.ratings.users[batch], self.ratings.items[batch]
        scores = model.user_vectors(users) @ model.item_vectors(items).T
        return F.cross_entropy(scores - self.log_frequencies[items], torch.arange(len(batch)))

    def scorer(self, model: TwoTowers) -> Callable[[Tensor], Tensor]:
        items = model.item_vectors(torch.arange(self.ratings.item_count))
        return lambda users: model.user_vectors(users) @ items.T
