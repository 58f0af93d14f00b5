"""Bytes that tables and optimizers take, without building them."""

from __future__ import annotations

__all__ = ["memory_of_fm", "memory_of_words"]

_FLOAT = 4
_SMALL_COUNTS = 2**31 - 1  # beyond so many indices counters have 8 bytes


def memory_of_fm(rows: int, dim: int, indices: int) -> dict[str, int]:
    """Of a factorization machine, whose rows hold a vector and a linear weight.

    Row-wise Adagrad keeps a number for each of the two, CF-SGD a counter for both.
    """
    return _memory(rows * (dim + 1), 2 * rows, rows, indices)


def memory_of_words(words: int, dim: int, indices: int) -> dict[str, int]:
    """Of word vectors: two tables, of a vector each; row-wise Adagrad keeps a number a row."""
    return _memory(2 * words * dim, 2 * words, 2 * words, indices)


def _memory(weights: int, accumulators: int, counters: int, indices: int) -> dict[str, int]:
    return {
        "weights": _FLOAT * weights,
        "adam": 2 * _FLOAT * weights,
        "adagrad": _FLOAT * weights,
        "rowwise-adagrad": _FLOAT * accumulators,
        "cfsgd": (4 if indices <= _SMALL_COUNTS else 8) * counters,
    }
