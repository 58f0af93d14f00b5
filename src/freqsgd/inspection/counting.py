"""Count the tokens of all rows in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.documents.inspection import FEW_TIMES, TailSamples
from freqsgd.errors import DataError
from freqsgd.inspection.sources import Source
from freqsgd.runs.metrics import CLASSES, frequency_classes
from freqsgd.tables.cache import Progress
from freqsgd.tables.encoders.columns import MISSING, Column, tokens
from freqsgd.tables.encoders.tokens import TokenTable
from freqsgd.tables.encoders.vocabulary import Vocabulary, codes_by_field
from freqsgd.tables.fields import ABSENT, Field

_SAMPLE_ROWS = 1 << 20
_SAMPLE_CODES = 1 << 26  # 256 MB
_SHOWN = 5  # of the most frequent tokens
_TAIL = CLASSES.index("tail")


@dataclass(frozen=True)
class CountedField:
    """A field, and how often its tokens were seen."""

    name: str
    width: int  # tokens of a row, at most
    samples: int  # rows that have a token of it; a bag may be empty
    counts: NDArray[np.int64]  # of its tokens, falling; none is 0
    most_frequent: list[tuple[str, int]]
    table_rows: int  # that they take in training: one more, for tokens that are rare or new
    rare: int  # occurrences of rare tokens


@dataclass(frozen=True)
class Counted:
    """Counts of all fields."""

    name: str
    rows: int  # of text: words that are not rare
    rare: int  # occurrences of tokens that were seen less than ``min_count`` times
    min_count: int
    fields: tuple[CountedField, ...]
    tail_samples: TailSamples

    @property
    def table_fields(self) -> tuple[Field, ...]:
        """The fields of a model that was trained on these rows."""
        return tuple(Field(field.name, field.table_rows, field.width) for field in self.fields)


def count(
    source: Source,
    min_count: int | None = None,
    progress: Progress | None = None,
) -> Counted:
    """Read all rows of the source once, in memory that the distinct tokens bound.

    Tokens seen less than ``min_count`` times (None: as in training) count as one token of their
    field; words are left out. Which rows have a token of the tail is known only when all are read,
    so it is looked up for 1,048,576 rows that are drawn at random, or for all if there are no more.
    """
    min_count = source.min_count if min_count is None else min_count
    vocabulary = Vocabulary(source.columns, source.table)
    starts = np.cumsum([0, *(column.width for column in source.columns)]).tolist()
    first, width = starts[:-1], starts[-1]
    sample = RowSample(min(_SAMPLE_ROWS, _SAMPLE_CODES // width), width)
    rows, samples = 0, np.zeros(len(first), np.int64)
    for codes, done in source.read():
        vocabulary.count(codes)
        sample.add(codes)
        rows += len(codes)
        # A bag is filled from its first column on.
        samples += [np.count_nonzero(codes[:, column] != ABSENT) for column in first]
        if progress:
            progress("counting tokens", round(1000 * done), 1000)
    if rows == 0:
        raise DataError(f"{source.place}: there are no rows")
    fields, places = _rank(vocabulary, source, samples.tolist(), min_count, progress)
    rare = sum(field.rare for field in fields)
    looked_at = places[sample.rows()]
    if source.drops_rare:
        rows -= rare
        fields = [replace(field, samples=rows) for field in fields]
        looked_at = looked_at[looked_at[:, 0] >= 0]
    _check_seen(source, fields, min_count)
    tail_samples = _tail_samples(looked_at, starts, fields)
    return Counted(source.name, rows, rare, min_count, tuple(fields), tail_samples)


def _check_seen(source: Source, fields: Sequence[CountedField], min_count: int) -> None:
    """Raise if a field has no token."""
    for field in fields:
        if field.samples == 0 and source.drops_rare:
            raise DataError(
                f"{source.place}: no {field.name} is seen {min_count:,} times; lower --min-count"
            )
        if field.samples == 0:
            raise DataError(
                f"{source.place}: all lists of {field.name!r} are empty; leave it out (--features)"
            )


def _tail_samples(
    places: NDArray[np.int32], starts: Sequence[int], fields: Sequence[CountedField]
) -> TailSamples:
    """Count rows with a token of the last 5% of a field's occurrences, as ``compare`` does."""
    in_tail, seldom = np.zeros((2, len(places)), np.bool_)
    for number, field in enumerate(fields):
        own = places[:, starts[number] : starts[number + 1]]
        classes = frequency_classes(field.counts, [len(field.counts)])
        for found, chosen in ((in_tail, classes == _TAIL), (seldom, field.counts < FEW_TIMES)):
            found |= np.append(chosen, False)[own].any(axis=1)  # the last is where place -1 leads
    return TailSamples(float(in_tail.mean()), float(seldom.mean()), len(places))


