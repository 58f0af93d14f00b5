"""Count the tokens of all rows in one pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from freqsgd.data.dataset import DataError
from freqsgd.data.fields import ABSENT, Field
from freqsgd.data.vocabulary import Vocabulary
from freqsgd.inspection.ranking import RankedField, rank
from freqsgd.inspection.row_sample import RowSample
from freqsgd.inspection.sources import Source
from freqsgd.training.metrics import CLASSES, frequency_classes

__all__ = ["Counted", "CountedField", "TailSamples", "count"]

_SAMPLE_ROWS = 1 << 20
_SAMPLE_CODES = 1 << 26  # 256 MB
_TAIL = CLASSES.index("tail")
SELDOM = 10  # a token seen less often: how frequent it is is hardly known


@dataclass(frozen=True)
class CountedField:
    """A field, and how often its tokens were seen."""

    name: str
    samples: int  # rows that have a token of it; a bag may be empty
    ranked: RankedField
    width: int  # tokens of a row, at most


@dataclass(frozen=True)
class TailSamples:
    """How many of the rows looked at have a token of a tail, or one that was hardly seen."""

    share: float
    seen_below_10: float
    of: int  # rows; less than all of them if there are very many


@dataclass(frozen=True)
class Counted:
    """What was counted."""

    name: str
    rows: int  # of text: words that are not rare
    rare: int  # occurrences of tokens that were seen less than ``min_count`` times
    min_count: int
    fields: tuple[CountedField, ...]
    tail_samples: TailSamples

    @property
    def table_fields(self) -> tuple[Field, ...]:
        """The fields of a model that was trained on these rows."""
        return tuple(
            Field(field.name, field.ranked.table_rows, field.width) for field in self.fields
        )


def count(
    source: Source,
    min_count: int | None = None,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> Counted:
    """Read all rows of the source once, in memory that the distinct tokens bound.

    Tokens seen less than ``min_count`` times (None: as in training) count as one token of their
    field; words are left out. Which rows have a token of the tail is known only when all are read,
    so it is looked up for 1,048,576 rows that are drawn at random, or for all if there are no more.
    """
    min_count = source.min_count if min_count is None else min_count
    vocabulary = Vocabulary(source.table)
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
    ranked, places = rank(
        vocabulary, source.columns, min_count, drop_rare=source.drops_rare, progress=progress
    )
    rare = sum(field.rare for field in ranked)
    looked_at = places[sample.rows()]
    if source.drops_rare:
        rows -= rare
        samples[:], looked_at = rows, looked_at[looked_at[:, 0] >= 0]
    named = zip(source.columns, samples.tolist(), ranked, strict=True)
    fields = tuple(CountedField(column.name, its, own, column.width) for column, its, own in named)
    _check_seen(source, fields, min_count)
    tail_samples = _tail_samples(looked_at, starts, ranked)
    return Counted(source.name, rows, rare, min_count, fields, tail_samples)


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
    places: NDArray[np.int32], starts: Sequence[int], fields: Sequence[RankedField]
) -> TailSamples:
    """Rows with a token of the last 5% of a field's occurrences, the same as ``compare`` has it."""
    in_tail, seldom = np.zeros((2, len(places)), np.bool_)
    for number, field in enumerate(fields):
        own = places[:, starts[number] : starts[number + 1]]
        classes = frequency_classes(field.counts, [len(field.counts)])
        for found, chosen in ((in_tail, classes == _TAIL), (seldom, field.counts < SELDOM)):
            found |= np.append(chosen, False)[own].any(axis=1)  # the last is where place -1 leads
    return TailSamples(float(in_tail.mean()), float(seldom.mean()), len(places))
