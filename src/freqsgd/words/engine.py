"""What trains word vectors, by loss."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from freqsgd.nn.word2vec import CBOW, SkipGram, WordModel
from freqsgd.optimizers import Rule
from freqsgd.runs.loop import AnyEngine
from freqsgd.words.corpus import Paragraphs
from freqsgd.words.losses import WordLosses
from freqsgd.words.settings import TextSettings

__all__ = ["WordEngine", "compile_kernels", "new_model", "word_engine"]


class WordEngine(AnyEngine, Protocol):
    """Takes the steps, and evaluates."""

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
        from freqsgd.words.softmax import SoftmaxEngine

        return SoftmaxEngine(model, rule, settings, counts, threads)
    from freqsgd.words.negative import NegativeEngine

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
    settings = replace(settings, dim=4, window=1, negatives=1, subsample=0.0, batch_size=1)
    text = Paragraphs(np.array([0, 1, 0], np.int32), np.array([0, 3]), raw_words=3)
    engine = word_engine(new_model(2, settings), rule, settings, np.array([2, 1]), threads=1)
    for _ in engine.train(text, np.arange(1), np.array([0.01]), epoch=0):
        pass
