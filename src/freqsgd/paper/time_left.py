"""How long the rest will take, from what runs usually take and how this machine compares."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["Clock"]


class Clock:
    """Expectations of runs that are done one after the other.

    Args:
        usual: seconds of each; what is there already takes none, which is known when it ends
    """

    def __init__(self, usual: Sequence[float]) -> None:
        self._left = list(usual)
        self._total = sum(usual)
        self._expected = self._taken = 0.0

    def ended(self, seconds: float | None) -> None:
        """The current run has ended after so many; None: it was there already."""
        usual = self._left.pop(0)
        if seconds is not None:
            self._expected += usual
            self._taken += seconds

    def left(self, seconds: float) -> float:
        """Seconds to the end, so many after the current run began."""
        if not self._left:
            return 0.0
        pace = self._taken / self._expected if self._expected else 1.0
        return max(0.0, pace * self._left[0] - seconds) + pace * sum(self._left[1:])

    def share(self, seconds: float) -> float:
        """The part of the expected time that is over."""
        if not self._left:
            return 1.0
        here = min(seconds, self._left[0])
        return (self._total - sum(self._left) + here) / self._total
