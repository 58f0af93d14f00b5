"""Tokens of each field by falling count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.data.columns import MISSING, Column, tokens
from freqsgd.data.encoding import Progress
from freqsgd.data.token_table import TokenTable
from freqsgd.data.vocabulary import Vocabulary, codes_by_field

__all__ = ["RankedField", "rank"]

_SHOWN = 5


@dataclass(frozen=True)
class RankedField:
    """The tokens of a field."""

    counts: NDArray[np.int64]  # falling; none is 0
    most_frequent: list[tuple[str, int]]
    table_rows: int  # that they take in training: one more, for tokens that are rare or new
    rare: int  # occurrences of rare tokens


def rank(
    vocabulary: Vocabulary,
    columns: Sequence[Column],
    min_count: int,
    *,
    drop_rare: bool = False,
    progress: Progress | None = None,
) -> tuple[list[RankedField], NDArray[np.int32]]:
    """The tokens of each field, and the place of every code among those of its field.

    Tokens that were seen less than ``min_count`` times are one token, or none. ``Vocabulary.rank``
    breaks ties by text; here they are broken at random, which needs no texts: these take most of
    the time where tokens are many. The places end with -1, where code -1 leads: no token.
    """
    table, counts = vocabulary.table, vocabulary.counts
    of_fields = codes_by_field(table, len(columns))
    places = np.full(len(counts) + 1, -1, np.int32)
    ranked = []
    for field, column in enumerate(columns):
        codes = of_fields[field][counts[of_fields[field]] > 0]
        if progress:
            progress("ranking tokens", field, len(columns))
        first, token = _distinct(table, column, codes)
        seen = np.bincount(token, counts[codes], len(first)).astype(np.int64)
        rare = seen < min_count
        left = int(seen[rare].sum())
        kept = np.append(np.where(rare, 0, seen), 0 if drop_rare else left)  # the last is for left
        order = _falling(kept, seed=field)
        place = np.empty(len(kept), np.int32)
        place[order] = np.arange(len(kept))
        place[:-1][rare] = -1 if drop_rare else place[-1]
        places[codes] = place[token]
        order = order[: np.count_nonzero(kept)]
        shown = order[:_SHOWN]
        names = _names(table, field, column, first, shown)
        named = list(zip(names, kept[shown].tolist(), strict=True))
        ranked.append(RankedField(kept[order], named, int(np.count_nonzero(~rare)) + 1, left))
    return ranked, places


def _distinct(
    table: TokenTable, column: Column, codes: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A code of each distinct token, and which of these tokens the one of each code is."""
    if column.kind != "integer":
        return codes, np.arange(len(codes))
    bins = _bins(column, table.texts(codes)).rank("dense").to_numpy().astype(np.int64) - 1
    return codes[np.unique(bins, return_index=True)[1]], bins


def _falling(counts: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """The order of falling counts.

    Ties in the order of first sight would put all that is new at the end of a file into the tails
    of all fields at once.
    """
    shuffled = np.random.default_rng(seed).permutation(len(counts))
    return shuffled[np.argsort(-counts[shuffled], kind="stable")]


def _names(
    table: TokenTable,
    field: int,
    column: Column,
    first: NDArray[np.int64],
    shown: NDArray[np.int64],
) -> list[str]:
    """What tokens are called, as ``Encoder.tokens`` has it; the last is for those that are left."""
    texts = table.texts(first[shown[shown < len(first)]])
    found = iter(_bins(column, texts) if column.kind == "integer" else texts)
    names = [next(found) if token < len(first) else None for token in shown.tolist()]
    special = {None: "<rare>", MISSING: "<missing>"}
    return [_unlike(table, field, special[n]) if n in special else str(n) for n in names]


def _unlike(table: TokenTable, field: int, name: str) -> str:
    """The name, in as many more brackets as it takes to be no token of the field."""
    while table.code_texts(pl.Series([name]), field, add=False)[0] >= 0:
        name = f"<{name}>"
    return name


def _bins(column: Column, texts: pl.Series) -> pl.Series:
    """The bins of integers that were left as text."""
    frame = pl.DataFrame({column.name: texts})
    return frame.select(tokens(column, pl.String())).to_series()
