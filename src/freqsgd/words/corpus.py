"""A text as numbers: which words are kept, and the ids of those."""

from __future__ import annotations

import hashlib
import json
import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freqsgd.checks import whole_number
from freqsgd.errors import DataError

PARTS = ("train", "validation", "test")
UNKNOWN_WORD = "<unk>"
_HALF_CHARACTER = re.compile(r"[\ud800-\udfff]")
_LEFT_OUT = -1
_HELD_OUT = 20  # one piece in so many is for validation, and one for testing
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
        split_seed: int | None = None,
    ) -> Corpus:
        """Make a corpus of sentences in memory.

        Args:
            sentences: lists of words, or texts that are split at white space; read once
            min_count: words seen less often are left out
            max_vocab: the most words of the vocabulary: the most frequent ones
            longest: sentences of more words are cut into pieces of so many
            name: of the corpus
            split_seed: hold out a twentieth for validation and another for testing, drawn at
                random; None to learn from all sentences

        Raises:
            DataError: a word is not text, or too few words are left

        Example:
            >>> corpus = Corpus.of_sentences(["a b a", ["b", "a", "c"]], min_count=2)
            >>> corpus.words, corpus.train.ids.tolist(), corpus.train.starts.tolist()
            (['a', 'b'], [0, 1, 0, 1, 0], [0, 3, 5])
        """
        for what, value, least in (
            ("min_count", min_count, 1), ("max_vocab", max_vocab, 2), ("longest", longest, 2)
        ):  # fmt: skip
            if value is not None:
                whole_number(what, value, least)
        words, codes, lengths = _code(sentences, longest)
        held_out = () if split_seed is None else (1, 2)
        text = CodedText(codes, lengths, draw_parts(len(lengths), held_out, split_seed or 0))
        counts = training_counts([text], len(words))
        chosen = choose_words(counts, words.__getitem__, name, min_count, max_vocab)
        parts = []
        for part in range(len(PARTS)):
            codes, lengths = text.part(part)
            ids, left = chosen.encode(codes, lengths)
            starts = np.concatenate([[0], np.cumsum(left)])
            parts.append(Paragraphs(ids, starts, int(lengths.sum())))
        kept = [str.__str__(words[code]) for code in chosen.codes.tolist()]  # numpy's texts too
        return cls(name, kept, chosen.counts, *parts)

    @cached_property
    def fingerprint(self) -> str:
        """Tells it from every other text, vocabulary and split: all ids are read."""
        digest = hashlib.blake2b(json.dumps(list(self.words)).encode(), digest_size=16)
        parts = (self.train, self.validation, self.test)
        numbers = [values for part in parts for values in (part.ids, part.starts)]
        for values in (self.counts, *numbers):
            digest.update(len(values).to_bytes(8, "little"))
            for start in range(0, len(values), _HASHED_AT_ONCE):
                digest.update(np.ascontiguousarray(values[start : start + _HASHED_AT_ONCE]).data)
        return digest.hexdigest()

    def summary(self) -> dict[str, Any]:
        """Return what ``results.json`` says of it."""
        return {
            "name": self.name,
            "kind": "text",
            "tokens": len(self.words),
            "words": len(self.train.ids),
            "raw_words": self.train.raw_words,
            "paragraphs": len(self.train),
        }


def _code(
    sentences: Iterable[str | Sequence[str]], longest: int
) -> tuple[list[str], NDArray[np.int32], NDArray[np.int32]]:
    """Return the distinct words, the codes of all sentences, and the lengths of pieces."""
    known: defaultdict[str, int] = defaultdict()
    known.default_factory = known.__len__  # a new word gets the next code
    codes, lengths = array("i"), array("i")
    texts = number = 0
    for number, sentence in enumerate(_checked(sentences), start=1):
        before, distinct = len(codes), len(known)
        texts += isinstance(sentence, str)
        try:
            words = sentence.split() if isinstance(sentence, str) else sentence
            codes.extend(map(known.__getitem__, words))
        except TypeError as error:
            raise DataError(f"sentence {number} is not a list of words ({error})") from error
        _check_words(list(islice(reversed(known), len(known) - distinct)), number)
        whole, rest = divmod(len(codes) - before, longest)
        lengths.extend([longest] * whole + [rest] * (rest > 0))
    if 1 < texts == number and max(lengths, default=0) == 1:
        raise DataError(
            f"each of the {number:,} texts is a sentence, and none has two words; if they are the "
            "words of one sentence, give a list that holds this list"
        )
    return list(known), np.array(codes, np.int32), np.array(lengths, np.int32)


def _checked(sentences: Iterable[str | Sequence[str]]) -> Iterable[str | Sequence[str]]:
    """Return the sentences, unless they are something else that a user may take for some."""
    if isinstance(sentences, str):
        raise DataError(
            "sentences must be a list of sentences, not one text; split it, for instance with "
            "text.splitlines(), or open the file that it names"
        )
    if isinstance(sentences, bytes | PathLike) or not isinstance(sentences, Iterable):
        hint = ": open it, its lines are sentences" if isinstance(sentences, PathLike) else ""
        raise TypeError(f"sentences must be a list of sentences, got {sentences!r:.60}{hint}")
    return sentences


def _check_words(words: list[str], number: int) -> None:
    """Refuse words of a sentence that no file could hold."""
    try:
        "".join(words).encode()
    except TypeError:
        wrong = next(word for word in reversed(words) if not isinstance(word, str))
        raise DataError(f"sentence {number} has a word that is not text: {wrong!r}") from None
    except UnicodeEncodeError:
        broken = next(word for word in reversed(words) if _HALF_CHARACTER.search(word))
        raise DataError(
            f"sentence {number} has a word with half a character (a lone surrogate): {broken!r}; "
            'decode the text with errors="replace"'
        ) from None


# From codes of words, in the order in which they were met, to ids.


@dataclass(frozen=True, eq=False)
class CodedText:
    """Pieces of a text as codes; those below 0 are words that have none."""

    codes: NDArray[np.int32]  # of all pieces, one after another
    lengths: NDArray[np.int32]  # words of each piece
    parts: NDArray[np.uint8]  # of each piece, an index of PARTS

    def part(self, index: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return codes and lengths of the pieces of one part."""
        chosen = self.parts == index
        return self.codes[np.repeat(chosen, self.lengths)], self.lengths[chosen]


def training_counts(texts: Iterable[CodedText], codes: int) -> NDArray[np.int64]:
    """Return how often each of so many codes is in the training part of all texts together."""
    counts = np.zeros(codes, np.int64)
    for text in texts:
        counts += np.bincount(text.part(0)[0], minlength=codes)
    return counts


def draw_parts(pieces: int, held_out: Sequence[int], seed: int) -> NDArray[np.uint8]:
    """Return the part of each piece: a twentieth, at random, for each of the parts held out."""
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
        """Return the ids of pieces, and how many words each has left; empty ones are left out."""
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
    _check_vocabulary(codes, countable, text_of, place, min_count)
    known = codes >= 0
    ids[codes[known]] = np.flatnonzero(known)
    return WordIds(codes, kept, ids)


def _check_vocabulary(
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
