"""Rows of raw files, checked: tokens as text, labels, and what the split goes by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.data.blocks import Block, read_blocks
from freqsgd.data.columns import Column, is_unreadable, tokens
from freqsgd.data.formats import Parquet, TextFormat
from freqsgd.data.malformed import MalformedRows
from freqsgd.data.splits import PARTS

__all__ = ["Samples", "Target", "read_samples"]

_TIME_FORMATS = ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f")


@dataclass(frozen=True)
class Target:
    """What a row is to be learned for."""

    label: str
    positive_above: float | None = None  # None: the label is 0 or 1
    time: str | None = None  # the column that the split goes by, if any: a time,
    part: str | None = None  # or "train", "validation" or "test"

    def columns(self) -> list[str]:
        """Names of the columns that are needed."""
        return [name for name in (self.label, self.time, self.part) if name]


@dataclass(frozen=True)
class Samples:
    """Consecutive well-formed rows."""

    frame: pl.DataFrame  # of tokens as text, or of lists of them
    labels: NDArray[np.uint8]  # empty without a target
    order: NDArray[np.float64]  # time, or number of the part, of each row; empty without either
    done: float  # the part of the file that is read, from 0 to 1


def read_samples(
    path: Path,
    form: TextFormat | Parquet,
    columns: Sequence[Column],
    malformed: MalformedRows,
    target: Target | None = None,
) -> Iterator[Samples]:
    """Samples of a file, a bounded number at a time; malformed rows go to ``malformed``."""
    names = [*(column.name for column in columns), *(target.columns() if target else ())]
    for block in read_blocks(path, form, list(dict.fromkeys(names))):
        frame = _drop_malformed(path, block, columns, malformed, target)
        schema = frame.schema
        encoded = frame.select(tokens(column, schema[column.name]) for column in columns)
        labels, order = np.empty(0, np.uint8), np.empty(0)
        if target:
            above = 0.5 if target.positive_above is None else target.positive_above
            label = _number(target.label, schema) > above
            labels = frame.select(label.cast(pl.UInt8)).to_series().to_numpy()
            if target.time or target.part:
                order = frame.select(_order(target, schema)).to_series().to_numpy()
        yield Samples(encoded, labels, order, block.done)


def _drop_malformed(
    path: Path,
    block: Block,
    columns: Sequence[Column],
    malformed: MalformedRows,
    target: Target | None,
) -> pl.DataFrame:
    frame = block.frame
    checks = list(_checks(frame.schema, columns, target))
    found = list(block.malformed)
    flags = frame.select(bad.alias(str(index)) for index, (bad, _, _) in enumerate(checks))
    any_bad = flags.select(pl.any_horizontal(pl.all())).to_series() if checks else None
    if any_bad is not None and any_bad.any():
        for row in any_bad.arg_true().to_list():
            _, name, reason = checks[flags.row(row).index(True)]
            value = frame.item(row, name)
            number = int(block.numbers[row])
            found.append((number, f"{block.unit} {number}", f"{name} is {value!r}, {reason}"))
        frame = frame.filter(~any_bad)
        found.sort()
    malformed.add(path, len(frame) + len(found), [item[1:] for item in found])
    return frame


def _checks(
    schema: pl.Schema, columns: Sequence[Column], target: Target | None
) -> Iterator[tuple[pl.Expr, str, str]]:
    """What makes a row malformed: the condition, the column, what is wrong with the value."""
    if target:
        label = _number(target.label, schema)
        if target.positive_above is None:
            wrong = ~label.is_in([0.0, 1.0])
            reason = "not 0 or 1 (a rating becomes a label with --positive-above)"
        else:
            wrong, reason = label.is_nan(), "not a number"
        yield wrong.fill_null(True), target.label, reason
        if target.time:
            reason = "not a number, or a time such as 2024-01-31 or 2024-01-31 12:30:00"
            yield _order(target, schema).is_null(), target.time, reason
        if target.part:
            yield _order(target, schema).is_null(), target.part, "not train, validation or test"
    for column in columns:
        unreadable = is_unreadable(column, schema[column.name])
        if unreadable is not None:
            kind = "an integer" if column.kind == "integer" else "a finite number"
            yield unreadable, column.name, f"not {kind}"


def _number(name: str, schema: pl.Schema) -> pl.Expr:
    raw = pl.col(name)
    number = raw.cast(pl.Float64, strict=False)
    if schema[name] == pl.String:
        truth: dict[Any, Any] = {"true": 1.0, "false": 0.0}
        number = number.fill_null(
            raw.str.to_lowercase().replace_strict(truth, default=None, return_dtype=pl.Float64)
        )
    return number


def _order(target: Target, schema: pl.Schema) -> pl.Expr:
    """What the split goes by, as a number; null where it cannot be read."""
    if target.part:
        text = pl.col(target.part).cast(pl.String).str.strip_chars().str.to_lowercase()
        parts: dict[Any, Any] = {**PARTS}
        return text.replace_strict(parts, default=None, return_dtype=pl.Float64)
    assert target.time
    raw = pl.col(target.time)
    if schema[target.time].is_temporal():
        return raw.cast(pl.Datetime("us")).to_physical().cast(pl.Float64)
    number = raw.cast(pl.Float64, strict=False).fill_nan(None)
    if schema[target.time] != pl.String:
        return number
    times = (
        raw.str.strip_suffix("Z").str.strptime(pl.Datetime("us"), form, strict=False)
        for form in _TIME_FORMATS
    )
    return pl.coalesce(number, *(time.to_physical().cast(pl.Float64) for time in times))