def _rank(
    vocabulary: Vocabulary,
    source: Source,
    samples: Sequence[int],
    min_count: int,
    progress: Progress | None,
) -> tuple[list[CountedField], NDArray[np.int32]]:
    """Return the tokens of each field, and the place of every code among those of its field.

    Tokens that were seen less than ``min_count`` times are one token, or none. ``Vocabulary.rank``
    breaks ties by text; here they are broken at random, which needs no texts: these take most of
    the time where tokens are many. The places end with -1, where code -1 leads: no token.
    """
    columns, drop_rare = source.columns, source.drops_rare
    table, counts = vocabulary.table, vocabulary.counts
    of_fields = codes_by_field(table, len(columns))
    places = np.full(len(counts) + 1, -1, np.int32)
    fields = []
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
        fields.append(
            CountedField(
                name=column.name,
                width=column.width,
                samples=samples[field],
                counts=kept[order],
                most_frequent=list(zip(names, kept[shown].tolist(), strict=True)),
                table_rows=int(np.count_nonzero(~rare)) + 1,
                rare=left,
            )
        )
    return fields, places


def _distinct(
    table: TokenTable, column: Column, codes: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return a code of each distinct token, and which of these tokens the one of each code is."""
    if column.kind != "integer":
        return codes, np.arange(len(codes))
    bins = _bins(column, table.texts(codes)).rank("dense").to_numpy().astype(np.int64) - 1
    return codes[np.unique(bins, return_index=True)[1]], bins


def _falling(counts: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """Return the order of falling counts.

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
    """Return names of tokens, as ``Encoder.tokens`` has them; the last is for what is left."""
    texts = table.texts(first[shown[shown < len(first)]])
    found = iter(_bins(column, texts) if column.kind == "integer" else texts)
    names = [next(found) if token < len(first) else None for token in shown.tolist()]
    special = {None: "<rare>", MISSING: "<missing>"}
    return [_unlike(table, field, special[n]) if n in special else str(n) for n in names]


def _unlike(table: TokenTable, field: int, name: str) -> str:
    """Return the name, in as many more brackets as it takes to be no token of the field."""
    while table.code_texts(pl.Series([name]), field, add=False)[0] >= 0:
        name = f"<{name}>"
    return name


def _bins(column: Column, texts: pl.Series) -> pl.Series:
    """Return the bins of integers that were left as text."""
    frame = pl.DataFrame({column.name: texts})
    return frame.select(tokens(column, pl.String())).to_series()


class RowSample:
    """Keeps so many of all rows, each with the same chance, however many there are.

    Every row draws a number; the rows with the smallest ones are kept.

    Args:
        most: how many are kept
        width: columns of a row
        seed: the same seed keeps the same rows
    """

    def __init__(self, most: int, width: int, seed: int = 0) -> None:
        self._most = most
        self._random = np.random.default_rng(seed)
        self._rows = [np.empty((0, width), np.int32)]
        self._drawn = [np.empty(0)]
        self._kept, self._limit = 0, 1.0

    def add(self, rows: NDArray[np.int32]) -> None:
        """Take in more rows."""
        drawn = self._random.random(len(rows))
        if self._limit < 1:
            chosen = drawn < self._limit
            rows, drawn = rows[chosen], drawn[chosen]
        self._rows.append(rows)
        self._drawn.append(drawn)
        self._kept += len(rows)
        if self._kept > self._most + self._most // 4:
            self._shrink()

    def rows(self) -> NDArray[np.int32]:
        """Return the rows kept: all, where there were no more."""
        self._shrink()
        return self._rows[0]

    def _shrink(self) -> None:
        rows, drawn = np.concatenate(self._rows), np.concatenate(self._drawn)
        if len(rows) > self._most:
            order = np.argpartition(drawn, self._most)
            self._limit = float(drawn[order[self._most]])
            chosen = np.sort(order[: self._most])
            rows, drawn = rows[chosen], drawn[chosen]
        self._rows, self._drawn, self._kept = [rows], [drawn], len(rows)
