"""What trains word vectors, by loss."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from freqsgd.data.corpus import Paragraphs
from freqsgd.nn.word2vec import CBOW, SkipGram, WordModel
from freqsgd.training.rules import Rule
from freqsgd.training.text_settings import TextSettings
from freqsgd.training.word_losses import WordLosses

__all__ = ["WordEngine", "compile_kernels", "new_model", "word_engine"]


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


def new_model(words: int, settings: TextSettings) -> WordModel:
    """A model as it starts."""
    kind = CBOW if settings.model == "cbow" else SkipGram
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        bias = settings.loss == "softmax"
        return kind(words, settings.dim, bias=bias, max_norm=settings.max_norm)


def compile_kernels(rule: Rule, settings: TextSettings) -> None:
    """Take a step with a tiny model, so that nothing is compiled while training is timed."""
    settings = replace(settings, dim=4, window=1, subsample=0.0, batch_size=1)
    text = Paragraphs(np.array([0, 1, 0], np.int32), np.array([0, 3]), raw_words=3)
    engine = word_engine(new_model(2, settings), rule, settings, np.array([2, 1]), threads=1)
    for _ in engine.train(text, np.arange(1), np.array([0.01]), epoch=0):
        pass
