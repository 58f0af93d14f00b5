"""Jobs that run ahead in several threads, their results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

__all__ = ["in_order"]

T = TypeVar("T")

_THREADS = 2
_AHEAD = 4  # jobs that are done or being done while a result is used


def in_order(jobs: Iterator[Callable[[], T]]) -> Iterator[T]:
    """What the jobs return, in order; closing the iterator stops them.

    Example:
        >>> list(in_order(iter([lambda: "a", lambda: "b"])))
        ['a', 'b']
    """
    pool = ThreadPoolExecutor(_THREADS)
    try:
        coming: deque[Future[T]] = deque(map(pool.submit, islice(jobs, _AHEAD)))
        while coming:
            result = coming.popleft().result()
            coming.extend(map(pool.submit, islice(jobs, 1)))
            yield result
    finally:
        pool.shutdown(cancel_futures=True)
