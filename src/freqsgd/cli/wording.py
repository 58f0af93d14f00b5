"""Numbers and names as people write and read them."""

from __future__ import annotations

import re

from freqsgd.errors import DataError

__all__ = ["count_of", "number", "quantity", "shown"]


def number(value: float | None) -> str:
    """Format a score: four decimals, or six digits of a large number; "-" if there is none."""
    if value is None:
        return "-"
    return f"{value:.4f}" if abs(value) < 100 else f"{value:.6g}"


def count_of(count: int, word: str) -> str:
    """Format a number of things.

    Example:
        >>> count_of(1, "day"), count_of(2500, "row")
        ('1 day', '2,500 rows')
    """
    return f"{count:,} {word if count == 1 else word + 's'}"


def shown(text: str) -> str:
    """Return a text that keeps to its line and cannot steer the terminal."""
    return text if text.isprintable() else repr(text)


_MOST = 1e30  # so that products of some of them are floats too
_EXAMPLES = {
    "": "1000000, 1e8, 100M or 2.5G",
    "B": "64GB, 1T or 512GiB",
    "bit": "25G or 100M, in bits per second",
}
_PREFIXES = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_PATTERN = re.compile(r"([0-9.]+(?:e[+-]?[0-9]+)?)\s*([kmgtp]?)(i?)(b?)", re.IGNORECASE)


def quantity(option: str, text: str, *, unit: str = "") -> int:
    """Return a whole number above 0, such as 1e8, 100M, 64GB or 64GiB; the unit is B, bit or none.

    Example:
        >>> quantity("--host-memory", "1.5T", unit="B")
        1500000000000
    """
    found = _PATTERN.fullmatch(text.strip().replace(",", "").replace("_", ""))
    try:
        if found is None or (found[4] and unit != "B"):
            raise ValueError
        base = 1024 if found[3] else 1000
        value = float(found[1]) * base ** _PREFIXES[found[2].lower()]
    except (ValueError, OverflowError):
        raise DataError(
            f"{option} takes a number such as {_EXAMPLES[unit]}, not {text!r}"
        ) from None
    if not 1 <= value <= _MOST or value != int(value):
        raise DataError(
            f"{option} must be a whole number of at least 1 and at most {_MOST:g}, not {text}"
        )
    return int(value)
