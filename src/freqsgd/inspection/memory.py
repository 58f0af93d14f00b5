"""Bytes that tables and optimizers take, without building them."""

from __future__ import annotations

from freqsgd.training.text_settings import TextSettings

__all__ = ["memory_of_fm", "memory_of_words"]

_FLOAT = 4
_WIDE = 2**31  # counts that could come to so many have 8 bytes


def memory_of_fm(table_rows: int, dim: int, most_counted: int) -> dict[str, int]:
    """Of a factorization machine, whose rows hold a vector and a linear weight.

    Row-wise Adagrad keeps a number for each of the two, CF-SGD a counter for both.

    Args:
        table_rows: of all fields
        dim: numbers of a vector
        most_counted: the most that a token could be counted in an epoch, as the engine reckons it:
            samples, times the width of the widest field
    """
    return _memory(table_rows * (dim + 1), 2 * table_rows, table_rows, most_counted)


def memory_of_words(words: int, dim: int, occurrences: int) -> dict[str, int]:
    """Of word vectors: two tables, of a vector each; row-wise Adagrad keeps a number a row.

    How far counters could come is what the engine reckons for an epoch of its default settings.
    """
    most_counted = TextSettings().most_counted(occurrences)
    return _memory(2 * words * dim, 2 * words, 2 * words, most_counted)


def _memory(weights: int, accumulators: int, counters: int, most_counted: int) -> dict[str, int]:
    return {
        "weights": _FLOAT * weights,
        "adam": 2 * _FLOAT * weights,
        "adagrad": _FLOAT * weights,
        "rowwise-adagrad": _FLOAT * accumulators,
        "cfsgd": (4 if most_counted < _WIDE else 8) * counters,
    }
