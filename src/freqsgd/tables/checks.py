"""Check options that a user gave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from numbers import Integral, Real
from typing import Any, TypeVar

from freqsgd.errors import DataError
from freqsgd.tables.formats import Parquet, TextFormat, split_type
from freqsgd.tables.splits import split_column

__all__ = [
    "check_columns",
    "parse_rows",
    "real_number",
    "refuse_options",
    "whole_number",
    "without_types",
]

_NUMERIC_RULES = ("log", "quantiles")
_Options = TypeVar("_Options", bound=Any)
_MOST = 2**31 - 1  # what fits where ids and lengths are kept


def whole_number(name: str, value: object, least: int, most: int = _MOST) -> int:
    """The value as an int; numpy's integers are fine, 2.0 and True are not.

    Example:
        >>> whole_number("window", 0, least=1)
        Traceback (most recent call last):
        freqsgd.errors.DataError: window must be at least 1, got 0
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    number = int(value)
    if number < least:
        raise DataError(f"{name} must be at least {least}, got {number}")
    if number > most:
        raise DataError(f"{name} must be at most {most:,}, got {number:,}")
    return number


def real_number(name: str, value: object) -> float:
    """The value as a float; numpy's numbers are fine, texts and True are not."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {value!r}")
    return float(value)


def check_columns(
    path: str | None,
    features: Sequence[str],
    numeric: Sequence[str],
    numeric_rule: str,
    label: str | None,
) -> None:
    """Raise if a column has two uses, or if there is no such rule for numbers."""
    for name, times in Counter([*features, *numeric]).items():
        if times > 1:
            raise DataError(f"{path}: the column {name!r} is named twice as a feature")
        if name == label:
            raise DataError(f"{path}: the column {name!r} cannot be feature and label")
    if numeric_rule not in _NUMERIC_RULES:
        known = ", ".join(_NUMERIC_RULES)
        raise DataError(f"unknown numeric rule {numeric_rule!r}: known are {known}")


def refuse_options(options: Any, where: str, *names: str) -> None:
    """Raise if any of these fields of a dataclass has another value than its default."""
    defaults = {field.name: field.default for field in fields(options)}
    for name in names:
        if getattr(options, name) != defaults[name]:
            flag = name.replace("path", "data").replace("_", "-")
            raise DataError(f"--{flag} does not go with {where}")


def without_types(options: _Options, form: TextFormat | Parquet) -> _Options:
    """Return options that name columns of typed files without their types.

    In a file with the header ``user_id:token``, both this and ``user_id`` name the column.
    """
    if not (isinstance(form, TextFormat) and form.typed):
        return options

    def plain(names: Sequence[str]) -> tuple[str, ...]:
        return tuple(split_type(name)[0] for name in names)

    named: dict[str, Any] = {
        "features": plain(options.features),
        "numeric": plain(options.numeric),
    }
    if options.label:
        named["label"] = split_type(options.label)[0]
    by, column = split_column(getattr(options, "split", "random"))
    if column:
        named["split"] = f"{by}:{split_type(column)[0]}"
    changed = replace(options, **named)
    changed.check()  # a column may be named both ways
    return changed


_MOST_ROWS = 2**31 - 1


def parse_rows(text: str, fields: Sequence[str]) -> list[int]:
    """The rows of each field: one number for all of them, or ``user=1e5,item=1e6``.

    Example:
        >>> parse_rows("user=1e5,item=1e6", ["item", "user"])
        [1000000, 100000]
    """
    if "=" not in text:
        return [_number(text)] * len(fields)
    stated: dict[str, int] = {}
    for part in text.split(","):
        name, _, number = (piece.strip() for piece in part.rpartition("="))
        if name not in fields:
            raise DataError(
                f"hash rows {text!r}: there is no feature {name!r}; the features are "
                f"{', '.join(fields)}"
            )
        if name in stated:
            raise DataError(f"hash rows {text!r}: {name!r} is named twice")
        stated[name] = _number(number)
    missing = [name for name in fields if name not in stated]
    if missing:
        raise DataError(f"hash rows {text!r}: say how many for {', '.join(missing)} too")
    return [stated[name] for name in fields]


def _number(text: str) -> int:
    try:
        value = float(text)
        rows = int(value)
    except (ValueError, OverflowError):
        raise DataError(f"hash rows: {text!r} is not a number such as 1000000 or 1e6") from None
    if rows != value or not 1 <= rows <= _MOST_ROWS:
        raise DataError(f"hash rows must be a whole number from 1 to {_MOST:,}, not {text}")
    return rows
