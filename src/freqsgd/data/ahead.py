"""Make the next item while the current one is used."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["ahead"]

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
