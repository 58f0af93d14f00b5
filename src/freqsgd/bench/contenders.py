"""Steps of a factorization machine on batches in memory: each contender says how fast it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from freqsgd.nn.fm import FM
from freqsgd.streams.batches import batches
from freqsgd.streams.clicks import ClickLog, ClickStream
from freqsgd.training.engine import Engine
from freqsgd.training.rules import Rule

__all__ = ["Contender", "Examples", "click_log", "engine_steps", "examples", "torch_steps"]

Contender = Callable[[], float]  # takes some steps, and returns examples per second


class Examples(NamedTuple):
    """Batches of generated clicks."""

    stream: ClickStream
    ids: NDArray[np.int32]
    labels: NDArray[np.uint8]
    batch_size: int

    @property
    def sizes(self) -> list[int]:
        """Rows of each feature's table."""
        return [field.size for field in self.stream.fields]

    def batch(self, number: int) -> slice:
        """Where a batch is."""
        return slice(number * self.batch_size, (number + 1) * self.batch_size)


def click_log(features: int, tokens: int, rows: int, days: int = 1) -> ClickLog:
    """Features of one size by power laws with exponents from 0.8 to 1.3."""
    exponents = tuple(np.linspace(0.8, 1.3, features).tolist())
    return ClickLog((tokens,) * features, exponents, days=days, rows=rows)


def examples(
    features: int, tokens: int, batch_size: int, number: int, rows: int | None = None
) -> Examples:
    """So many batches, hashed to tables of as many rows as there are tokens, or of ``rows``."""
    log = click_log(features, tokens, number * batch_size)
    stream = ClickStream(log, [rows or tokens] * features)
    taken = list(batches(stream.chunks(0, 1), batch_size))
    ids = np.concatenate([batch.ids for batch in taken])
    labels = np.concatenate([batch.labels for batch in taken])
    return Examples(stream, ids, labels, batch_size)


class Bags(nn.Module):
    """A factorization machine with an EmbeddingBag for each feature."""

    def __init__(self, sizes: Sequence[int], dim: int) -> None:
        super().__init__()
        self.dim = dim
        bound = (6 / (sum(sizes) + dim)) ** 0.5
        self.bias = nn.Parameter(torch.zeros(()))
        self.tables = nn.ModuleList(
            nn.EmbeddingBag.from_pretrained(
                torch.empty(size, dim + 1).uniform_(-bound, bound),
                freeze=False,
                mode="sum",
                sparse=True,
            )
            for size in sizes
        )

    def forward(self, ids: Tensor) -> Tensor:
        """The log odds of each example."""
        rows = torch.stack([table(ids[:, n : n + 1]) for n, table in enumerate(self.tables)], 1)
        vectors, linear = rows[..., : self.dim], rows[..., self.dim]
        pairs = vectors.sum(1).square().sum(1) - vectors.square().sum((1, 2))
        return self.bias + linear.sum(1) + pairs / 2


def torch_steps(some: Examples, dim: int, number: int) -> Contender:
    """Of torch: EmbeddingBag with sparse gradients, and Adagrad; it takes the first batches."""
    model = Bags(some.sizes, dim)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
    tokens, clicks = torch.from_numpy(some.ids).long(), torch.from_numpy(some.labels).float()

    def steps() -> float:
        start = time.perf_counter()
        for batch in map(some.batch, range(number)):
            optimizer.zero_grad()
            odds = model(tokens[batch])
            nn.functional.binary_cross_entropy_with_logits(odds, clicks[batch]).backward()
            optimizer.step()
        return number * some.batch_size / (time.perf_counter() - start)

    return steps


def engine_steps(some: Examples, model: FM, optimizer: str, threads: int) -> Contender:
    """Of the engine, over all batches."""
    rule = Rule(optimizer, 0.05)
    engine = Engine(model, rule, batch_size=some.batch_size, threads=threads)
    order, logits = np.arange(len(some.ids)), np.empty(len(some.ids), np.float32)
    lrs = np.full(len(some.ids) // some.batch_size, rule.lr)

    def steps() -> float:
        start = time.perf_counter()
        for _ in engine.train(some.ids, some.labels, order, lrs, logits=logits):
            pass
        return len(some.ids) / (time.perf_counter() - start)

    return steps
