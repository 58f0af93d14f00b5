"""The memory that training will take, computed before anything is allocated."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Any

from freqsgd.errors import DataError
from freqsgd.optimizers import WIDE, Rule
from freqsgd.recommender.settings import Settings
from freqsgd.runs.machine import available_memory, byte_size
from freqsgd.tables.dataset import Stream
from freqsgd.tables.fields import Field

_FLOAT = 4
_COLUMN = 8  # bytes of a number per column
_CLOCK = 16  # of counts that fade: where they are on their scale
_NETWORK_FLOATS = {"Adam": 2, "AdamW": 2, "Adagrad": 1}  # per weight, beside a number of steps
_RESERVE = 500_000_000  # for everything else: libraries, compiled kernels, the system


@dataclass(frozen=True)
class MemoryPlan:
    """The bytes that training a model takes.

    Args:
        rows: number of rows of all tables
        dim: size of the vectors
        fields, columns: number of them in a sample
        rule: the optimizer
        batch_size: samples per step
        hidden: layers of the network; None for a model without one
        counted: largest count that a token could reach
        kept: number of copies of the weights
        reading: bytes of samples that are being read
    """

    rows: int
    dim: int
    fields: int
    columns: int
    rule: Rule
    batch_size: int
    hidden: tuple[int, ...] | None = None
    counted: int = 0
    kept: int = 0
    reading: int = 0

    @property
    def weights(self) -> int:
        """Bytes of the model's parameters."""
        return _FLOAT * (self.rows * (self.dim + 1) + 1 + sum(self._network))

    @property
    def state(self) -> int:
        """Bytes of the optimizer's state."""
        table = table_state(self.rule, self.rows, self.dim, self.counted, parts=self.fields)
        clock = 0 if self.rule.halflife is None else _CLOCK
        bias = 2 * _FLOAT if self.rule.facts.adaptive else 0
        floats = _NETWORK_FLOATS.get(self.rule.facts.network)
        sizes = [] if floats is None else [floats * size + 1 for size in self._network]
        return table + clock + bias + _FLOAT * sum(sizes)

    @property
    def work(self) -> int:
        """Estimate for steps: marks of rows that are not counted, a batch, its sums, reading."""
        marks = 0 if self.rule.counts else 4 * self.rows
        of_sample = 16 * self.columns + 4 * self.dim + 24
        if self.hidden is not None:
            of_sample += 4 * 4 * self.fields * self.dim + 16 * sum(self.hidden)
        return marks + self.batch_size * of_sample + self.reading

    @property
    def total(self) -> int:
        """Bytes of weights, their copies, state and work."""
        return self.weights * (1 + self.kept) + self.state + self.work

    @property
    def _network(self) -> list[int]:
        """Numbers of each of the network's parameters."""
        if self.hidden is None:
            return []
        layers = [self.fields * self.dim, *self.hidden]
        sizes = [(a * b, b, b, b) for a, b in pairwise(layers)]  # linear, then batch norm
        return [*chain.from_iterable(sizes), layers[-1], 1]

    def __str__(self) -> str:
        """Return the arithmetic in words."""
        deep = "" if self.hidden is None else " and the network"
        kept = f" + {byte_size(self.kept * self.weights)} of the best so far" if self.kept else ""
        return (
            f"{self.rows:,} rows x {self.dim + 1} weights x {_FLOAT} bytes{deep} = "
            f"{byte_size(self.weights)} of weights + {byte_size(self.state)} of optimizer state "
            f"({self.rule.keeps}){kept} + {byte_size(self.work)} of workspace = "
            f"{byte_size(self.total)}"
        )


def table_state(
    rule: Rule, rows: int, dim: int, counted: int, *, parts: int, linear: bool = True
) -> int:
    """Return the bytes that an optimizer keeps for a table.

    Args:
        rule: the optimizer
        rows, dim: shape of the table
        counted: largest count that a token could reach: :meth:`Rule.most_counted`
        parts: fields, or tables of words: each has its own numbers per column
        linear: a row holds a linear weight besides the vector, as in a factorization machine
    """
    floats = rule.facts.state_of(linear=linear).floats(rows, dim + linear)
    counter = counter_bytes(counted) if rule.halflife is None else 8
    columns = _COLUMN * rule.facts.state.column * parts * (dim + 2)  # with two sums of each part
    return _FLOAT * floats + (counter * rows if rule.counts else 0) + columns


