"""Read files of text as codes of words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.data.ahead import ahead
from freqsgd.data.text_files import read_text_blocks
from freqsgd.data.token_table import TokenTable
from freqsgd.data.word_ids import UNKNOWN_WORD
from freqsgd.data.words import FoundWords, find_words, kinds_of

__all__ = ["WordReader"]

_ROW = 16
_APOSTROPHE = "\u2019".encode()


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
        """Codes, lengths of the pieces that ended, and how much of the file is done.

        New words are added to the table, or have a code below 0.
        """
        for found, done in ahead(self._find(path)):
            yield self._code(found, add=add), found.lengths, done

    def _code(self, found: FoundWords, *, add: bool) -> NDArray[np.int32]:
        """The codes of words, of 16 at a time, which halves the time, and of the rest."""
        codes = np.empty(len(found.stops), np.int32)
        whole, start = len(codes) - len(codes) % _ROW, 0
        for some in (slice(0, whole), slice(whole, len(codes))):
            words = min(_ROW, some.stop - some.start)
            if words:
                self.table.code_rows(
                    found.data[start:],
                    (found.stops[some] - start).reshape(-1, words),
                    np.stack([np.zeros(words, np.int64), np.arange(words)]),
                    codes[some].reshape(-1, words),
                    add=add,
                )
                start = int(found.stops[some.stop - 1]) + 1
        return codes

    def _find(self, path: Path) -> Iterator[tuple[FoundWords, float]]:
        begun = 0
        for block in read_text_blocks(path):
            data = block.data
            if self._apostrophes:
                data = data.replace(_APOSTROPHE, b"'")
            if self._lowercase:
                data = data.lower() if data.isascii() else data.decode().lower().encode()
            found = find_words(data, self._kinds, self._longest, begun)
            begun = found.open
            if block.replaced:
                self.replaced[path] = block.replaced
            yield found, block.done

    def text_of(self, code: int) -> str:
        """The word of a code."""
        return str(self.table.texts(np.array([code]))[0])
