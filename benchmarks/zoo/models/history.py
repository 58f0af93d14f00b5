"""History model on MovieLens-1M: the films that a user liked before, and a candidate film."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from benchmarks.zoo.data import MovieLens, Split, in_three, movielens, shuffled
from benchmarks.zoo.task import ClickTask, rarest_fifth

LENGTH = 20


class HistoryModel(nn.Module):
    """Score a film by an MLP over its vector, its genres and the mean of the user's history."""

    def __init__(self, genres: Tensor, dim: int, sparse: bool) -> None:
        super().__init__()
        items = len(genres)
        self.genre_ids = genres
        self.history = nn.EmbeddingBag(
            items + 1, dim, mode="mean", sparse=sparse, padding_idx=items
        )
        self.items = nn.Embedding(items, dim, sparse=sparse)
        self.genres = nn.EmbeddingBag(
            int(genres.max()) + 1, 8, mode="mean", sparse=sparse, padding_idx=0
        )
        self.mlp = nn.Sequential(nn.Linear(3 * dim + 8, 64), nn.ReLU(), nn.Linear(64, 1))
        for table in (self.history, self.items, self.genres):
            nn.init.normal_(table.weight, std=0.05)

    def forward(self, history: Tensor, items: Tensor) -> Tensor:
        past, film = self.history(history), self.items(items)
        genres = self.genres(self.genre_ids[items])
        return self.mlp(torch.cat([past, film, past * film, genres], 1)).squeeze(1)


def histories(ratings: MovieLens) -> Tensor:
    """Return the last films that the user liked before each rating, the latest first."""
    liked = ratings.liked.bool()
    films = ratings.items[liked]
    before = liked.cumsum(0) - liked.long()  # liked films in all rows above
    first_row = torch.searchsorted(ratings.users, ratings.users)
    positions = before[:, None] - 1 - torch.arange(LENGTH)
    known = positions >= before[first_row][:, None]
    return torch.where(known, films[positions.clamp(0, len(films) - 1)], ratings.item_count)


class HistoryTask(ClickTask):
    """Does a user like a film, given the past? Split by time. The rare token is the film."""

    source = "ml-1m"
    epochs = 3
    batch_size = 1024
    samples = 150_000
    tokens_per_sample = {"history": LENGTH, "genres": 2}  # noqa: RUF012

    def __init__(self) -> None:
        self.ratings = movielens()
        self.labels = self.ratings.liked
        self.histories = histories(self.ratings)
        train, validation, test = in_three(self.ratings.times.argsort(stable=True))
        chosen = shuffled(train, torch.Generator().manual_seed(0))[: self.samples]
        self.split = Split(chosen, validation, test)
        self.rare = rarest_fifth(self.ratings.item_counts(chosen)[self.ratings.items[test]])

    def model(self, sparse: bool) -> HistoryModel:
        return HistoryModel(self.ratings.genres, dim=32, sparse=sparse)

    def inputs(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        return self.histories[rows], self.ratings.items[rows]
