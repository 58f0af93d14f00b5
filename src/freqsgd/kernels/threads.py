"""A small thread pool for kernels that release the GIL.

Numba's own threading layers either abort after a fork (OpenMP) or when two Python threads call
them at once (workqueue). Plain threads that each call a serial kernel do neither, and cost some
20 microseconds a call.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

R = TypeVar("R")
_pool: ThreadPoolExecutor | None = None


def run(task: Callable[[int, int], R], workers: int) -> list[R]:
    """Call ``task(rank, workers)`` for every rank at once and return the results in order."""
    if workers == 1:
        return [task(0, 1)]
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="freqsgd")
    others = [_pool.submit(task, rank, workers) for rank in range(1, workers)]
    return [task(0, workers), *(future.result() for future in others)]


def _forget() -> None:
    global _pool
    _pool = None


os.register_at_fork(after_in_child=_forget)  # the child has none of the parent's threads
