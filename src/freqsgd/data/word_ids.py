"""From codes of words, in the order in which they were met, to ids: which words are kept.

A text comes as pieces: ``codes`` of the words of all pieces, one after another, the ``lengths`` of
the pieces, and the part that each belongs to. Any of these may be mapped from a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from freqsgd.data.dataset import DataError

__all__ = ["PARTS", "UNKNOWN_WORD", "CodedText", "WordIds", "choose_words", "draw_parts"]

PARTS = ("train", "validation", "test")
UNKNOWN_WORD = "<unk>"
_LEFT_OUT = -1
_AT_ONCE = 1 << 21  # words
_HELD_OUT = 20  # one piece in so many is for validation, and one for testing


@dataclass(frozen=True, eq=False)
class CodedText:
    """A text as codes; those below 0 are words that have none."""

    codes: NDArray[np.int32]
    lengths: NDArray[np.int32]
    parts: NDArray[np.uint8]  # of each piece, an index of PARTS
    longest: int  # words of a piece, at most

    def blocks(self) -> Iterator[CodedText]:
        """The same, a bounded number of words at a time."""
        step = min(max(1, _AT_ONCE // self.longest), 1 << 16)
        begin = 0
        for start in range(0, len(self.lengths), step):
            some = slice(start, start + step)
            end = begin + int(self.lengths[some].sum())
            codes = self.codes[begin:end]
            yield CodedText(codes, self.lengths[some], self.parts[some], self.longest)
            begin = end

    def part(self, index: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Codes and lengths of the pieces of one part."""
        chosen = self.parts == index
        return self.codes[np.repeat(chosen, self.lengths)], self.lengths[chosen]

    def training_counts(self, codes: int) -> NDArray[np.int64]:
        """How often each of so many codes is in the training part."""
        counts = np.zeros(codes, np.int64)
        for block in self.blocks():
            counts += np.bincount(block.part(0)[0], minlength=codes)
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
    if unknown and rare:
        place_of_rare = int(np.searchsorted(-kept, -rare, side="right"))
        codes, kept = np.insert(codes, place_of_rare, -1), np.insert(kept, place_of_rare, rare)
    _check(codes, countable, text_of, place, min_count)
    ids = np.full(len(counts) + 2, _LEFT_OUT, np.int32)
    if len(codes) and -1 in codes:
        ids[:] = np.flatnonzero(codes == -1)[0]
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
        raise DataError(
            f"{place}: no word is seen {min_count:,} times, so nothing is left to learn from; the "
            f"most frequent of its {distinct:,} distinct words, {text_of(most)!r}, is seen "
            f"{counts[most]:,} times. Lower the min count"
        )
    if len(codes) < 2:
        advice = "" if distinct < 2 else ". Lower the min count" if min_count > 1 else ""
        raise DataError(
            f"{place}: the vocabulary has one word only, {text_of(int(codes[0]))!r}; at least two "
            f"are needed to learn from{advice}"
        )
