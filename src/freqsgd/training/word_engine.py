"""What trains word vectors, by loss."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from freqsgd.data.corpus import Paragraphs
from freqsgd.nn.word2vec import CBOW, SkipGram, WordModel
from freqsgd.training.rules import Rule
from freqsgd.training.run import AnyEngine
from freqsgd.training.text_settings import TextSettings
from freqsgd.training.word_losses import WordLosses

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


def check_model(model: WordModel, settings: TextSettings, counts: NDArray[np.int64]) -> None:
    """Refuse a model that is not the one that the settings describe."""
    for weight in (model.input.weight, model.output.weight):
        if weight.dtype != torch.float32 or weight.device.type != "cpu":
            raise ValueError("the model must be float32 on the CPU")
        if not weight.is_contiguous():
            raise ValueError("the weights must be contiguous")
    kind = "cbow" if isinstance(model, CBOW) else "skipgram"
    loss = "softmax" if model.biased else "negative"
    if (kind, loss, model.dim) != (settings.model, settings.loss, settings.dim):
        raise ValueError(
            f"the settings are for {settings.model}, {settings.loss}, dim {settings.dim}; the "
            f"model is {kind} of dim {model.dim}, and {'has a' if model.biased else 'has no'} bias"
        )
    if len(counts) != model.words:
        raise ValueError(f"{len(counts)} counts for a model of {model.words} words")


def compile_kernels(rule: Rule, settings: TextSettings) -> None:
    """Take a step with a tiny model, so that nothing is compiled while training is timed."""
    settings = replace(settings, dim=4, window=1, negatives=1, subsample=0.0, batch_size=1)
    text = Paragraphs(np.array([0, 1, 0], np.int32), np.array([0, 3]), raw_words=3)
    engine = word_engine(new_model(2, settings), rule, settings, np.array([2, 1]), threads=1)
    for _ in engine.train(text, np.arange(1), np.array([0.01]), epoch=0):
        pass
