"""What trains word vectors, by loss."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from freqsgd.data.corpus import Paragraphs
from freqsgd.nn.word2vec import WordModel
from freqsgd.training.rules import Rule
from freqsgd.training.text_settings import TextSettings
from freqsgd.training.word_losses import WordLosses

__all__ = ["WordEngine", "word_engine"]


class WordEngine(Protocol):
    """Takes the steps, and evaluates.

    Attributes:
        samples, steps: taken so far
    """

    samples: int
    steps: int

    @property
    def state(self) -> dict[str, Tensor]:
        """What the optimizer keeps, by name."""

    @property
    def state_bytes(self) -> int:
        """Bytes that the optimizer keeps beside the weights."""

    def load_state(self, state: dict[str, Tensor], samples: int, steps: int) -> None:
        """Continue from a state that was saved."""

    def train(
        self,
        text: Paragraphs,
        order: NDArray[np.int64],
        lrs: NDArray[np.float64],
        epoch: int,
    ) -> Iterator[NDArray[np.float64]]:
        """Take one step per entry of ``lrs``, over the paragraphs ``order`` names.

        Yields, for one or more steps at a time, the sum of the losses and the number of samples
        of each.
        """

    def evaluate(self, text: Paragraphs) -> WordLosses:
        """The loss of a text."""


def word_engine(
    model: WordModel,
    rule: Rule,
    settings: TextSettings,
    counts: NDArray[np.int64],
    threads: int | None = None,
) -> WordEngine:
    """The engine that trains a model."""
    if settings.loss == "softmax":
        from freqsgd.training.softmax_engine import SoftmaxEngine

        return SoftmaxEngine(model, rule, settings, counts, threads)
    from freqsgd.training.negative_engine import NegativeEngine

    return NegativeEngine(model, rule, settings, counts, threads)
