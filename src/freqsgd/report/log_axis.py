"""Logarithmic axes that read alike on a page and in a picture."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

__all__ = ["log_axis", "positive"]

FEW_DECADES = 2  # below, 1, 2 and 5 of each are written out
FEW_TICKS = 3  # below, all digits are
MANY_DECADES = 7  # above, Plotly chooses
ROOM = 0.06  # at both ends, of the length between
LEAST = 0.3  # of a decade, if all values are nearly the same


def positive(value: float | None) -> float | None:
    """What a logarithmic axis can show."""
    return value if value is not None and value > 0 else None


def log_axis(values: Iterable[float | None], *, whole: bool = False) -> dict[str, Any]:
    """An axis that holds all values; ``whole`` numbers have no ticks between them."""
    exponents = [math.log10(shown) for value in values if (shown := positive(value)) is not None]
    low, high = min(exponents, default=0.0), max(exponents, default=1.0)
    room = ROOM * (high - low) if high - low > LEAST else LEAST / 2
    low, high = low - room, high + room
    axis = {"type": "log", "range": [low, high], "exponentformat": "power"}
    if high - low < FEW_DECADES:
        ticks = round_numbers(low, high, (1, 2, 5))
        if len(ticks) < FEW_TICKS:
            ticks = round_numbers(low, high, range(1, 10))
        if whole:
            ticks = [tick for tick in ticks if tick >= 1]
        return {**axis, "tickvals": ticks, "ticktext": [f"{tick:,.6g}" for tick in ticks]}
    return {**axis, "dtick": 1} if high - low <= MANY_DECADES else axis


def round_numbers(low: float, high: float, digits: Iterable[int]) -> list[float]:
    """Numbers between two exponents that have one of the digits, and else zeros."""
    return [
        digit * 10.0**exponent
        for exponent in range(math.floor(low), math.ceil(high))
        for digit in digits
        if low <= exponent + math.log10(digit) <= high
    ]
