"""When a loss that is a finite number still shows that a run diverged."""

from __future__ import annotations

import math

from freqsgd.training.engine import DivergedError

__all__ = ["check_loss", "constant_loss"]

_FAR_ABOVE = 10
# An untrained model's loss is ln 2, many times that of a constant where labels are rare. A run that
# starts slowly has not diverged, so no loss below 2 ln 2 counts.
_LEAST = 2 * math.log(2) / _FAR_ABOVE


def check_loss(
    loss: float, blank: float, step: int, model: str = "a model that knows nothing"
) -> None:
    """Raise :class:`DivergedError` if a loss is over ten times ``blank``, that of ``model``.

    Overfitting seldom goes so far: a model that has learned its training rows by heart is far above
    a constant only where its weights are far too large.
    """
    if not math.isfinite(loss):
        raise DivergedError(step)
    if loss > _FAR_ABOVE * blank:
        raise DivergedError(
            step, f"is {loss:.4g}, more than {_FAR_ABOVE} times the {blank:.2g} of {model},"
        )


def constant_loss(rate: float, positives: int, rows: int) -> float:
    """Return the loss of predicting ``rate`` for all rows, as a ``blank`` of :func:`check_loss`.

    Args:
        rate: the mean label of the training rows, which the rows need not share
        positives, rows: of the rows that a loss is of

    Example:
        >>> round(constant_loss(0.25, positives=25, rows=100), 3)
        0.562
    """
    p, share = min(max(rate, 1e-6), 1 - 1e-6), positives / rows
    return max(-share * math.log(p) - (1 - share) * math.log1p(-p), _LEAST)
