"""The rows of the tables that tokens are hashed to, as a user states them."""

from __future__ import annotations

from collections.abc import Sequence

from freqsgd.data.dataset import DataError

__all__ = ["parse_rows"]

_MOST = 2**31 - 1


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
    if rows != value or not 1 <= rows <= _MOST:
        raise DataError(f"hash rows must be a whole number from 1 to {_MOST:,}, not {text}")
    return rows
