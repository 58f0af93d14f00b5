"""A text as numbers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Corpus", "Paragraphs"]

_HASHED_AT_ONCE = 1 << 22  # numbers, so that ^C is heard while those of large files are read


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
    """

    name: str
    words: Sequence[str]
    counts: NDArray[np.int64]
    train: Paragraphs
    validation: Paragraphs
    test: Paragraphs

    @classmethod
    def of_sentences(
        cls,
        sentences: Iterable[str | Sequence[str]],
        *,
        min_count: int = 5,
        max_vocab: int | None = None,
        longest: int = 256,
        name: str = "text",
    ) -> Corpus:
        """Sentences in memory, all of them to learn from.

        Args:
            sentences: lists of words, or texts that are split at white space; read once
            min_count: words seen less often are left out
            max_vocab: the most words of the vocabulary: the most frequent ones
            longest: sentences of more words are cut into pieces of so many
            name: of the corpus

        Raises:
            DataError: a word is not text, or too few words are left

        Example:
            >>> corpus = Corpus.of_sentences(["a b a", ["b", "a", "c"]], min_count=2)
            >>> corpus.words, corpus.train.ids.tolist(), corpus.train.starts.tolist()
            (['a', 'b'], [0, 1, 0, 1, 0], [0, 3, 5])
        """
        from freqsgd.data.sentences import corpus_of_sentences

        return corpus_of_sentences(sentences, min_count, max_vocab, longest, name)

    @cached_property
    def fingerprint(self) -> str:
        """Tells it from every other text, vocabulary and split: all ids are read."""
        digest = hashlib.blake2b(json.dumps(list(self.words)).encode(), digest_size=16)
        parts = (self.train, self.validation, self.test)
        for array in (self.counts, *(array for part in parts for array in (part.ids, part.starts))):
            digest.update(len(array).to_bytes(8, "little"))
            for start in range(0, len(array), _HASHED_AT_ONCE):
                digest.update(np.ascontiguousarray(array[start : start + _HASHED_AT_ONCE]).data)
        return digest.hexdigest()

    def summary(self) -> dict[str, Any]:
        """What ``results.json`` says of it."""
        return {
            "name": self.name,
            "kind": "text",
            "tokens": len(self.words),
            "words": len(self.train.ids),
            "raw_words": self.train.raw_words,
            "paragraphs": len(self.train),
        }
