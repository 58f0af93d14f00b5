"""Numbers for tokens: while they are being collected, and once they are known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.data.columns import Column
from freqsgd.data.dataset import ABSENT, RARE, DataError

__all__ = ["KnownTokens", "Vocabulary", "token_codes"]

_MOST_TOKENS = 2**31 - 2
_UNKNOWN_KEPT = 1 << 20


class _Codes:
    """A code for every distinct text, kept from one block of rows to the next by Polars."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self.dtype = pl.Categorical(pl.Categories.random())
        self._alive = pl.Series([], dtype=self.dtype)  # Polars forgets codes that nothing uses


class Vocabulary(_Codes):
    """The tokens of a field in the order in which they were first seen, and how often each was."""

    def __init__(self) -> None:
        super().__init__()
        self._counts = np.zeros(0, np.int64)

    def count(self, codes: NDArray[np.int32]) -> None:
        """Count the tokens of more samples, one row each."""
        single = codes.shape[1] == 1
        counts = np.bincount(codes[:, 0] if single else codes[codes != ABSENT])
        if len(counts) > len(self._counts):
            # Room to grow, so that a field of many tokens is not copied with every block.
            grown = np.zeros(max(len(counts), 2 * len(self._counts)), np.int64)
            grown[: len(self._counts)] = self._counts
            self._counts = grown
        if len(self._counts) > _MOST_TOKENS:
            raise DataError(f"a field has more than {_MOST_TOKENS:,} distinct tokens")
        self._counts[: len(counts)] += counts

    def rank(self, min_count: int) -> tuple[pl.DataFrame, NDArray[np.int32]]:
        """Give ids by falling frequency, ties by text, to tokens seen ``min_count`` times.

        Returns:
            token, id and count of these; and the id of each code, ``ABSENT`` for code -1
        """
        codes = np.flatnonzero(self._counts >= max(min_count, 1)).astype(np.uint32)
        kept = pl.DataFrame(
            {
                "code": codes,
                "token": pl.Series(codes).cat.to(self.dtype).cast(pl.String),
                "count": self._counts[codes],
            }
        ).sort("count", "token", descending=[True, False])
        kept = kept.with_columns(id=pl.int_range(1, len(kept) + 1, dtype=pl.Int32))
        table = np.full(len(self._counts) + 1, RARE, np.int32)
        table[kept["code"].to_numpy()] = kept["id"].to_numpy()
        table[-1] = ABSENT
        return kept.select("token", "id", "count"), table


class KnownTokens(_Codes):
    """The ids of tokens that are known; any other token is rare."""

    def __init__(self, tokens: pl.Series) -> None:
        super().__init__()
        self._tokens = tokens
        self._learn()

    def _learn(self) -> None:
        self._start()
        codes = self._tokens.cast(self.dtype).to_physical().to_numpy()
        self._ids = np.full(int(codes.max(initial=0)) + 2, RARE, np.int32)
        self._ids[codes] = np.arange(1, len(codes) + 1)

    def ids(self, codes: NDArray[np.int32]) -> NDArray[np.int32]:
        """The ids of codes; absent ones stay absent."""
        found = self._ids[np.clip(codes, 0, len(self._ids) - 1)]
        if codes.max(initial=0) > len(self._ids) + _UNKNOWN_KEPT:
            self._learn()  # forget unknown tokens before they fill the memory
        return np.where(codes < 0, np.int32(ABSENT), found)


def token_codes(
    frame: pl.DataFrame, columns: Sequence[Column], fields: Sequence[_Codes]
) -> NDArray[np.int32]:
    """Codes of the tokens of all rows, one column each and ``width`` for a bag."""
    casts = [
        pl.col(column.name).cast(field.dtype).to_physical()
        for column, field in zip(columns, fields, strict=True)
        if column.kind != "bag"
    ]
    single = frame.select(casts).to_numpy(order="c").view(np.int32)
    if len(casts) == len(columns):
        return single
    codes = np.empty((len(frame), sum(column.width for column in columns)), np.int32)
    start = taken = 0
    for column, field in zip(columns, fields, strict=True):
        place = codes[:, start : start + column.width]
        if column.kind == "bag":
            place[:] = _bag_codes(frame[column.name], column.width, field)
        else:
            place[:] = single[:, taken : taken + 1]
            taken += 1
        start += column.width
    return codes


def _bag_codes(lists: pl.Series, width: int, field: _Codes) -> NDArray[np.int32]:
    lengths = lists.list.len().to_numpy()
    flat = lists.filter(lengths > 0).explode().cast(field.dtype).to_physical().to_numpy()
    codes = np.full((len(lists), width), ABSENT, np.int32)
    codes[np.arange(width) < lengths[:, None]] = flat
    return codes
