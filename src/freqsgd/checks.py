"""Check numbers and options that a user gave."""

from __future__ import annotations

from dataclasses import fields
from numbers import Integral, Real
from typing import Any

from freqsgd.errors import DataError

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


def refuse_options(options: Any, where: str, *names: str) -> None:
    """Raise if any of these fields of a dataclass has another value than its default."""
    defaults = {field.name: field.default for field in fields(options)}
    for name in names:
        if getattr(options, name) != defaults[name]:
            raise DataError(f"{name} does not go with {where}")
