"""A text in pieces: the batches that engines train on, the samples that they evaluate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from freqsgd.data.corpus import Paragraphs
from freqsgd.data.dataset import DataError
from freqsgd.nn.word2vec import SkipGram, WordModel
from freqsgd.training.text_settings import TextSettings
from freqsgd.training.windows import (
    Ids,
    Samples,
    cbow_samples,
    skipgram_samples,
    subsample,
    take,
)
from freqsgd.training.word_losses import WordLosses

__all__ = ["batches", "losses_by_word", "parts", "samples_of"]

_NUMBERS = 1 << 24  # that an evaluation holds at a time, more or less


def batches(
    text: Paragraphs,
    order: Ids,
    lrs: NDArray[np.float64],
    settings: TextSettings,
    share: NDArray[np.float64],
    first: tuple[int, int],
) -> Iterator[tuple[Ids, Ids, float]]:
    """The words of each step, where their paragraphs start, and the step's learning rate.

    Args:
        text: the training text
        order: its paragraphs, ``settings.batch_size`` for each step
        lrs: a rate for each step
        settings: batch size, subsampling and seed
        share: the chance that each word is kept
        first: number of the epoch, number of the first step; words are left out by these
    """
    size, (epoch, step) = settings.batch_size, first
    assert size is not None
    if len(lrs) != -(-len(order) // size):
        raise ValueError(
            f"{len(order)} paragraphs in batches of {size} do not make {len(lrs)} steps"
        )
    for number, lr in enumerate(lrs.tolist()):
        ids, starts = take(text, order[number * size : (number + 1) * size])
        _check(ids, len(share))
        if settings.subsample:
            draw = np.random.default_rng([settings.seed, epoch, step + number, 2])
            ids, starts = subsample(ids, starts, share, draw)
        yield ids, starts, lr


def samples_of(ids: Ids, starts: Ids, model: WordModel, settings: TextSettings) -> Samples:
    """The samples of some paragraphs."""
    make = skipgram_samples if isinstance(model, SkipGram) else cbow_samples
    return make(ids, starts, settings.window, full=settings.windows == "full")


def parts(text: Paragraphs, model: WordModel, settings: TextSettings) -> Iterator[Samples]:
    """The samples of a text, so many at a time that they fit into memory."""
    words = max(1, _NUMBERS // max(model.dim, 8 * settings.window))
    edges = np.flatnonzero(np.diff(text.starts[:-1] // words)) + 1
    for which in np.split(np.arange(len(text)), edges):
        ids, starts = take(text, which)
        _check(ids, model.words)
        samples = samples_of(ids, starts, model, settings)
        if len(samples):
            yield samples


def losses_by_word(
    found: Iterable[tuple[Samples, NDArray[np.float32]]], model: WordModel
) -> WordLosses:
    """Add up the losses of samples."""
    words, skipgram = model.words, isinstance(model, SkipGram)
    loss, number = np.zeros((2, words)), np.zeros((2, words), np.int64)
    for samples, losses in found:
        centres = samples.occurrences if skipgram else samples.targets
        for k, by in enumerate((samples.targets, centres)):
            loss[k] += np.bincount(by, losses, words)
            number[k] += np.bincount(by, minlength=words)
    if skipgram:
        return WordLosses(loss[0], number[0], loss[1], number[1])
    return WordLosses(loss[0], number[0])


def _check(ids: Ids, words: int) -> None:
    if len(ids) and not (ids.min() >= 0 and ids.max() < words):
        raise DataError(f"the text has words beyond the vocabulary of {words}")
