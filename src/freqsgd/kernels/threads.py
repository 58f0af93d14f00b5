"""Run a kernel on several threads, and choose how many on a busy machine."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

__all__ = ["Team"]

_forked = False


def _after_fork() -> None:
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _find_team() -> Any:
    """OpenMP's entry point in the library that torch itself uses; None where there is none."""
    spec = find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        return None
    library = os.path.join(spec.submodule_search_locations[0], "lib", "libtorch_cpu.so")
    try:
        function = ctypes.CDLL(library).GOMP_parallel
    except (OSError, AttributeError):
        return None
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
    function.restype = None
    return function


_team = _find_team()


def run(kernel: Any, job: Any, workers: int) -> None:
    """Run ``kernel`` on ``job``, an array of one record, with up to ``workers`` threads."""
    address = job.ctypes.data
    if workers == 1 or _forked:
        kernel.ctypes(address)
    elif _team is not None:
        _team(kernel.address, address, workers, 0)
    else:
        _run_on_new_threads(kernel, address, workers)


def _run_on_new_threads(kernel: Any, address: int, workers: int) -> None:
    others = [threading.Thread(target=kernel.ctypes, args=(address,)) for _ in range(workers - 1)]
    for thread in others:
        thread.start()
    kernel.ctypes(address)
    for thread in others:
        thread.join()


# How many threads a kernel of short phases should have, on a machine that may be busy.
#
# Threads that wait for each other many times a second lose much more than half when another process
# takes a core away: whoever is stopped stops the rest. Where results do not depend on the number of
# threads, the number can follow the machine.

_SOONEST, _LATEST = 16, 1024  # calls until the other number is tried again


class Team:
    """As many threads as asked for, or one: whichever was faster of late.

    Attributes:
        most: threads that are asked for
        is_trial: whether the next call tries a number that may be the slow one: keep it short
    """

    def __init__(self, most: int) -> None:
        if most < 1:
            raise ValueError(f"threads must be at least 1, got {most}")
        self.most = most
        self._speeds: dict[int, float] = {}
        self._calls, self._interval = 0, _SOONEST
        self._threads, self.is_trial = most, most > 1

    @contextmanager
    def call(self, work: int) -> Iterator[int]:
        """Gives the number of threads for a call that does so much work, and times it."""
        threads = self._threads
        start = time.perf_counter()
        yield threads
        self._speeds[threads] = work / max(time.perf_counter() - start, 1e-9)
        self._choose()

    def _choose(self) -> None:
        """Choose the number of the next call."""
        if self.most == 1:
            return
        if 1 not in self._speeds:
            self._threads = 1
            return
        slow, fast = sorted((1, self.most), key=self._speeds.__getitem__)
        self._calls += 1
        self.is_trial = self._calls == self._interval
        self._threads = slow if self.is_trial else fast
        if self.is_trial:
            self._calls = 0
            self._interval = min(2 * self._interval, _LATEST)
