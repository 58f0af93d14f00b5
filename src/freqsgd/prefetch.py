"""Make the next items in other threads while the current one is used."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def ahead(items: Iterator[T]) -> Iterator[T]:
    """The items, each made in another thread while the one before it is used.

    Closed early, it closes the generator of the items as soon as the coming one is made.
    """
    try:
        with ThreadPoolExecutor(1) as pool:
            coming = pool.submit(next, items, None)
            while (item := coming.result()) is not None:
                coming = pool.submit(next, items, None)
                yield item
    finally:
        if isinstance(items, Generator):
            items.close()


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
