"""How much better than SGD each method is, measured and by the bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from freqsgd.theory.checks import Array
from freqsgd.theory.estimates import ratio, slope
from freqsgd.theory.improvement import counting_factor, error_improvement
from freqsgd.theory.measured import Known, Measured
from freqsgd.theory.settings import Settings

__all__ = ["counting_cost", "improvement"]


def improvement(
    settings: Settings, known: Known, measured: Mapping[str, Measured], name: str
) -> dict[str, Any]:
    """An entry of ``improvements``: SGD's error over that of another method, token by token.

    Both are looked at in iterates of the same kind, and in repetitions that stayed in the ball.
    """
    other, sgd = measured[name], measured["sgd"]
    valid = other.valid & sgd.valid
    found = ratio(sgd.comparable[valid], other.comparable[valid])
    entry: dict[str, Any] = {
        "optimizer": name,
        "measured": found.value.tolist(),
        "low": found.low.tolist(),
        "high": found.high.tolist(),
    }
    if name == "sbcd":
        return entry
    cost = counting_cost(known, name)
    promised = error_improvement(known.p, known.sigma2) / cost
    begun = sgd.comparable[sgd.valid].mean(0) < sgd.start / 2
    return {
        **entry,
        "bound": promised.tolist(),
        "iterations": (promised**2).tolist(),
        "corollary": None
        if (other.steps == 1 / (4 * known.L)).any()
        else _guaranteed(settings, cost),
        "slope": _slope(settings, found.value, begun),
    }


def counting_cost(known: Known, name: str) -> float:
    """By how much the bounds' leading term is larger for a method that counts frequencies."""
    return counting_factor(*known) if name == "cfsgd" else 1.0


def _guaranteed(settings: Settings, cost: float) -> list[float] | None:
    """The corollaries' factors of iterations, token by token; ``cost`` is that of counting.

    They are for equal sigma_k, and for steps that the cap 1 / (4 L) leaves alone.
    """
    if settings.exception is not None:
        return None
    users, items = settings.corollaries
    parts = [
        users.iterations_improvement(np.arange(1, settings.users + 1)),
        items.iterations_improvement(np.arange(1, settings.items + 1)),
    ]
    return [float(factor) for factor in np.concatenate(parts) / cost**2]


def _slope(settings: Settings, improvement: Array, begun: Any) -> dict[str, Any] | None:
    """How fast the log of an improvement grows along the tail, alike on both sides.

    And how many tail tokens SGD has begun to learn: its error is less than half of that at the
    start. Nothing can be much better than SGD at what takes more than T iterations, so beyond these
    tokens the improvement stops to grow.
    """
    if settings.tail == "uniform":
        return None
    users, items = settings.corollaries
    ranks = np.concatenate(
        [np.arange(1, settings.users + 1), np.arange(1, settings.items + 1)], dtype=np.float64
    )
    side = np.repeat([0, 1], [settings.users, settings.items])
    tail = ranks > np.where(side == 0, users.top, items.top)
    by_rank = settings.tail == "exponential"
    x = ranks if by_rank else np.log(ranks)
    found = slope(x[tail], np.log(improvement[tail]), side[tail])
    if found is None:
        return None
    return {
        "measured": found.value,
        "low": found.low,
        "high": found.high,
        "predicted": settings.falloff / 2,
        "axis": "rank" if by_rank else "log rank",
        "tokens": int(tail.sum()),
        "begun": int(begun[tail].sum()),
    }
