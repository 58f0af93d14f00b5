"""What is to be learned of each row, and what part of the data it belongs to."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.data.dataset import DataError
from freqsgd.data.splits import PARTS

__all__ = ["Target"]

_TIME_FORMATS = ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f")


@dataclass(frozen=True)
class Target:
    """The columns that labels and splits are made from."""

    label: str
    positive_above: float | None = None  # None: the label is 0 or 1
    time: str | None = None  # the column that the split goes by, if any: a time,
    part: str | None = None  # or "train", "validation" or "test"

    def __post_init__(self) -> None:
        if self.positive_above is not None and math.isnan(self.positive_above):
            raise DataError("the label cannot be above nan: --positive-above takes a number")

    def columns(self) -> list[str]:
        """Names of the columns."""
        return [name for name in (self.label, self.time, self.part) if name]

    def labels(self, frame: pl.DataFrame) -> NDArray[np.uint8]:
        """The label of each row, 0 or 1."""
        above = 0.5 if self.positive_above is None else self.positive_above
        label = self._label(frame.schema) > above
        return frame.select(label.cast(pl.UInt8)).to_series().to_numpy()

    def order(self, frame: pl.DataFrame) -> NDArray[np.float64]:
        """The time, or the number of the part, of each row; empty without such a column."""
        if not (self.time or self.part):
            return np.empty(0)
        return frame.select(self._order(frame.schema)).to_series().to_numpy()

    def checks(self, schema: pl.Schema) -> Iterator[tuple[str, pl.Expr, str]]:
        """What cannot be used: the column, the condition, what is wrong with such a value."""
        label = self._label(schema)
        if self.positive_above is None:
            wrong = ~label.is_in([0.0, 1.0])
            fault = "not 0 or 1 (a rating becomes a label with --positive-above)"
        else:
            wrong, fault = label.is_nan(), "not a number"
        yield self.label, wrong.fill_null(True), fault
        if self.time:
            fault = "not a number, nor a time such as 2024-01-31 or 2024-01-31 12:30:00"
            yield self.time, self._order(schema).is_null(), fault
        if self.part:
            yield self.part, self._order(schema).is_null(), "not train, validation or test"

    def _label(self, schema: pl.Schema) -> pl.Expr:
        raw = pl.col(self.label)
        number = raw.cast(pl.Float64, strict=False)
        if schema[self.label] != pl.String:
            return number
        truth: dict[Any, Any] = {"true": 1.0, "false": 0.0}
        text = raw.str.to_lowercase()
        return number.fill_null(text.replace_strict(truth, default=None, return_dtype=pl.Float64))

    def _order(self, schema: pl.Schema) -> pl.Expr:
        """What the split goes by, as a number; null where it cannot be read."""
        if self.part:
            text = pl.col(self.part).cast(pl.String).str.strip_chars().str.to_lowercase()
            parts: dict[Any, Any] = {**PARTS}
            return text.replace_strict(parts, default=None, return_dtype=pl.Float64)
        assert self.time
        raw = pl.col(self.time)
        if schema[self.time].is_temporal():
            return raw.cast(pl.Datetime("us")).to_physical().cast(pl.Float64)
        number = raw.cast(pl.Float64, strict=False).fill_nan(None)
        if schema[self.time] != pl.String:
            return number
        text = raw.str.strip_suffix("Z")
        times = (text.str.strptime(pl.Datetime("us"), form, strict=False) for form in _TIME_FORMATS)
        return pl.coalesce(number, *(time.to_physical().cast(pl.Float64) for time in times))
