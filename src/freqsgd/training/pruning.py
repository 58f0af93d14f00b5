"""When a trial is not worth going on with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["FIRST", "hopeless"]

FIRST = 8  # trials that end by themselves before any is stopped
PERCENTILE = 25
FEWEST_EPOCHS = 2


def hopeless(curve: Sequence[float], fall: int | None, others: Sequence[Sequence[float]]) -> bool:
    """Whether a trial should stop.

    It should if its best validation AUC is among the lowest quarter of what trials that came to
    their end had reached after as many epochs; one that ended sooner counts with its best.

    A learning rate that falls to 0 brings most of its gain late: until then the run looks like one
    whose rate is too high. So it is not judged in the first half of the fall.

    Args:
        curve: its best validation AUC after each epoch so far
        fall: epochs over which its learning rate falls; None if it is constant
        others: the curves of trials that came to their end
    """
    epoch = len(curve)
    if len(others) < FIRST or epoch < max(FEWEST_EPOCHS, (fall or 0) / 2):
        return False
    reached = [other[min(epoch, len(other)) - 1] for other in others]
    return bool(curve[-1] < np.percentile(reached, PERCENTILE))
