"""Describe how frequent tokens are: the content of ``inspect.json``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from freqsgd.documents import SCHEMA
from freqsgd.documents.inspection import (
    FieldCorollary,
    InspectedData,
    InspectedField,
    Inspection,
    Promise,
    SuggestedRates,
    TailFit,
)
from freqsgd.errors import DataError
from freqsgd.inspection.options import InspectionOptions
from freqsgd.optimizers import Rule, by_memory
from freqsgd.recommender.memory import table_state
from freqsgd.theory.improvement import corollary, promises
from freqsgd.theory.tails import fit_tail
from freqsgd.words.settings import TextSettings

if TYPE_CHECKING:
    from freqsgd.inspection.counting import Counted, CountedField

_NO_WORD_RATE = "word vectors have default rates, which freqsgd words train uses"


def inspect_data(
    options: InspectionOptions,
    *,
    command: str = "",
    progress: Callable[[str, int, int | None], None] | None = None,
) -> Inspection:
    """Read all rows once, and describe how frequent tokens are and what that promises.

    Args:
        options: what to look at
        command: that asked for it
        progress: called now and then with a stage, how much is done, and how much there is

    Returns:
        the content of ``inspect.json``, as ``docs/inspect.md`` lists it

    Raises:
        DataError: the data is not there or cannot be used, or the options do not fit together

    Example:
        >>> document = inspect_data(InspectionOptions(dataset="synthetic"))
        >>> [field.tokens for field in document.fields]
        [7998, 4000]
    """
    try:
        from freqsgd.inspection.counting import count
        from freqsgd.inspection.sources import open_source
    except ModuleNotFoundError as error:
        raise DataError(f"files are read with {error.name}: pip install 'freqsgd[cli]'") from error
    tell = progress or (lambda stage, done, total: None)
    tell("looking at columns", 0, None)
    source = open_source(options)
    has_numbers = any(column.is_number for column in source.columns)
    counted = count(source, options.min_count, progress)
    counts = [field.counts for field in counted.fields]
    of_fields, of_all = promises(counts, counted.rows)
    fields = []
    for number, (field, promise) in enumerate(zip(counted.fields, of_fields, strict=True)):
        tell("describing columns", number, len(counts))
        fields.append(_describe(field, promise))
    indices = sum(field.occurrences for field in fields)
    return Inspection(
        schema=SCHEMA,
        kind="inspection",
        command=command,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        dataset=InspectedData(
            name=counted.name,
            rows=counted.rows,
            fields=len(fields),
            tokens=sum(map(len, counts)),
            min_count=counted.min_count,
            numeric_rule=options.numeric_rule if has_numbers else None,
        ),
        dim=options.dim,
        fields=tuple(fields),
        promise=of_all,
        tail_samples=counted.tail_samples,
        memory=_memory(counted, options),
        lr=None if options.is_text else learning_rates(indices / counted.rows),
        lr_reason=_NO_WORD_RATE if options.is_text else None,
        notes=tuple(_notes(counted, options)),
    )


# ---- a field -------------------------------------------------------------------------------------

_MOST_RANKS = 300


def _describe(field: CountedField, promise: Promise) -> InspectedField:
    counts, fit = field.counts, fit_tail(field.counts)
    return InspectedField(
        name=field.name,
        tokens=len(counts),
        samples=field.samples,
        occurrences=int(counts.sum()),
        top_1=top_share(counts, 1),
        top_10=top_share(counts, 10),
        singletons=_singletons(field),
        effective_tokens=effective_tokens(counts),
        most_frequent=tuple(field.most_frequent),
        fit=fit,
        corollary=_corollary(fit),
        ranks=tuple(rank_frequencies(counts)),
        promise=promise,
    )


def top_share(counts: NDArray[np.int64], percent: int) -> float:
    """Return the share of all occurrences that so many percent of tokens have, the top ones.

    Their number is rounded up: the top 1% of 5 tokens is one token.
    """
    tokens = -(-percent * len(counts) // 100)
    return float(counts[:tokens].sum() / counts.sum())


def effective_tokens(counts: NDArray[np.int64]) -> float:
    """Return how many equally frequent tokens would meet as often: 1 / sum_k share_k^2."""
    shares = counts / counts.sum()
    return float(1 / np.square(shares).sum())


def rank_frequencies(counts: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return rank and count of the first token, the last, and some between on a log scale."""
    ranks = np.unique(np.geomspace(1, len(counts), min(len(counts), _MOST_RANKS)).round())
    return [(int(rank), int(counts[int(rank) - 1])) for rank in ranks]


