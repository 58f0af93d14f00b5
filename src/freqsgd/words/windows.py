"""Samples for word models, made from paragraphs of words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from freqsgd.words.corpus import Paragraphs

Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Samples:
    """What predicts which words.

    Args:
        inputs: what the model's ``hidden`` takes, a row for each hidden vector
        occurrences: the words of the inputs, one entry for each time that a sample uses one
        rows: the hidden vector of each sample; never falls
        targets: the word that each sample predicts
    """

    inputs: Ids
    occurrences: Ids
    rows: Ids
    targets: Ids

    def __len__(self) -> int:
        return len(self.targets)


def take(text: Paragraphs, which: Ids) -> tuple[Ids, Ids]:
    """Return the words of some paragraphs, and where each starts and the last ends."""
    firsts = text.starts[which]
    lengths = text.starts[which + 1] - firsts
    starts = np.concatenate([[0], np.cumsum(lengths)])
    places = np.arange(starts[-1]) + np.repeat(firsts - starts[:-1], lengths)
    return text.ids[places].astype(np.int64), starts


def kept_share(counts: NDArray[np.int64], threshold: float) -> NDArray[np.float64]:
    """Return the chance that each word is kept; ``threshold`` is ``TextSettings.subsample``."""
    if threshold == 0:
        return np.ones(len(counts))
    ratio: NDArray[np.float64] = threshold * counts.sum() / np.maximum(counts, 1)
    return np.minimum(np.sqrt(ratio) + ratio, 1.0)


def subsample(
    ids: Ids, starts: Ids, share: NDArray[np.float64], draw: np.random.Generator
) -> tuple[Ids, Ids]:
    """Leave words out by chance; those on both sides of one become neighbours."""
    kept = draw.random(len(ids)) < share[ids]
    before = np.concatenate([[0], np.cumsum(kept)])
    return ids[kept], before[starts]


def skipgram_samples(ids: Ids, starts: Ids, window: int, *, full: bool) -> Samples:
    """Make a sample of each pair of a word and one around it; a distinct word has one vector.

    Args:
        ids, starts: the paragraphs, as :func:`take` gives them
        window: words on each side
        full: leave out words whose window does not lie within their paragraph
    """
    middles, around = _windows(ids, starts, window, full)
    order = np.argsort(middles, kind="stable")
    middles, around = middles[order], around[order]
    words, row_of = np.unique(middles, return_inverse=True)
    present = around >= 0
    sizes = present.sum(1)
    return Samples(words, np.repeat(middles, sizes), np.repeat(row_of, sizes), around[present])


def cbow_samples(ids: Ids, starts: Ids, window: int, *, full: bool) -> Samples:
    """Make a sample of each word, predicted from those around it; arguments as for skip-gram."""
    middles, around = _windows(ids, starts, window, full)
    return Samples(around, around[around >= 0], np.arange(len(middles)), middles)


def _windows(ids: Ids, starts: Ids, window: int, full: bool) -> tuple[Ids, Ids]:
    """Return words that have neighbours, and those around each (-1 beyond the paragraph)."""
    lengths = np.diff(starts)
    before = np.arange(len(ids)) - np.repeat(starts[:-1], lengths)
    after = np.repeat(lengths, lengths) - before - 1
    enough = np.minimum(before, after) >= window if full else before + after > 0
    places, before, after = (x[enough, None] for x in (np.arange(len(ids)), before, after))
    offsets = np.concatenate([np.arange(-window, 0), np.arange(1, window + 1)])
    inside = (-before <= offsets) & (offsets <= after)
    around = np.where(inside, ids[np.where(inside, places + offsets, 0)], -1)
    return ids[enough], around
