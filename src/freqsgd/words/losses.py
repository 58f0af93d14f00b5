"""The loss of a text, word by word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from freqsgd.nn.word2vec import CBOW, WordModel
from freqsgd.runs.metrics import CLASSES, frequency_classes
from freqsgd.words.settings import TextSettings

__all__ = ["WordLosses", "check_model"]


@dataclass(frozen=True, eq=False)
class WordLosses:
    """Losses added up by word; every array has an entry for each word of the vocabulary.

    Args:
        loss, samples: sum of the losses and number of the samples in which a word is predicted
        centre_loss, centre_samples: the same by the word that predicts, for skip-gram
    """

    loss: NDArray[np.float64]
    samples: NDArray[np.int64]
    centre_loss: NDArray[np.float64] | None = None
    centre_samples: NDArray[np.int64] | None = None

    @property
    def mean(self) -> float | None:
        """Over all samples; None if there are none."""
        return _mean(self.loss, self.samples)

    def by_frequency(self, counts: NDArray[Any]) -> dict[str, float | None]:
        """Mean loss of head, torso and tail among the words that are predicted.

        Args:
            counts: occurrences of each word in the training text
        """
        return _by_class(self.loss, self.samples, counts)

    def by_centre_frequency(self, counts: NDArray[Any]) -> dict[str, float | None] | None:
        """The same among the words that predict; None for CBOW, where several do."""
        if self.centre_loss is None or self.centre_samples is None:
            return None
        return _by_class(self.centre_loss, self.centre_samples, counts)


def _by_class(
    loss: NDArray[np.float64], samples: NDArray[np.int64], counts: NDArray[Any]
) -> dict[str, float | None]:
    classes = frequency_classes(counts, [len(counts)])
    chosen = ((name, classes == k) for k, name in enumerate(CLASSES))
    return {name: _mean(loss[words], samples[words]) for name, words in chosen}


def _mean(loss: NDArray[np.float64], samples: NDArray[np.int64]) -> float | None:
    total = int(samples.sum())
    return float(loss.sum()) / total if total else None


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
