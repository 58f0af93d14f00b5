"""How many threads a kernel of short phases should have, on a machine that may be busy.

Threads that wait for each other many times a second lose much more than half when another process
takes a core away: whoever is stopped stops the rest. Where results do not depend on the number of
threads, the number can follow the machine.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Team"]

_SOONEST, _LATEST = 16, 1024  # calls until the other number is tried again


class Team:
    """As many threads as asked for, or one: whichever was faster of late.

    Attributes:
        most: threads that are asked for
    """

    def __init__(self, most: int) -> None:
        if most < 1:
            raise ValueError(f"threads must be at least 1, got {most}")
        self.most = most
        self._speeds: dict[int, float] = {}
        self._calls, self._interval = 0, _SOONEST

    @contextmanager
    def call(self, work: int) -> Iterator[int]:
        """Gives the number of threads for a call that does so much work, and times it."""
        threads = self._next()
        start = time.perf_counter()
        yield threads
        self._speeds[threads] = work / max(time.perf_counter() - start, 1e-9)

    def _next(self) -> int:
        one, most = 1, self.most
        if most not in self._speeds:
            return most
        if one not in self._speeds:
            return one
        slow, fast = sorted((one, most), key=self._speeds.__getitem__)
        self._calls += 1
        if self._calls < self._interval:
            return fast
        self._calls = 0
        self._interval = min(2 * self._interval, _LATEST)
        return slow
