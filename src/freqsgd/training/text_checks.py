"""What a text must have to be trained on, and what is worth a warning."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np

from freqsgd.data.corpus import Corpus, Paragraphs
from freqsgd.data.dataset import DataError, DataWarning
from freqsgd.training.available_memory import available_memory
from freqsgd.training.text_settings import TextSettings

__all__ = ["blank_loss", "check_text", "number_of_samples", "warn_of_few", "within"]

_FEW = 0.01  # of a text's samples, that subsampling leaves


def check_text(corpus: Corpus, settings: TextSettings) -> None:
    """Refuse a text without samples; warn of held-out text without words."""
    shortest = 2 * settings.window + 1 if settings.windows == "full" else 2
    longest = _longest(corpus.train)
    if longest < shortest:
        raise DataError(_too_short(corpus, shortest, longest))
    if settings.patience is not None and _longest(corpus.validation) < shortest:
        raise DataError(
            f"{corpus.name} has no text to validate on, by which patience chooses an epoch: give "
            "some, or leave patience out"
        )
    _check_memory(len(corpus.words), settings.dim)
    for name in ("validation", "test"):
        text: Paragraphs = getattr(corpus, name)
        if text.raw_words and not len(text.ids):
            warnings.warn(
                f"none of the {text.raw_words:,} words of the {name} text is in the vocabulary, so "
                f"there is no {name} loss",
                DataWarning,
                stacklevel=4,
            )


def _check_memory(words: int, dim: int) -> None:
    """Refuse two tables of vectors that do not fit."""
    available, of_number = available_memory(), 2 * 4 * words
    if available is not None and of_number * dim > available:
        raise DataError(
            f"vectors of {dim:,} numbers for {words:,} words do not fit: they take "
            f"{of_number * dim / 1e9:.1f} GB, {available / 1e9:.1f} GB are available. Use a "
            f"smaller dimension (--dim {available // of_number} at most), fewer words or a larger "
            "machine"
        )


def within(settings: TextSettings, corpus: Corpus) -> TextSettings:
    """The same with a window no wider than the longest paragraph, where windows are cut anyway."""
    if settings.windows == "full":
        return settings
    longest = max(_longest(text) for text in (corpus.train, corpus.validation, corpus.test))
    return replace(settings, window=min(settings.window, longest - 1))


def number_of_samples(text: Paragraphs, settings: TextSettings) -> int:
    """How many a text has, nothing being left out."""
    lengths, window = np.diff(text.starts), settings.window
    if settings.windows == "full":
        middles = int(np.maximum(lengths - 2 * window, 0).sum())
        return middles * (2 * window if settings.model == "skipgram" else 1)
    if settings.model == "cbow":
        return int(lengths[lengths > 1].sum())
    reach = np.minimum(window, np.maximum(lengths - 1, 0))  # the sum of lengths - d for d = 1, ...
    return int((2 * reach * lengths - reach * (reach + 1)).sum())


def warn_of_few(samples: int, text: Paragraphs, settings: TextSettings) -> None:
    """Say where subsampling leaves next to nothing of a text's samples in an epoch."""
    whole = number_of_samples(text, settings)
    if samples < _FEW * whole:
        warnings.warn(
            f"subsample {settings.subsample:g} leaves {samples:,} of {whole:,} samples in an "
            "epoch: use a larger value",
            DataWarning,
            stacklevel=2,
        )


def warn_of_nothing_learned(loss: float | None, blank: float) -> None:
    """Warn of a model that is worse than one that knows nothing.

    The loss of negative sampling is bounded, so that a rate that is far too high does not diverge.
    """
    if loss is not None and loss > blank:
        warnings.warn(
            f"the validation loss {loss:.4g} of the best epoch is above the {blank:.4g} of a model "
            "that knows nothing: try a smaller learning rate, or more text",
            DataWarning,
            stacklevel=2,
        )


def blank_loss(words: int, settings: TextSettings) -> float:
    """The loss of a model that knows nothing: for it all words are equally likely."""
    if settings.loss == "softmax":
        return math.log(words)
    return math.log(2) * (1 + settings.negatives)


def _longest(text: Paragraphs) -> int:
    return int(np.diff(text.starts).max(initial=0))


def _too_short(corpus: Corpus, shortest: int, longest: int) -> str:
    found = f"no paragraph of {corpus.name} has the {shortest} words that a sample takes, the "
    found += f"longest has {longest}"
    advice = ["a smaller window", "windows all"] if shortest > 2 else []
    if len(corpus.train.ids) < corpus.train.raw_words:
        found += " after rare words were left out"
        advice = ["a smaller min_count", *advice]
    return f"{found}: try {', '.join(advice) or 'whole sentences on a line'}"
