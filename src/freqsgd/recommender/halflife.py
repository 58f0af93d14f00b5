"""Counts that fade: the engine's side of ``halflife``."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from freqsgd.errors import DataError
from freqsgd.optimizers import Rule

_SPAN = 250.0  # halflives of a step, and between the origin and a step: 2^500 is no overflow


class Halflife:
    """Sample t adds 2^((t - origin) / halflife) to the counts of its tokens and to their mass.

    So a count over the mass is a mean over samples in which one a halflife ago weighs half.
    The origin moves on, and counts and mass are scaled down, before numbers grow too large: always
    at the same step, however steps are grouped into calls, so that the bits are the same.

    Args:
        halflife: in samples
        counts: float64, one for each row
        about: mass and origin, float64
        batch_size: samples of a step
    """

    def __init__(self, halflife: float, counts: Tensor, about: Tensor, batch_size: int) -> None:
        if batch_size / halflife > _SPAN:
            raise DataError(
                f"halflife {halflife:g} is too short for steps of {batch_size} samples: a step may "
                f"span at most {_SPAN:g} halflives"
            )
        self.halflife, self.batch_size = halflife, batch_size
        self._reach = int(_SPAN * halflife)  # samples from the origin to a step, at most
        self._counts, self._about = counts, about
        self._gains = np.exp2(np.arange(batch_size) / halflife)
        self._sums = np.cumsum(self._gains)

    @classmethod
    def of(cls, rule: Rule, state: dict[str, Tensor], batch_size: int) -> Halflife | None:
        """Return the one for a rule; None if its counts do not fade."""
        if rule.halflife is None:
            return None
        return cls(rule.halflife, state["counts"], state["fading"], batch_size)

    def steps(self, samples: int) -> int:
        """Return the most steps of a call after so many samples: the origin moves at its start."""
        passed = samples - int(self._about[1])
        return (self._reach - (passed if passed <= self._reach else 0)) // self.batch_size + 1

    def describe(self, job: Any, samples: int, count: int) -> None:
        """Tell the kernel what ``count`` samples count that come after ``samples`` others."""
        mass, origin = self._about.tolist()
        if samples - origin > self._reach:
            factor = 2.0 ** ((origin - samples) / self.halflife)
            self._counts.mul_(factor)
            mass, origin = mass * factor, float(samples)
        sizes = np.diff(np.append(np.arange(0, count, self.batch_size), count))
        starts = samples - origin + self.batch_size * np.arange(len(sizes))
        self._factors = np.exp2(starts / self.halflife)
        added = self._factors * self._sums[sizes - 1]
        self._masses = np.cumsum([mass, *added])[1:]  # in the order of steps
        self._about[0], self._about[1] = self._masses[-1], origin
        job["gains"] = self._gains.ctypes.data
        job["gain_factors"] = self._factors.ctypes.data
        job["masses"] = self._masses.ctypes.data
