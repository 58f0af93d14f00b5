"""All that ``inspect.json`` says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from freqsgd.data.dataset import DataError
from freqsgd.inspection.learning_rate import learning_rates
from freqsgd.inspection.memory import memory_of_fm, memory_of_words
from freqsgd.inspection.notes import notes
from freqsgd.inspection.options import InspectionOptions
from freqsgd.inspection.statistics import field_statistics
from freqsgd.theory.promise import promises

if TYPE_CHECKING:
    from freqsgd.inspection.counting import Counted

__all__ = ["SCHEMA", "inspect_data"]

SCHEMA = 1
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
    counts = [field.ranked.counts for field in fields]
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
        return memory_of_words(len(fields[0].ranked.counts), options.dim, rows)
    table_rows = sum(field.ranked.table_rows for field in fields)
    return memory_of_fm(table_rows, options.dim, rows * max(field.width for field in fields))
