"""All that ``inspect.json`` says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from freqsgd.documents import SCHEMA
from freqsgd.errors import DataError
from freqsgd.inspection.options import InspectionOptions
from freqsgd.optimizers import Rule, by_memory
from freqsgd.recommender.memory import table_state
from freqsgd.theory.improvement import corollary, promises
from freqsgd.theory.tails import TailFit, fit_tail
from freqsgd.words.settings import TextSettings

if TYPE_CHECKING:
    from freqsgd.inspection.counting import Counted, CountedField

_NO_WORD_RATE = "word vectors have default rates, which freqsgd train --model skipgram uses"


def inspect_data(
    options: InspectionOptions,
    *,
    command: str = "",
    progress: Callable[[str, int, int | None], None] | None = None,
) -> dict[str, Any]:
    """Look at all rows once, and say how frequent tokens are and what that promises.

    Args:
        options: what to look at
        command: that asked for it
        progress: called now and then with a stage, how much is done, and how much there is

    Returns:
        what ``docs/inspect.md`` lists, ready to be written as JSON

    Raises:
        DataError: the data is not there or cannot be used, or the options do not fit together

    Example:
        >>> document = inspect_data(InspectionOptions(dataset="synthetic"))
        >>> [field["tokens"] for field in document["fields"]]
        [7998, 4000]
    """
    try:
        from freqsgd.inspection.counting import count
        from freqsgd.inspection.sources import open_source
    except ModuleNotFoundError as error:
        raise DataError(f"files are read with {error.name}: pip install 'freqsgd[cli]'") from error
    if progress:
        progress("looking at columns", 0, None)
    source = open_source(options)
    has_numbers = any(column.is_number for column in source.columns)
    counted = count(source, options.min_count, progress)
    return {
        "schema": SCHEMA,
        "kind": "inspection",
        "command": command,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        **_description(counted, options, options.numeric_rule if has_numbers else None, progress),
    }


def _description(
    counted: Counted, options: InspectionOptions, numeric_rule: str | None, progress: Any
) -> dict[str, Any]:
    fields, rows = counted.fields, counted.rows
    counts = [field.counts for field in fields]
    indices = int(sum(field.sum() for field in counts))
    of_fields, of_all = promises(counts, rows)
    described = []
    for number, (field, promise) in enumerate(zip(fields, of_fields, strict=True)):
        if progress:
            progress("describing columns", number, len(fields))
        described.append({**field_statistics(field), "promise": promise.as_json()})
    return {
        "dataset": {
            "name": counted.name,
            "rows": rows,
            "fields": len(fields),
            "tokens": sum(map(len, counts)),
            "min_count": counted.min_count,
            "numeric_rule": numeric_rule,
        },
        "dim": options.dim,
        "fields": described,
        "promise": of_all.as_json(),
        "tail_samples": asdict(counted.tail_samples),
        "memory": _memory(counted, options),
        "lr": None if options.is_text else learning_rates(indices / rows),
        "lr_reason": _NO_WORD_RATE if options.is_text else None,
        "notes": list(notes(counted, options)),
    }


def _memory(counted: Counted, options: InspectionOptions) -> dict[str, int]:
    fields, rows = counted.fields, counted.rows
    if options.is_text:
        return memory_of_words(len(fields[0].counts), options.dim, rows)
    table_rows = sum(field.table_rows for field in fields)
    return memory_of_fm(table_rows, options.dim, rows * max(field.width for field in fields))


_MOST = 0.95  # share of the tokens, beyond which nearly all are seen once
_FEWEST = 100  # tokens; fewer may be seen once where rows are few
_FEW = 4  # fields that are all named


def notes(counted: Counted, options: InspectionOptions) -> Iterator[str]:
    """Yield sentences, each of them about something else."""
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
    counts = field.counts
    singletons = int(np.count_nonzero(counts == 1))
    return len(counts) >= _FEWEST and singletons >= _MOST * len(counts)


def _is_binary(field: CountedField) -> bool:
    return {name for name, _ in field.most_frequent} == {"0", "1"}


def _named(names: list[str]) -> str:
    if len(names) > _FEW:
        return f"{len(names)} fields"
    *others, last = map(repr, names)
    return f"{', '.join(others)} and {last}" if others else last


_TOP, _WIDTH = 1.5, 3.0
_ADVICE = "for an FM in batches of 1,024; begin at the upper end"


def learning_rates(tokens_per_sample: float) -> dict[str, Any]:
    """Return where to look for CF-SGD's learning rate: an FM in batches of 1024, mean loss.

    The more tokens samples had, the lower was the largest rate that worked on the data tried. The
    range is

        1.5 / tokens ** (1/3) / 3     to     1.5 / tokens ** (1/3)

    a rule of thumb; ``docs/inspect.md`` says on what data it was found and how well it does.

    Example:
        >>> learning_rates(2)["low"], learning_rates(2)["high"]
        (0.4, 1.0)
    """
    high = _TOP / tokens_per_sample ** (1 / 3)
    tokens = f"{tokens_per_sample:.3g}"
    many = "token" if tokens == "1" else "tokens"
    return {
        "low": _one_digit(high / _WIDTH),
        "high": _one_digit(high),
        "rule": f"{_TOP:g} / {tokens} ** (1/3) for {tokens} {many} a sample, and a third of it",
        "advice": _ADVICE,
    }


def _one_digit(rate: float) -> float:
    """Return it rounded, but not above all that was tried."""
    return min(float(f"{rate:.1g}"), _TOP)


_FLOAT = 4
_RULES = [Rule(each.name) for each in reversed(by_memory()) if each.trains and each.stateful]


def memory_of_fm(table_rows: int, dim: int, most_counted: int) -> dict[str, int]:
    """Return that of a factorization machine, whose rows hold a vector and a linear weight.

    Args:
        table_rows: of all fields
        dim: numbers of a vector
        most_counted: the most that a token could be counted in an epoch, as the engine reckons it:
            samples, times the width of the widest field
    """
    states = {r.optimizer: table_state(r, table_rows, dim, most_counted) for r in _RULES}
    return {"weights": _FLOAT * table_rows * (dim + 1), **states}


def memory_of_words(words: int, dim: int, occurrences: int) -> dict[str, int]:
    """Return that of word vectors: two tables, whose rows are a vector each.

    How far counters could come is what the engine reckons for an epoch of its default settings.
    """
    most_counted = TextSettings().most_counted(occurrences)
    rows = 2 * words
    states = {r.optimizer: table_state(r, rows, dim, most_counted, linear=False) for r in _RULES}
    return {"weights": _FLOAT * rows * dim, **states}


_MOST_RANKS = 300


def field_statistics(field: CountedField) -> dict[str, Any]:
    """Return what ``inspect.json`` says of a field, without its promise."""
    counts = field.counts
    fit = fit_tail(counts)
    return {
        "name": field.name,
        "tokens": len(counts),
        "samples": field.samples,
        "occurrences": int(counts.sum()),
        "top_1": top_share(counts, 1),
        "top_10": top_share(counts, 10),
        "singletons": int(np.count_nonzero(counts == 1)),
        "effective_tokens": effective_tokens(counts),
        "most_frequent": [list(pair) for pair in field.most_frequent],
        "fit": fit.as_json(),
        "corollary": _corollary(fit, len(counts)),
        "ranks": rank_frequencies(counts),
    }


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


def rank_frequencies(counts: NDArray[np.int64]) -> list[list[int]]:
    """Return rank and count of the first token, the last, and some between on a log scale."""
    ranks = np.unique(np.geomspace(1, len(counts), min(len(counts), _MOST_RANKS)).round())
    return [[int(rank), int(counts[int(rank) - 1])] for rank in ranks]


def _corollary(fit: TailFit, tokens: int) -> dict[str, Any]:
    """Return whether the paper's corollary for the fitted tail applies, and if not, why."""
    rate = fit.tau if fit.family == "exponential" else fit.nu
    if fit.family is None or rate is None:
        return {"applies": False, "reason": fit.reason, "top": None}
    found = corollary(fit.family, tokens, rate)
    return {"applies": found.applies, "reason": found.reason, "top": found.top}
