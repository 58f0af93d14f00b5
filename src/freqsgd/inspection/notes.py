"""What a reader of an inspection should know of the columns that were looked at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from freqsgd.inspection.options import InspectionOptions

if TYPE_CHECKING:
    from freqsgd.inspection.counting import Counted, CountedField

__all__ = ["notes"]

_MOST = 0.95  # share of the tokens, beyond which nearly all are seen once
_FEWEST = 100  # tokens; fewer may be seen once where rows are few
_FEW = 4  # fields that are all named


def notes(counted: Counted, options: InspectionOptions) -> Iterator[str]:
    """Sentences, each of them about something else."""
    if counted.rare:
        yield _about_rare(counted, options)
    ids = [field.name for field in counted.fields if _is_row_id(field)]
    if ids:
        yield (
            f"Nearly all tokens of {_named(ids)} occur once, as numbers of rows do: nothing can be "
            "learned of them, and they change what is promised to other fields; leave such columns "
            "out (--features)."
        )
    own_table = options.path is not None and not options.is_text
    labels = [field.name for field in counted.fields if _is_binary(field)]
    if labels and own_table and options.label is None and not options.features:
        yield f"The values of {_named(labels)} are 0 and 1: if it is the label, say so (--label)."


def _about_rare(counted: Counted, options: InspectionOptions) -> str:
    seldom = f"seen fewer than {counted.min_count:,} times (--min-count)"
    if options.is_text:
        return f"Words {seldom} are left out: {counted.rare:,} of {counted.rows + counted.rare:,}."
    return f"Tokens {seldom} count as one token of their field."


def _is_row_id(field: CountedField) -> bool:
    counts = field.ranked.counts
    singletons = int(np.count_nonzero(counts == 1))
    return len(counts) >= _FEWEST and singletons >= _MOST * len(counts)


def _is_binary(field: CountedField) -> bool:
    return {name for name, _ in field.ranked.most_frequent} == {"0", "1"}


def _named(names: list[str]) -> str:
    if len(names) > _FEW:
        return f"{len(names)} fields"
    *others, last = map(repr, names)
    return f"{', '.join(others)} and {last}" if others else last
