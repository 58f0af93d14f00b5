"""A range of learning rates for CF-SGD that takes no training."""

from __future__ import annotations

from typing import Any

__all__ = ["learning_rates"]

_TOP, _WIDTH = 1.5, 3.0
_ADVICE = "for an FM in batches of 1,024; begin at the upper end"


def learning_rates(tokens_per_sample: float) -> dict[str, Any]:
    """Where to look for CF-SGD's learning rate: an FM in batches of 1024, mean loss.

    The more tokens samples had, the lower was the largest rate that worked on the data tried. The
    range is

        1.5 / tokens ** (1/3) / 3     to     1.5 / tokens ** (1/3)

    a rule of thumb; ``docs/inspect.md`` says on what data it was found and how well it does.

    Example:
        >>> learning_rates(2)["low"], learning_rates(2)["high"]
        (0.4, 1.0)
    """
    high = _TOP / tokens_per_sample ** (1 / 3)
    tokens = f"{tokens_per_sample:.3g}"
    many = "token" if tokens == "1" else "tokens"
    return {
        "low": _one_digit(high / _WIDTH),
        "high": _one_digit(high),
        "rule": f"{_TOP:g} / {tokens} ** (1/3) for {tokens} {many} a sample, and a third of it",
        "advice": _ADVICE,
    }


def _one_digit(rate: float) -> float:
    """Rounded, but not above all that was tried."""
    return min(float(f"{rate:.1g}"), _TOP)
