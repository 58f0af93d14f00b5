"""Floats that are categories: whole numbers, which have the tokens of integers.

pandas makes floats of integers that stand beside a missing value, so a float of 1 must be the same
token as an integer of 1, wherever it comes from.
"""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from freqsgd.data.dataset import DataError

__all__ = ["NotWholeError", "whole_floats", "whole_number"]

# Above these some whole numbers have no float of their own and were rounded to another's.
_EXACT: dict[object, int] = {pl.Float16: 2**11, pl.Float32: 2**24, pl.Float64: 2**53}


class NotWholeError(DataError):
    """What is wrong with a float of a column, to be put after the column's name.

    Attributes:
        row: where it is among the values
    """

    def __init__(self, value: float, exact: int, row: int = 0) -> None:
        self.row = row
        super().__init__(
            f"holds {value!r}, and floats of its type do not tell whole numbers above {exact:,} "
            "apart: turn the column into integers or text"
            if exact < abs(value) < math.inf
            else f"holds {value!r}, which is not a category: name the column in numeric "
            "(--numeric) to have its numbers put into bins, or turn it into text"
        )


def whole_floats(values: pl.Series) -> pl.Series:
    """Return floats, or lists of floats, as integers; NaN becomes null. Others stay as they are.

    Raises:
        NotWholeError: a float is not a whole number, or so large that it may stand for another

    Example:
        >>> whole_floats(pl.Series([1.0, float("nan")])).to_list()
        [1, None]
    """
    dtype = values.dtype
    inner = dtype.inner if isinstance(dtype, pl.List | pl.Array) else dtype
    if not inner.is_float():
        return values
    if isinstance(dtype, pl.Array):
        values = values.arr.to_list()
    in_lists = isinstance(values.dtype, pl.List)
    exact = _EXACT[inner]
    present = (values.explode() if in_lists else values).fill_nan(None)
    wrong = (present != present.round()) | (present.abs() > exact)
    if wrong.any():
        value = present.filter(wrong)[0]
        rows = values.list.contains(value) if in_lists else wrong
        raise NotWholeError(value, exact, rows.arg_true()[0])
    if in_lists:
        return values.list.eval(pl.element().fill_nan(None).cast(pl.Int64))
    return present.cast(pl.Int64)


def whole_number(value: float | np.floating) -> int:
    """Return the integer that a float of Python or numpy is; raise as ``whole_floats`` does."""
    kind = value.dtype if isinstance(value, np.floating) else np.float64
    exact, number = 2 ** (min(np.finfo(kind).nmant, 52) + 1), float(value)
    if abs(number) > exact or number != int(number):
        raise NotWholeError(number, exact)
    return int(number)
