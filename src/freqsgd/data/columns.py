"""How the raw values of a column become tokens."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

__all__ = ["MISSING", "Column", "is_unreadable", "tokens"]

MISSING = ""  # the token of a missing value


@dataclass(frozen=True)
class Column:
    """A column of the raw data, which is a field of a sample."""

    name: str
    kind: str = "category"  # or "number", "integer", "bag"
    edges: tuple[float, ...] = ()  # of a number's bins; without any the log rule is used
    width: int = 1  # tokens of a bag at most; what is beyond them is cut off

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers, which are put into bins."""
        return self.kind in ("number", "integer")


def is_unreadable(column: Column, dtype: pl.DataType) -> pl.Expr:
    """Whether a value of a numeric column is there but is no number."""
    raw, value = pl.col(column.name), _number(column)
    present = raw.is_not_null() & (raw != MISSING) if dtype == pl.String else raw.is_not_null()
    unreadable = value.is_null() & present
    if column.kind == "number":
        unreadable |= value.is_infinite().fill_null(False)
    return unreadable


def tokens(column: Column, dtype: pl.DataType) -> pl.Expr:
    """The token of each row as text; of a bag, the list of its tokens."""
    raw = pl.col(column.name)
    if column.kind == "category":
        return (raw if dtype == pl.String else raw.cast(pl.String)).fill_null(MISSING)
    if column.kind == "bag":
        element = pl.element().cast(pl.String).fill_null(MISSING)
        lists = raw if isinstance(dtype, pl.List) else raw.arr.to_list()
        return lists.fill_null([None]).list.head(column.width).list.eval(element)
    value = _number(column)
    value = value.fill_nan(None) if column.kind == "number" else value
    bins = _quantile_bin(value, column.edges) if column.edges else _log_bin(value)
    return bins.cast(pl.String).fill_null(MISSING).alias(column.name)


def _number(column: Column) -> pl.Expr:
    kind = pl.Float64 if column.kind == "number" else pl.Int64
    return pl.col(column.name).cast(kind, strict=False)


def _log_bin(value: pl.Expr) -> pl.Expr:
    """floor(log(x)^2) for x > 2, else floor(x) - 2: the competition winner's rule for Criteo."""
    high = value.log().pow(2).floor().cast(pl.Int64, strict=False)
    low = value.clip(-(2**53), 2).floor().cast(pl.Int64) - 2
    return pl.when(value > 2).then(high).otherwise(low)


def _quantile_bin(value: pl.Expr, edges: tuple[float, ...]) -> pl.Expr:
    """How many edges are not above x."""
    position = pl.lit(pl.Series(edges)).search_sorted(value, side="right")
    return pl.when(value.is_not_null()).then(position)
