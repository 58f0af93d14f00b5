"""Bytes that tables and optimizers take, without building them."""

from __future__ import annotations

from freqsgd.training.memory_plan import counter_bytes, table_state
from freqsgd.training.rules import Rule
from freqsgd.training.text_settings import TextSettings

__all__ = ["memory_of_fm", "memory_of_words"]

_FLOAT = 4
_OPTIMIZERS = ("adam", "adagrad", "rowwise-adagrad", "cfsgd")


def memory_of_fm(table_rows: int, dim: int, most_counted: int) -> dict[str, int]:
    """Of a factorization machine, whose rows hold a vector and a linear weight.

    Args:
        table_rows: of all fields
        dim: numbers of a vector
        most_counted: the most that a token could be counted in an epoch, as the engine reckons it:
            samples, times the width of the widest field
    """
    states = {name: table_state(Rule(name), table_rows, dim, most_counted) for name in _OPTIMIZERS}
    return {"weights": _FLOAT * table_rows * (dim + 1), **states}


def memory_of_words(words: int, dim: int, occurrences: int) -> dict[str, int]:
    """Of word vectors: two tables, of a vector each; row-wise Adagrad keeps a number a row.

    How far counters could come is what the engine reckons for an epoch of its default settings.
    """
    most_counted = TextSettings().most_counted(occurrences)
    weights, rows = 2 * words * dim, 2 * words
    return {
        "weights": _FLOAT * weights,
        "adam": 2 * _FLOAT * weights,
        "adagrad": _FLOAT * weights,
        "rowwise-adagrad": _FLOAT * rows,
        "cfsgd": counter_bytes(most_counted) * rows,
    }