def _singletons(field: CountedField) -> int:
    return int(np.count_nonzero(field.counts == 1))


def _corollary(fit: TailFit) -> FieldCorollary:
    """Return whether the paper's corollary for the fitted tail applies, and if not, why."""
    if fit.family is None or fit.rate is None:
        return FieldCorollary(False, fit.reason)
    found = corollary(fit.family, fit.tokens, fit.rate)
    return FieldCorollary(found.applies, found.reason, found.top)


# ---- memory and rates ----------------------------------------------------------------------------

_FLOAT = 4
_RULES = [Rule(each.name) for each in reversed(by_memory()) if each.trains and each.stateful]
_TOP, _WIDTH = 1.5, 3.0


def _memory(counted: Counted, options: InspectionOptions) -> dict[str, int]:
    fields, rows = counted.fields, counted.rows
    if options.is_text:
        words = len(fields[0].counts)
        most = TextSettings().most_counted(rows)
        return memory(2 * words, options.dim, most, parts=2, linear=False)
    table_rows = sum(field.table_rows for field in fields)
    most = rows * max(field.width for field in fields)
    return memory(table_rows, options.dim, most, parts=len(fields))


def memory(
    rows: int, dim: int, most_counted: int, *, parts: int, linear: bool = True
) -> dict[str, int]:
    """Return bytes of weights, and of the state of each optimizer.

    Args:
        rows: of all tables
        dim: numbers of a vector
        most_counted: the most that a token could be counted in an epoch
        parts: number of fields, or of tables of words
        linear: each row holds a linear weight too, as in a factorization machine
    """
    states = {
        rule.optimizer: table_state(rule, rows, dim, most_counted, parts=parts, linear=linear)
        for rule in _RULES
    }
    return {"weights": _FLOAT * rows * (dim + linear), **states}


def learning_rates(tokens_per_sample: float) -> SuggestedRates:
    """Return a range of CF-SGD's learning rates for an FM in batches of 1024, mean loss.

    The more tokens samples had, the lower was the largest rate that worked on the data tried. The
    range is

        1.5 / tokens ** (1/3) / 3     to     1.5 / tokens ** (1/3)

    a rule of thumb; ``docs/inspect.md`` says on what data it was found and how well it does.

    Example:
        >>> learning_rates(2).low, learning_rates(2).high
        (0.4, 1.0)
    """
    high = _TOP / tokens_per_sample ** (1 / 3)
    tokens = f"{tokens_per_sample:.3g}"
    many = "token" if tokens == "1" else "tokens"
    return SuggestedRates(
        low=_one_digit(high / _WIDTH),
        high=_one_digit(high),
        rule=f"{_TOP:g} / {tokens} ** (1/3) for {tokens} {many} a sample, and a third of it",
        advice="for an FM in batches of 1,024; begin at the upper end",
    )


def _one_digit(rate: float) -> float:
    """Return it rounded, but not above all that was tried."""
    return min(float(f"{rate:.1g}"), _TOP)


# ---- notes ---------------------------------------------------------------------------------------

_MOST = 0.95  # share of the tokens, beyond which nearly all are seen once
_FEWEST = 100  # tokens; fewer may be seen once where rows are few
_FEW = 4  # fields that are all named


def _notes(counted: Counted, options: InspectionOptions) -> Iterator[str]:
    """Yield sentences about rare tokens and columns that are likely no fields."""
    fields = counted.fields
    if counted.rare:
        seldom = f"seen fewer than {counted.min_count:,} times (--min-count)"
        yield (
            f"Words {seldom} are left out: {counted.rare:,} of {counted.rows + counted.rare:,}."
            if options.is_text
            else f"Tokens {seldom} count as one token of their field."
        )
    ids = [each for each in fields if _singletons(each) >= _MOST * len(each.counts)]
    if ids := [each for each in ids if len(each.counts) >= _FEWEST]:
        yield (
            f"Nearly all tokens of {_named(ids)} occur once, as numbers of rows do: nothing can be "
            "learned of them, and they change what is promised to other fields; leave such columns "
            "out (--features)."
        )
    labels = [each for each in fields if {name for name, _ in each.most_frequent} == {"0", "1"}]
    own_table = options.path is not None and not options.is_text
    if labels and own_table and options.label is None and not options.features:
        yield f"The values of {_named(labels)} are 0 and 1: if it is the label, say so (--label)."


def _named(fields: list[CountedField]) -> str:
    if len(fields) > _FEW:
        return f"{len(fields)} fields"
    *others, last = (repr(field.name) for field in fields)
    return f"{', '.join(others)} and {last}" if others else last
