"""From codes of words, in the order in which they were met, to ids: which words are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from freqsgd.errors import DataError

__all__ = [
    "PARTS",
    "UNKNOWN_WORD",
    "CodedText",
    "WordIds",
    "choose_words",
    "draw_parts",
    "training_counts",
]

PARTS = ("train", "validation", "test")
UNKNOWN_WORD = "<unk>"
_LEFT_OUT = -1
_HELD_OUT = 20  # one piece in so many is for validation, and one for testing


@dataclass(frozen=True, eq=False)
class CodedText:
    """Pieces of a text as codes; those below 0 are words that have none."""

    codes: NDArray[np.int32]  # of all pieces, one after another
    lengths: NDArray[np.int32]  # words of each piece
    parts: NDArray[np.uint8]  # of each piece, an index of PARTS

    def part(self, index: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Codes and lengths of the pieces of one part."""
        chosen = self.parts == index
        return self.codes[np.repeat(chosen, self.lengths)], self.lengths[chosen]


def training_counts(texts: Iterable[CodedText], codes: int) -> NDArray[np.int64]:
    """How often each of so many codes is in the training part of all texts together."""
    counts = np.zeros(codes, np.int64)
    for text in texts:
        counts += np.bincount(text.part(0)[0], minlength=codes)
    return counts


def draw_parts(pieces: int, held_out: Sequence[int], seed: int) -> NDArray[np.uint8]:
    """The part of each piece: a twentieth, at random, for each of the parts held out."""
    parts, count = np.zeros(pieces, np.uint8), pieces // _HELD_OUT
    for place, part in enumerate(held_out):
        parts[place * count : (place + 1) * count] = part
    np.random.Generator(np.random.PCG64(seed)).shuffle(parts)
    return parts


@dataclass(frozen=True, eq=False)
class WordIds:
    """Which codes are words of the vocabulary."""

    codes: NDArray[np.int64]  # by id; -1 stands for all unknown words
    counts: NDArray[np.int64]  # by id, in the training part
    _ids: NDArray[np.int32]  # by code, and then twice that of words without a code (-2 and -1)

    def encode(
        self, codes: NDArray[np.int32], lengths: NDArray[np.int32]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The ids of pieces, and how many words each has left; empty ones are left out."""
        ids = self._ids[codes]
        known = ids != _LEFT_OUT
        before = np.concatenate([[0], np.cumsum(known)])
        ends = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        left = np.diff(before[ends])
        return ids[known], left[left > 0]


def choose_words(
    counts: NDArray[np.int64],
    text_of: Callable[[int], str],
    place: str,
    min_count: int,
    max_vocab: int | None,
    *,
    never: Sequence[int] = (),
    unknown: bool = False,
) -> WordIds:
    """Give ids to words by falling count; of equal counts, the word met first comes first.

    Args:
        counts: of each code in the training part
        text_of: the word of a code
        place: where the text is from, for messages
        min_count: words seen less often are rare
        max_vocab: the most words that are not; None for any number
        never: codes that are rare whatever their counts
        unknown: rare words share an id, with a place by its count, instead of being left out

    Raises:
        DataError: fewer than two words are left
    """
    countable = counts.copy()
    countable[list(never)] = 0
    codes = np.flatnonzero(countable >= min_count)
    codes = codes[np.argsort(-counts[codes], kind="stable")][:max_vocab]
    kept = counts[codes]
    rare = int(counts.sum() - kept.sum())
    ids = np.full(len(counts) + 2, _LEFT_OUT, np.int32)
    if unknown and rare:
        ids[:] = at = int(np.searchsorted(-kept, -rare, side="right"))
        codes, kept = np.insert(codes, at, -1), np.insert(kept, at, rare)
    _check(codes, countable, text_of, place, min_count)
    known = codes >= 0
    ids[codes[known]] = np.flatnonzero(known)
    return WordIds(codes, kept, ids)


def _check(
    codes: NDArray[np.int64],
    counts: NDArray[np.int64],
    text_of: Callable[[int], str],
    place: str,
    min_count: int,
) -> None:
    """Raise unless there are two words to tell apart."""
    distinct = int(np.count_nonzero(counts))
    if not distinct:
        raise DataError(f"{place}: there are no words in it")
    if not (codes >= 0).any():
        most = int(counts.argmax())
        often = "once" if counts[most] == 1 else f"{counts[most]:,} times"
        raise DataError(
            f"{place}: no word is seen {min_count:,} times, so nothing is left to learn from; the "
            f"most frequent of its {distinct:,} distinct words, {text_of(most)!r}, is seen "
            f"{often}. Lower the min count"
        )
    if len(codes) < 2:
        advice = "" if distinct < 2 else ". Lower the min count" if min_count > 1 else ""
        raise DataError(
            f"{place}: the vocabulary has one word only, {text_of(int(codes[0]))!r}; at least two "
            f"are needed to learn from{advice}"
        )
