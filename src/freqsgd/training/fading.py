"""Counts that fade: the engine's side of ``halflife``."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from freqsgd.training.rules import Rule

__all__ = ["Fading"]

_SPAN = 250.0  # halflives of a call, and between the origin and a call: 2^500 is no overflow


class Fading:
    """Sample t adds 2^((t - origin) / halflife) to the counts of its tokens and to their mass.

    So a count over the mass is a mean over samples in which one a halflife ago weighs half.
    The origin moves on, and counts and mass are scaled down, before numbers grow too large.

    Args:
        halflife: in samples
        counts: float64, one for each row
        about: mass and origin, float64
        batch_size: samples of a step

    Attributes:
        steps: that a call may take at most
    """

    def __init__(self, halflife: float, counts: Tensor, about: Tensor, batch_size: int) -> None:
        if batch_size / halflife > _SPAN:
            raise ValueError(
                f"halflife {halflife:g} is too short for steps of {batch_size} samples: a step may "
                f"span at most {_SPAN:g} halflives"
            )
        self.halflife, self.batch_size = halflife, batch_size
        self.steps = int(_SPAN * halflife / batch_size)
        self._counts, self._about = counts, about
        self._gains = np.exp2(np.arange(batch_size) / halflife)

    @classmethod
    def of(cls, rule: Rule, state: dict[str, Tensor], batch_size: int) -> Fading | None:
        """For a rule; None if its counts do not fade."""
        if rule.halflife is None:
            return None
        return cls(rule.halflife, state["counts"], state["fading"], batch_size)

    def describe(self, job: Any, samples: int, count: int) -> None:
        """Tell the kernel what ``count`` samples count that come after ``samples`` others."""
        mass, origin = self._about.tolist()
        if (samples - origin) / self.halflife > _SPAN:
            factor = 2.0 ** ((origin - samples) / self.halflife)
            self._counts.mul_(factor)
            mass, origin = mass * factor, float(samples)
        sizes = np.diff(np.append(np.arange(0, count, self.batch_size), count))
        starts = samples - origin + self.batch_size * np.arange(len(sizes))
        self._factors = np.exp2(starts / self.halflife)
        added = self._factors * np.cumsum(self._gains)[sizes - 1]
        self._masses = mass + np.cumsum(added)
        self._about[0], self._about[1] = self._masses[-1], origin
        job["gains"], job["factors"] = self._gains.ctypes.data, self._factors.ctypes.data
        job["masses"] = self._masses.ctypes.data
