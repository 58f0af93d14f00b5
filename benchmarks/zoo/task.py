"""What the models of the zoo have in common: batches, a loss and three scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.zoo.data import MovieLens, Split, random_split, shuffled
from freqsgd.runs.metrics import auc


class Scores(NamedTuple):
    """The metric on validation samples, on test samples, and on the rarest fifth of the latter."""

    validation: float
    test: float
    rare: float


class Task(ABC):
    """A model, its training samples and its metric.

    An instance holds the encoded data and no weights, so that one serves all runs of a process.
    Its split never changes; a run's seed sets the initialization and the order of samples.
    """

    source: str  # dataset, a name that data.find knows
    metric: str
    higher_is_better = True
    epochs: int
    batch_size: int
    # How many ids a sample looks up, by name of the module; 1 where no number is given.
    tokens_per_sample: dict[str, int] = {}  # noqa: RUF012

    @abstractmethod
    def model(self, sparse: bool) -> nn.Module:
        """Return a newly initialized model whose tables have sparse or dense gradients."""

    @abstractmethod
    def batches(self, generator: torch.Generator) -> Iterator[Any]:
        """Yield the batches of one epoch."""

    @abstractmethod
    def loss(self, model: Any, batch: Any) -> Tensor:
        """Return the mean loss of a batch."""

    @abstractmethod
    def evaluate(self, model: Any) -> Scores:
        """Return the metric on validation, test and rare test samples."""


def rarest_fifth(counts: Tensor) -> Tensor:
    """Return the fifth of the samples whose rarest token has the lowest training counts."""
    return counts.argsort(stable=True)[: len(counts) // 5]


def random_batches(rows: Tensor, size: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Yield the rows in random order, ``size`` at a time."""
    yield from shuffled(rows, generator).split(size)


def mean_scores(validation: Tensor, test: Tensor, rare: Tensor) -> Scores:
    """Average one value per sample; ``rare`` holds positions among the test samples."""
    return Scores(float(validation.mean()), float(test.mean()), float(test[rare].mean()))


def target_ranks(scores: Tensor, targets: Tensor, left_out: Tensor) -> Tensor:
    """Return the rank of each row's target among the candidates that are not left out.

    Ties count against the model, and so does NaN.

    Args:
        scores: (samples, candidates); overwritten
        targets: (samples,)
        left_out: (samples, candidates), true where a candidate is known and must not be ranked
    """
    own = scores.gather(1, targets[:, None])
    scores.masked_fill_(left_out, -torch.inf).scatter_(1, targets[:, None], -torch.inf)
    return 1 + (~(scores < own)).sum(1)


class ClickTask(Task):
    """A task with a binary label for each row of inputs: log loss, measured by AUC.

    Subclasses set the labels, the split, and the positions of rare samples among the test rows.
    """

    metric = "AUC"
    labels: Tensor
    split: Split
    rare: Tensor

    @abstractmethod
    def inputs(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Return what the model is called with."""

    def batches(self, generator: torch.Generator) -> Iterator[Tensor]:
        return random_batches(self.split.train, self.batch_size, generator)

    def loss(self, model: nn.Module, batch: Tensor) -> Tensor:
        logits = model(*self.inputs(batch))
        return F.binary_cross_entropy_with_logits(logits, self.labels[batch])

    def evaluate(self, model: nn.Module) -> Scores:
        validation, test = self.split.validation, self.split.test
        return Scores(*(self._auc(model, rows) for rows in (validation, test, test[self.rare])))

    def _auc(self, model: nn.Module, rows: Tensor) -> float:
        logits = torch.cat([model(*self.inputs(part)) for part in rows.split(8192)])
        value = auc(logits.numpy(), self.labels[rows].numpy())
        return float("nan") if value is None else value


class RetrievalTask(Task):
    """A task that finds the films of a user among all that the user has not seen in training.

    Ratings of any value are interactions, split at random. The metric is the mean reciprocal rank
    of 8,000 held-out interactions.
    """

    metric = "MRR"
    source = "ml-1m"
    held_out = 8000

    def __init__(self, ratings: MovieLens, samples: int) -> None:
        self.ratings = ratings
        split = random_split(len(ratings.users))
        self.train = split.train[:samples]
        self.validation = split.validation[: self.held_out]
        self.test = split.test[: self.held_out]
        self.counts = ratings.item_counts(self.train)
        self.rare = rarest_fifth(self.counts[ratings.items[self.test]])
        self.seen = torch.zeros(ratings.user_count, ratings.item_count, dtype=torch.bool)
        self.seen[ratings.users[split.train], ratings.items[split.train]] = True

    def batches(self, generator: torch.Generator) -> Iterator[Any]:
        return random_batches(self.train, self.batch_size, generator)

    @abstractmethod
    def scorer(self, model: Any) -> Callable[[Tensor], Tensor]:
        """Return a function from users to their scores of all films."""

    def evaluate(self, model: nn.Module) -> Scores:
        scorer = self.scorer(model)

        def reciprocal_ranks(rows: Tensor) -> Tensor:
            users, items = self.ratings.users[rows], self.ratings.items[rows]
            parts = zip(users.split(1000), items.split(1000), strict=True)
            ranks = [target_ranks(scorer(user), item, self.seen[user]) for user, item in parts]
            return 1 / torch.cat(ranks)

        return mean_scores(
            reciprocal_ranks(self.validation), reciprocal_ranks(self.test), self.rare
        )
