"""Count the tokens of all rows in one pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from freqsgd.data.dataset import ABSENT, DataError
from freqsgd.data.vocabulary import Vocabulary
from freqsgd.inspection.ranking import RankedField, rank
from freqsgd.inspection.row_sample import RowSample
from freqsgd.inspection.sources import Source
from freqsgd.training.metrics import CLASSES, frequency_classes

__all__ = ["Counted", "CountedField", "TailSamples", "count"]

_SAMPLE_ROWS = 1 << 20
_SAMPLE_CODES = 1 << 26  # 256 MB
_TAIL = CLASSES.index("tail")


@dataclass(frozen=True)
class CountedField:
    """A field, and how often its tokens were seen."""

    name: str
    samples: int  # rows that have a token of it; a bag may be empty
    ranked: RankedField


@dataclass(frozen=True)
class TailSamples:
    """How many of the rows looked at have a token of a tail."""

    share: float
    of: int  # rows; less than all of them if there are very many


@dataclass(frozen=True)
class Counted:
    """What was counted."""

    name: str
    rows: int
    fields: tuple[CountedField, ...]
    tail_samples: TailSamples


def count(
    source: Source,
    min_count: int = 1,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> Counted:
    """Read all rows of the source once, in memory that the distinct tokens bound.

    Tokens seen less than ``min_count`` times count as one token of their field. Which rows have a
    token of the tail is known only when all are read, so it is looked up for 1,048,576 rows that
    are drawn at random, or for all if there are no more.
    """
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
    ranked, places = rank(vocabulary, source.columns, min_count)
    named = zip(source.columns, samples.tolist(), ranked, strict=True)
    fields = tuple(CountedField(column.name, its, own) for column, its, own in named)
    for field in fields:
        if field.samples == 0:
            raise DataError(
                f"{source.place}: all lists of {field.name!r} are empty; leave it out (--features)"
            )
    return Counted(source.name, rows, fields, _tail_samples(places[sample.rows()], starts, ranked))


def _tail_samples(
    places: NDArray[np.int32], starts: Sequence[int], fields: Sequence[RankedField]
) -> TailSamples:
    """Rows with a token of the last 5% of a field's occurrences, the same as ``compare`` has it."""
    found = np.zeros(len(places), np.bool_)
    for number, field in enumerate(fields):
        classes = frequency_classes(field.counts, [len(field.counts)])
        is_tail = np.append(classes == _TAIL, False)  # the last is where place -1 leads
        found |= is_tail[places[:, starts[number] : starts[number + 1]]].any(axis=1)
    return TailSamples(float(found.mean()), len(found))
