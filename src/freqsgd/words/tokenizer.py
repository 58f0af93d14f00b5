"""Find the words in a text, compiled.

A tokenizer is a table that gives every code point a kind: of a word, at the end of a line, an
apostrophe, which belongs to a word if it is inside one, or none of these.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.kernels.compiled import compiled, inlined
from freqsgd.prefetch import ahead
from freqsgd.tables.encoders.tokens import TokenTable
from freqsgd.words.corpus import UNKNOWN_WORD
from freqsgd.words.files import read_text_blocks

_OTHER, _WORD, _LINE, _APOSTROPHE = range(4)
_CODE_POINTS = 0x110000


@cache
def kinds_of(tokenizer: str) -> NDArray[np.uint8]:
    """Return the kind of every code point.

    "whitespace": words are what stands between white space. "words": they are runs of letters,
    digits, underscores and the marks that go with letters, with single apostrophes inside.
    """
    belongs = _not_space if tokenizer == "whitespace" else _in_words
    kinds = np.fromiter((belongs(chr(point)) for point in range(_CODE_POINTS)), np.uint8)
    kinds[ord("\n")] = _LINE
    if tokenizer == "words":
        kinds[ord("'")] = _APOSTROPHE
    return kinds


def _not_space(character: str) -> bool:
    return not character.isspace()


def _in_words(character: str) -> bool:
    return character == "_" or unicodedata.category(character)[0] in "LMN"


@dataclass(frozen=True, eq=False)
class FoundWords:
    """The words of a text, and the pieces that they make up."""

    data: bytes  # the words, one byte between each and the next
    stops: NDArray[np.int32]  # where each word stops
    lengths: NDArray[np.int32]  # words of the pieces that ended
    open: int  # words of the last piece, if it did not end


def find_words(data: bytes, kinds: NDArray[np.uint8], longest: int, begun: int) -> FoundWords:
    """Return the words of a text in UTF-8 that ends with white space.

    A piece ends with its line, or when it has ``longest`` words; of the first one, ``begun`` words
    came before this text.
    """
    words = np.empty(len(data), np.uint8)
    stops = np.empty(len(data) // 2 + 1, np.int32)
    lengths = np.empty(len(stops) + data.count(b"\n"), np.int32)
    text = np.frombuffer(data, np.uint8)
    size, count, pieces, begun = _find_words(text, kinds, longest, begun, words, stops, lengths)
    return FoundWords(words[:size].tobytes(), stops[:count], lengths[:pieces], begun)


@compiled
def _find_words(
    text: Any, kinds: Any, longest: Any, begun: Any, words: Any, stops: Any, lengths: Any
) -> Any:
    size = count = pieces = position = 0
    inside = apostrophe = False
    while position < len(text):
        point, width = _code_point(text, position)
        kind = kinds[point]
        if kind == _WORD:
            if apostrophe:
                words[size] = ord("'")
                size += 1
                apostrophe = False
            for offset in range(width):
                words[size + offset] = text[position + offset]
            size += width
            inside = True
        elif kind == _APOSTROPHE and inside and not apostrophe:
            apostrophe = True  # inside the word if the next character is of one
        else:
            if inside:
                stops[count] = size
                size, count, begun = size + 1, count + 1, begun + 1
                inside = apostrophe = False
            if begun == longest or (kind == _LINE and begun):
                lengths[pieces] = begun
                pieces, begun = pieces + 1, 0
        position += width
    return size, count, pieces, begun


@inlined
def _code_point(text: Any, position: Any) -> Any:
    """Return the code point that starts here, and how many bytes it has."""
    byte = np.int64(text[position])
    if byte < 0x80:
        return byte, 1
    if byte < 0xE0:
        return (byte & 0x1F) << 6 | _low(text, position + 1), 2
    if byte < 0xF0:
        return (byte & 0xF) << 12 | _low(text, position + 1) << 6 | _low(text, position + 2), 3
    high = (byte & 0x7) << 18 | _low(text, position + 1) << 12
    return high | _low(text, position + 2) << 6 | _low(text, position + 3), 4


@inlined
def _low(text: Any, position: Any) -> Any:
    return np.int64(text[position] & 0x3F)


_ROW = 16
_APOSTROPHE_BYTE = "\u2019".encode()


class WordReader:
    """Reads words as codes; the code 0 is that of the word that stands for unknown ones."""

    def __init__(self, tokenizer: str, *, lowercase: bool, longest: int) -> None:
        self.table = TokenTable()
        self.table.code_texts(pl.Series([UNKNOWN_WORD]), 0, add=True)
        self.replaced: dict[Path, int] = {}  # places that were not UTF-8
        self._kinds, self._longest = kinds_of(tokenizer), longest
        self._lowercase, self._apostrophes = lowercase, tokenizer == "words"

    def read(
        self, path: Path, *, add: bool = True
    ) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32], float]]:
        """Yield codes, lengths of the pieces that ended, and how much of the file is done.

        New words are added to the table, or have a code below 0.
        """
        for found, done in ahead(self._find(path)):
            yield self._code(found, add=add), found.lengths, done

    def _code(self, found: FoundWords, *, add: bool) -> NDArray[np.int32]:
        """Return the codes of words, found for 16 at a time, which halves the time."""
        codes = np.empty(len(found.stops), np.int32)
        whole, start = len(codes) - len(codes) % _ROW, 0
        for some in (slice(0, whole), slice(whole, len(codes))):
            words = min(_ROW, some.stop - some.start)
            if words:
                self.table.code_rows(
                    found.data[start:],
                    (found.stops[some] - start).reshape(-1, words),
                    np.array([[0] * words, range(words), [0] * words]),
                    codes[some].reshape(-1, words),
                    add=add,
                )
                start = int(found.stops[some.stop - 1]) + 1
        return codes

    def _find(self, path: Path) -> Iterator[tuple[FoundWords, float]]:
        begun = 0
        for data, replaced, done in read_text_blocks(path):
            if self._apostrophes:
                data = data.replace(_APOSTROPHE_BYTE, b"'")
            if self._lowercase:
                data = data.lower() if data.isascii() else data.decode().lower().encode()
            found = find_words(data, self._kinds, self._longest, begun)
            begun = found.open
            if replaced:
                self.replaced[path] = replaced
            yield found, done

    def text_of(self, code: int) -> str:
        """Return the word of a code."""
        return str(self.table.texts(np.array([code]))[0])
