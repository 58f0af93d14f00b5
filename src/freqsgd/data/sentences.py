"""A corpus of sentences that are in memory."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from freqsgd.data.corpus import Corpus, Paragraphs
from freqsgd.data.dataset import DataError
from freqsgd.data.word_ids import (
    PARTS,
    CodedText,
    WordIds,
    choose_words,
    draw_parts,
    training_counts,
)

__all__ = ["corpus_of_sentences"]


def corpus_of_sentences(
    sentences: Iterable[str | Sequence[str]],
    min_count: int,
    max_vocab: int | None,
    longest: int,
    name: str,
    *,
    held_out: Sequence[int] = (),
    split_seed: int = 0,
) -> Corpus:
    """As ``Corpus.of_sentences`` says; parts may be held out, drawn at random."""
    for what, value, least in (
        ("min_count", min_count, 1), ("max_vocab", max_vocab, 2), ("longest", longest, 2)
    ):  # fmt: skip
        if value is not None and value < least:
            raise DataError(f"{what} must be at least {least}, not {value}")
    words, codes, lengths = _code(sentences, longest)
    text = CodedText(codes, lengths, draw_parts(len(lengths), held_out, split_seed))
    counts = training_counts([text], len(words))
    chosen = choose_words(counts, words.__getitem__, name, min_count, max_vocab)
    return Corpus(
        name,
        [words[code] for code in chosen.codes.tolist()],
        chosen.counts,
        *(_paragraphs(text, chosen, part) for part in range(len(PARTS))),
    )


def _code(
    sentences: Iterable[str | Sequence[str]], longest: int
) -> tuple[list[str], NDArray[np.int32], NDArray[np.int32]]:
    """The distinct words, their codes in all sentences, and the lengths of pieces of these."""
    if isinstance(sentences, str):
        raise DataError(
            "sentences must be a list of sentences, not one text; split it, for instance with "
            "text.splitlines()"
        )
    known: defaultdict[str, int] = defaultdict()
    known.default_factory = known.__len__  # a new word gets the next code
    codes, lengths = array("i"), array("i")
    for number, sentence in enumerate(sentences, start=1):
        before, distinct = len(codes), len(known)
        try:
            words = sentence.split() if isinstance(sentence, str) else sentence
            codes.extend(map(known.__getitem__, words))
        except TypeError as error:
            raise DataError(f"sentence {number} is not a list of words ({error})") from error
        new = islice(reversed(known), len(known) - distinct)
        if wrong := [word for word in new if not isinstance(word, str)]:
            raise DataError(f"sentence {number} has a word that is not text: {wrong[-1]!r}")
        whole, rest = divmod(len(codes) - before, longest)
        lengths.extend([longest] * whole + [rest] * (rest > 0))
    return list(known), np.array(codes, np.int32), np.array(lengths, np.int32)


def _paragraphs(text: CodedText, chosen: WordIds, part: int) -> Paragraphs:
    codes, lengths = text.part(part)
    ids, left = chosen.encode(codes, lengths)
    return Paragraphs(ids, np.concatenate([[0], np.cumsum(left)]), int(lengths.sum()))
