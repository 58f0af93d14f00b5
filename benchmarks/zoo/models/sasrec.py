"""SASRec on MovieLens-1M: a causal transformer that predicts a user's next film."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.zoo.data import movielens
from benchmarks.zoo.task import (
    Scores,
    Task,
    mean_scores,
    rarest_fifth,
    target_ranks,
)

LENGTH = 20
NEGATIVES = 128


class SASRec(nn.Module):
    """One transformer layer; the table of films is used for the input and for the output."""

    def __init__(self, items: int, dim: int, sparse: bool) -> None:
        super().__init__()
        self.items = nn.Embedding(items + 1, dim, sparse=sparse)  # the last row is padding
        self.positions = nn.Parameter(0.1 * torch.randn(LENGTH, dim))
        self.attention_norm = nn.LayerNorm(dim)
        self.query_key_value = nn.Linear(dim, 3 * dim)
        self.attention_output = nn.Linear(dim, dim)
        self.mlp = nn.Sequential(
            nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim)
        )
        self.norm = nn.LayerNorm(dim)
        self.scale = math.sqrt(dim) / 2
        nn.init.normal_(self.items.weight, std=1 / (2 * math.sqrt(dim)))

    def forward(self, sequences: Tensor) -> Tensor:
        """Return a vector for each position, to be compared with the vectors of films."""
        hidden = self.scale * self.items(sequences) + self.positions
        parts = self.query_key_value(self.attention_norm(hidden)).chunk(3, -1)
        query, key, value = (part[:, None] for part in parts)  # one head
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)[:, 0]
        hidden = hidden + self.attention_output(mixed)
        return self.norm(hidden + self.mlp(hidden))


class SASRecTask(Task):
    """The last film of every second user is the test, the one before it the validation.

    The loss is a softmax over the next film and negatives that the batch shares. The metric is
    NDCG@10 among all films that the user has not seen. The rare token is the film to predict.
    """

    source = "ml-1m"
    metric = "NDCG@10"
    epochs = 4
    batch_size = 64
    windows_per_epoch = 12_000
    tokens_per_sample = {"items": 2}  # noqa: RUF012

    def __init__(self) -> None:
        ratings = movielens()
        self.item_count = ratings.item_count
        sequences = ratings.items.split(ratings.users.bincount().tolist())
        windows = [window for films in sequences for window in self._windows(films[:-2])]
        self.windows = torch.stack(windows)
        asked = sequences[::2]
        self.validation = torch.stack([self._last(films[:-1]) for films in asked])
        self.test = torch.stack([self._last(films) for films in asked])
        self.seen = torch.zeros(len(asked), self.item_count, dtype=torch.bool)
        for row, films in zip(self.seen, asked, strict=True):
            row[films[:-2]] = True
        counts = torch.cat([films[:-2] for films in sequences]).bincount(minlength=self.item_count)
        self.rare = rarest_fifth(counts[self.test[:, -1]])

    def _last(self, films: Tensor) -> Tensor:
        """Return the last LENGTH + 1 films, padded at the front."""
        films = films[-LENGTH - 1 :]
        return F.pad(films, (LENGTH + 1 - len(films), 0), value=self.item_count)

    def _windows(self, films: Tensor) -> list[Tensor]:
        """Cut films into windows of LENGTH inputs, each shifted by one to give the targets."""
        return [self._last(films[:end]) for end in range(len(films), 1, -LENGTH)]

    def model(self, sparse: bool) -> SASRec:
        return SASRec(self.item_count, dim=32, sparse=sparse)

    def batches(self, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
        order = torch.randperm(len(self.windows), generator=generator)[: self.windows_per_epoch]
        for rows in order.split(self.batch_size):
            negatives = torch.randint(self.item_count, (NEGATIVES,), generator=generator)
            yield self.windows[rows], negatives

    def loss(self, model: SASRec, batch: tuple[Tensor, Tensor]) -> Tensor:
        windows, negatives = batch
        inputs, targets = windows[:, :-1], windows[:, 1:]
        known = (inputs != self.item_count) & (targets != self.item_count)
        hidden, targets = model(inputs)[known], targets[known]
        positive = (hidden * model.items(targets)).sum(1, keepdim=True)
        negative = hidden @ model.items(negatives).T + math.log(self.item_count / NEGATIVES)
        negative = negative.masked_fill(targets[:, None] == negatives, -torch.inf)
        return F.cross_entropy(torch.cat([positive, negative], 1), torch.zeros_like(targets))

    def evaluate(self, model: SASRec) -> Scores:
        seen_before_test = self.seen.scatter(1, self.test[:, -2:-1], True)
        return mean_scores(
            self._gains(model, self.validation, self.seen),
            self._gains(model, self.test, seen_before_test),
            self.rare,
        )

    def _gains(self, model: SASRec, windows: Tensor, seen: Tensor) -> Tensor:
        """Return each user's NDCG@10, which has one relevant film."""
        scores = model(windows[:, :-1])[:, -1] @ model.items.weight[: self.item_count].T
        ranks = target_ranks(scores, windows[:, -1], seen)
        return torch.where(ranks <= 10, 1 / torch.log2(ranks + 1), 0.0)
