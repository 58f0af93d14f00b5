"""What trains a word model: the part that both losses share, and the losses of a text by word."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from freqsgd.errors import DataError
from freqsgd.nn.word2vec import CBOW, SkipGram, WordModel
from freqsgd.optimizers import Rule
from freqsgd.runs.metrics import CLASSES, frequency_classes
from freqsgd.words.corpus import Paragraphs
from freqsgd.words.settings import TextSettings, check_rule
from freqsgd.words.windows import (
    Ids,
    Samples,
    cbow_samples,
    kept_share,
    skipgram_samples,
    subsample,
    take,
)

_NUMBERS = 1 << 24  # that an evaluation holds at a time, more or less


@dataclass(frozen=True, eq=False)
class WordLosses:
    """Losses added up by word.

    Args:
        loss, samples: sums of the losses and numbers of the samples, a column for each word of the
            vocabulary; the first row is by the word that is predicted, the second, for skip-gram,
            by the word that predicts
    """

    loss: NDArray[np.float64]
    samples: NDArray[np.int64]

    @property
    def mean(self) -> float | None:
        """Return the mean over all samples; None if there are none."""
        total = int(self.samples[0].sum())
        return float(self.loss[0].sum()) / total if total else None

    def by_frequency(self, counts: NDArray[Any], row: int = 0) -> dict[str, float | None]:
        """Return the mean loss of head, torso and tail among the words that are predicted.

        Args:
            counts: occurrences of each word in the training text
            row: of the sums; 1 for the words that predict
        """
        classes = frequency_classes(counts, [len(counts)])
        chosen = ((name, classes == k) for k, name in enumerate(CLASSES))
        return {
            name: WordLosses(self.loss[row:, words], self.samples[row:, words]).mean
            for name, words in chosen
        }

    def by_centre_frequency(self, counts: NDArray[Any]) -> dict[str, float | None] | None:
        """Return the same among the words that predict; None for CBOW, where several do."""
        return self.by_frequency(counts, 1) if len(self.loss) > 1 else None


class WordEngine(ABC):
    """Takes the steps of a word model, and evaluates it.

    The frequency of a word in the input table is per sample: for skip-gram its share of the pairs,
    for CBOW, where a sample has several words, the sum over words is about twice the window.

    Args:
        model: trained in place; float32, on the CPU
        rule: the optimizer
        settings: window, batch size, subsampling and seed
        counts: occurrences of each word in the training text
        threads: None for torch's number

    Attributes:
        samples, steps: taken so far
    """

    def __init__(
        self,
        model: WordModel,
        rule: Rule,
        settings: TextSettings,
        counts: NDArray[np.int64],
        threads: int | None = None,
    ) -> None:
        check_rule(rule, settings)
        _check_model(model, settings, counts)
        self.model, self.rule, self.settings = model, rule, settings
        self.threads = torch.get_num_threads() if threads is None else threads
        if self.threads < 1:
            raise ValueError(f"threads must be at least 1, got {threads}")
        self.samples = self.steps = 0
        self._share = kept_share(counts, settings.subsample)
        self._prepare(counts)

    @abstractmethod
    def _prepare(self, counts: NDArray[np.int64]) -> None:
        """Make the optimizer's state, given the occurrences of each word."""

    @property
    @abstractmethod
    def state(self) -> dict[str, Tensor]:
        """What the optimizer keeps, by name."""

    @property
    def state_bytes(self) -> int:
        """Bytes that the optimizer keeps beside the weights."""
        return sum(tensor.nbytes for tensor in self.state.values())

    @abstractmethod
    def load_state(self, state: dict[str, Tensor], samples: int, steps: int) -> None:
        """Continue from a state that was saved."""

    def train(
        self, text: Paragraphs, order: Ids, lrs: NDArray[np.float64], epoch: int
    ) -> Iterator[NDArray[np.float64]]:
        """Take one step per entry of ``lrs``, over the paragraphs ``order`` names.

        Yields sum of the losses and number of samples, (1, 2), of each step. A step whose
        paragraphs are too short for a sample changes nothing.
        """
        settings, size = self.settings, self.settings.batch_size
        if len(lrs) != -(-len(order) // size):
            raise ValueError(
                f"{len(order)} paragraphs in batches of {size} do not make {len(lrs)} steps"
            )
        for number, lr in enumerate(lrs.tolist()):
            ids, starts = self._take(text, order[number * size : (number + 1) * size])
            if settings.subsample:
                draw = np.random.default_rng([settings.seed, epoch, self.steps, 2])
                ids, starts = subsample(ids, starts, self._share, draw)
            before = self.samples
            loss = self._step(ids, starts, lr, epoch)
            self.steps += 1
            yield np.array([[loss, self.samples - before]])

    @abstractmethod
    def evaluate(self, text: Paragraphs) -> WordLosses:
        """Return the losses of a text, all of its words included; the model stays as it is."""

    @abstractmethod
    def _step(self, ids: Ids, starts: Ids, lr: float, epoch: int) -> float:
        """Learn from paragraphs, count their samples, and return the sum of the losses."""

    def _add_up(
        self, text: Paragraphs, losses_of: Callable[[Samples], NDArray[np.float32]]
    ) -> WordLosses:
        """Add up losses by word, over so many samples at a time that they fit into memory."""
        words, skipgram = self.model.words, isinstance(self.model, SkipGram)
        loss, number = np.zeros((1 + skipgram, words)), np.zeros((1 + skipgram, words), np.int64)
        at_once = max(1, _NUMBERS // max(self.model.dim, 8 * self.settings.window))
        edges = np.flatnonzero(np.diff(text.starts[:-1] // at_once)) + 1
        for which in np.split(np.arange(len(text)), edges):
            samples = self._samples(*self._take(text, which))
            if len(samples):
                losses = losses_of(samples)
                for k, by in enumerate((samples.targets, samples.occurrences)[: 1 + skipgram]):
                    loss[k] += np.bincount(by, losses, words)
                    number[k] += np.bincount(by, minlength=words)
        return WordLosses(loss, number)

    def _take(self, text: Paragraphs, which: Ids) -> tuple[Ids, Ids]:
        ids, starts = take(text, which)
        if len(ids) and not (ids.min() >= 0 and ids.max() < self.model.words):
            raise DataError(f"the text has words beyond the vocabulary of {self.model.words}")
        return ids, starts

    def _samples(self, ids: Ids, starts: Ids) -> Samples:
        make = skipgram_samples if isinstance(self.model, SkipGram) else cbow_samples
        return make(ids, starts, self.settings.window, full=self.settings.windows == "full")


def _check_model(model: WordModel, settings: TextSettings, counts: NDArray[np.int64]) -> None:
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
