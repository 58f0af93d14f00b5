"""Codes for tokens, in the order in which they are first seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.data.dataset import DataError
from freqsgd.data.hashing import HEADER, code_rows, fill_slots
from freqsgd.data.packing import joined, whole_words

__all__ = ["TokenTable"]

_MOST_TOKENS = 2**31 - 1
_FIRST_ROOM = 1 << 12
_AT_ONCE = 1 << 18


class TokenTable:
    """The distinct tokens of all fields; a token is a pair of a field and a text."""

    def __init__(self) -> None:
        self._used = np.zeros(2, np.int64)  # codes, words of the arena
        self._slots = np.zeros(2 * _FIRST_ROOM, np.uint64)
        self._arena = np.zeros(4 * _FIRST_ROOM, np.uint64)
        self._positions = np.zeros(_FIRST_ROOM, np.int64)

    def __len__(self) -> int:
        return int(self._used[0])

    def code_rows(
        self,
        data: bytes,
        stops: NDArray[np.int32],
        places: NDArray[np.int64],
        codes: NDArray[np.int32],
        *,
        add: bool,
    ) -> None:
        """Fill in codes of the cells of rows, as ``hashing.code_rows`` says."""
        words = whole_words(data)
        rows, cells = stops.shape
        if len(self._slots) == 0:  # a call was cut off while it made room
            self._fill_slots()
        done = 0
        while done < rows:
            if add:
                size = int(stops[done, -1] - (stops[done - 1, -1] if done else 0))
                self._make_room(cells, size // 8 + cells * (1 + HEADER))
            done = code_rows(words, stops, done, places, add, *self._arrays(), codes)

    def code_texts(self, texts: pl.Series, field: int, *, add: bool) -> NDArray[np.int32]:
        """Codes of tokens of a field, given as text; UNKNOWN for new ones if not added."""
        codes = np.empty((len(texts), 1), np.int32)
        for start in range(0, len(texts), _AT_ONCE):
            some = texts.slice(start, _AT_ONCE)
            data, stops = joined(some)
            place = codes[start : start + _AT_ONCE]
            self.code_rows(data, stops.reshape(-1, 1), np.array([[field], [0]]), place, add=add)
        return codes[:, 0]

    def fields(self, begin: int = 0) -> NDArray[np.int64]:
        """The field of each code from ``begin`` on."""
        keys = self._arena[self._positions[begin : len(self)]]
        return (keys & np.uint64(0xFFFFFFFF)).astype(np.int64)

    def texts(self, codes: NDArray[np.int64]) -> pl.Series:
        """The texts of some codes."""
        positions = self._positions[codes]
        starts = 8 * (positions + HEADER)
        stops = starts + (self._arena[positions] >> np.uint64(32)).astype(np.int64)
        data = self._arena.view(np.uint8).data
        texts = pl.Series("text", [], pl.String)
        for start in range(0, len(codes), _AT_ONCE):  # not to hold all of them as Python objects
            some = slice(start, start + _AT_ONCE)
            bounds = zip(starts[some].tolist(), stops[some].tolist(), strict=True)
            texts.append(pl.Series([str(data[begin:end], "utf-8") for begin, end in bounds]))
        return texts

    def _arrays(self) -> tuple[Any, ...]:
        return self._slots, self._arena, self._positions, self._used

    def _make_room(self, codes: int, words: int) -> None:
        """Make room for at least so many more codes, and words of records."""
        codes, words = len(self) + codes, int(self._used[1]) + words
        if codes > _MOST_TOKENS:
            raise DataError(f"there are more than {_MOST_TOKENS:,} distinct tokens")
        if codes > len(self._positions):
            self._positions = _longer(self._positions, max(codes, 2 * len(self._positions)))
        if words > len(self._arena):
            self._arena = _longer(self._arena, max(words, 2 * len(self._arena)))
        if len(self._slots) < 2 * len(self._positions):
            self._slots = np.zeros(0, np.uint64)  # not to hold old and new ones at once
            self._fill_slots()

    def _fill_slots(self) -> None:
        """Make slots for all positions; there are none until they hold all tokens."""
        slots = np.zeros(1 << (2 * len(self._positions) - 1).bit_length(), np.uint64)
        fill_slots(slots, self._arena, self._positions, self._used)
        self._slots = slots


def _longer(array: NDArray[Any], length: int) -> NDArray[Any]:
    longer = np.zeros(length, array.dtype)
    longer[: len(array)] = array
    return longer
