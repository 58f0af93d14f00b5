"""Numbers in the output of commands.

It imports nothing, so that commands that train nothing start without the report.
"""

from __future__ import annotations

__all__ = ["count_of", "number"]


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