def counter_bytes(counted: int) -> int:
    """Return the bytes of a counter that could reach a count."""
    return 4 if counted < WIDE else 8


def memory_plan(
    fields: Sequence[Field],
    rule: Rule,
    settings: Settings,
    *,
    examples: int | None = None,
    kept: int = 0,
    reading: int = 0,
) -> MemoryPlan:
    """Plan the training of a new model on ``examples``, if their number is known."""
    widths = [field.width for field in fields]
    return MemoryPlan(
        rows=sum(field.size for field in fields),
        dim=settings.vector_dim,
        fields=len(fields),
        columns=sum(widths),
        rule=rule,
        batch_size=settings.batch_size,
        hidden=settings.layers,
        counted=rule.most_counted(examples or 0, max(widths), settings.batch_size),
        kept=kept,
        reading=reading,
    )


def check_memory(plan: MemoryPlan, available: int | None = None) -> None:
    """Refuse a plan that exceeds what is available, by default on this machine."""
    if available is None:
        found = available_memory()
        if found is None:
            return
        available = max(found - _RESERVE, 0)
    if plan.total <= available:
        return
    raise DataError(
        f"{plan.rule.optimizer} does not fit: {plan}; {byte_size(available)} are available."
        f"{_advice(plan, available)}"
    )


def _advice(plan: MemoryPlan, available: int) -> str:
    other = replace(plan, rule=Rule("cfsgd", plan.rule.lr))
    if other.total < 0.95 * plan.total and other.total <= available:
        return f" cfsgd would take {byte_size(other.total)} ({other.rule.keeps})"
    if plan.work > available / 2 and (batch := _most(plan, "batch_size", available)):
        return f" Use smaller batches (--batch-size {batch} at most)"
    rows, dim = _most(plan, "rows", available), _most(plan, "dim", available)
    found = [f"fewer rows (about {rows:,})"] if rows >= plan.fields else []
    found += [f"a smaller dimension (--dim {dim} at most)"] if dim else []
    return f" Use {', '.join(found)}{' or ' if found else ''}a larger machine"


def _most(plan: MemoryPlan, name: str, available: int) -> int:
    """Return the largest value of one of the plan's numbers that fits; 0 if none does."""

    def exceeds(value: int) -> bool:
        change: dict[str, Any] = {name: value}
        return replace(plan, **change).total > available

    return bisect_left(range(1, getattr(plan, name)), True, key=exceeds)


# Blocks are read, encoded and learned from at the same time. These were measured.
_CELL = 80  # bytes a cell of a Parquet block, in the middle: integers took 25 to 60, text 55 to 120
_GENERATED_CELL = 32  # of a block of generated clicks, of which 5 are ids that wait
_TEXT = 12  # times the text of a block


def stream_plan(stream: Stream, rule: Rule, settings: Settings) -> MemoryPlan:
    """Plan one pass over a stream."""
    rows = stream.summary()["rows"]
    reading = reading_bytes(stream, rows)
    return memory_plan(stream.fields, rule, settings, examples=rows, reading=reading)


def reading_bytes(stream: Stream, rows: int | None) -> int:
    """Estimate the bytes of the blocks that are being read.

    Args:
        stream: the examples
        rows: number of rows of all days; None if unknown, as for text
    """
    from freqsgd.tables.generated.click_log import BLOCK_ROWS
    from freqsgd.tables.generated.clicks import ClickStream
    from freqsgd.tables.readers.reader import block_rows
    from freqsgd.tables.readers.text import BLOCK_BYTES

    if rows is None:
        return _TEXT * BLOCK_BYTES
    columns = sum(field.width for field in stream.fields)
    if isinstance(stream, ClickStream):
        return _GENERATED_CELL * columns * min(rows, BLOCK_ROWS)
    with_label = len(stream.fields) + 1
    return _CELL * columns * min(rows, block_rows(with_label))
