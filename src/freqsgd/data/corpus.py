"""A text as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Corpus", "Paragraphs"]


@dataclass(frozen=True, eq=False)
class Paragraphs:
    """Paragraphs of words: windows do not reach from one into another.

    Args:
        ids: the words of all paragraphs, one after another; may be mapped from a file
        starts: where each paragraph starts in ``ids`` and, last, their length
        raw_words: words that the text had, those left out included
    """

    ids: NDArray[np.int32]
    starts: NDArray[np.int64]
    raw_words: int

    def __len__(self) -> int:
        return len(self.starts) - 1


@dataclass(frozen=True, eq=False)
class Corpus:
    """A text to learn word vectors from.

    Args:
        name: of the dataset or file
        words: the vocabulary, by falling count; word k has the id k
        counts: how often each is among the ids of ``train``
        train, validation, test: the text; the latter two may be empty
        fingerprint: tells the ids of one text from those of another
    """

    name: str
    words: Sequence[str]
    counts: NDArray[np.int64]
    train: Paragraphs
    validation: Paragraphs
    test: Paragraphs
    fingerprint: str = ""
