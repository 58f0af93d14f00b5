"""Memory of tables and optimizers, and the number of hosts that hold them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import heapreplace
from pathlib import Path

from freqsgd.errors import DataError
from freqsgd.optimizers import Rule, by_memory
from freqsgd.recommender.memory import MemoryPlan, counter_bytes
from freqsgd.recommender.models import MODELS
from freqsgd.tables.fields import Field
from freqsgd.torchrec.limits import FLOAT, row_width

ROW_WISE, TABLE_WISE = "row-wise", "table-wise"
ROWS_SENT = "row-wise, rows sent"  # is arithmetic alone: the command line has no such sharding
PLANNED = {each.name: each for each in reversed(by_memory()) if each.fbgemm is not None}
"""The optimizers whose tables TorchRec could hold."""
RESERVE = 0.1  # part of a host's memory for everything else: system, libraries, reading
_CFSGD = Rule("cfsgd")


@dataclass(frozen=True)
class Workload:
    """The tables and batches of a training run.

    Args:
        tables: rows of the table of each feature
        columns: of an example; a feature that is a bag of up to five tokens takes five
        dim: of the vectors
        batch_size: examples of a step, on all hosts together
        widest: columns of the widest feature
        tokens: that an example has on average, of all features; None: one in each column
        hidden: layers of DeepFM's network; None for FM
        examples: that will be learned, where that is known
    """

    tables: tuple[int, ...]
    columns: int
    dim: int
    batch_size: int
    widest: int = 1
    tokens: int | None = None
    hidden: tuple[int, ...] | None = None
    examples: int | None = None

    @cached_property
    def rows(self) -> int:
        """Rows of all tables."""
        return sum(self.tables)

    @cached_property
    def alike(self) -> Counter[int]:
        """Number of tables by their rows."""
        return Counter(self.tables)

    @property
    def looked_up(self) -> int:
        """Rows that a batch looks up."""
        return self.batch_size * (self.columns if self.tokens is None else self.tokens)

    @property
    def row_width(self) -> int:
        """Numbers of a row in TorchRec: vector, linear weight, and zeros up to a multiple of 4."""
        return row_width(self.dim)

    @property
    def row_bytes(self) -> int:
        """Bytes of a row in TorchRec."""
        return FLOAT * self.row_width

    @property
    def weights(self) -> int:
        """Bytes of all tables in TorchRec."""
        return self.rows * self.row_bytes

    @property
    def outputs(self) -> int:
        """Bytes that TorchRec gives for a batch: a row for each column, 0 where it is empty."""
        return self.batch_size * self.columns * self.row_bytes

    def workspace(self, how: str, hosts: int) -> int:
        """Return about how many bytes each host needs for a step under a way of sharding.

        Under row-wise sharding it has a sum, which may be 0, for every column of the whole batch,
        gloo's copy of these and then their gradients. Otherwise rows and gradients are those that
        it sends and those that it gets. The network's numbers are of its own examples.
        """
        exchanged = {
            ROW_WISE: 3 * self.outputs,
            ROWS_SENT: -(-4 * self.looked_up * self.row_bytes // hosts),
            TABLE_WISE: -(-4 * self.outputs // hosts),
        }
        of_network = self.one_process().work - replace(self, hidden=None).one_process().work
        return exchanged[how] + -(-of_network // hosts) + 2 * self.dense

    def one_process(self) -> MemoryPlan:
        """Return what training it in one process would take, with CF-SGD."""
        return MemoryPlan(
            rows=self.rows,
            dim=self.dim,
            fields=len(self.tables),
            columns=self.columns,
            rule=_CFSGD,
            batch_size=self.batch_size,
            hidden=self.hidden,
            counted=_most_counted(_CFSGD, self),
        )

    @property
    def dense(self) -> int:
        """Bytes of all weights that are in no table."""
        return self.one_process().weights - FLOAT * self.rows * (self.dim + 1)


def state_of_row(optimizer: str, work: Workload) -> int:
    """Return the bytes that an optimizer keeps for a row of TorchRec's tables."""
    facts = PLANNED[optimizer]
    counter = counter_bytes(_most_counted(_CFSGD, work)) if facts.counts else 0
    # in TorchRec the linear weight is one of the row's vector
    return FLOAT * facts.state_of(linear=False).floats(1, work.row_width) + counter


def usable_memory(host_memory: int) -> int:
    """Return what a host has for training."""
    return int(host_memory * (1 - RESERVE))


def held(how: str, work: Workload, bytes_of_row: int, hosts: int) -> int:
    """Return the bytes on the fullest host: its part of the tables, their state, the workspace."""
    rows = _most_rows_whole(work, hosts) if how == TABLE_WISE else _most_rows(work, hosts)
    return rows * bytes_of_row + work.workspace(how, hosts)


def hosts_needed(how: str, work: Workload, bytes_of_row: int, usable: int) -> int | None:
    """Return the fewest hosts that hold it, found by halving; None where no number of them does."""
    most = len(work.tables) if how == TABLE_WISE else max(*work.tables, work.batch_size)
    if held(how, work, bytes_of_row, most) > usable:
        return None
    least = 1
    while least < most:
        middle = (least + most) // 2
        fits = held(how, work, bytes_of_row, middle) <= usable
        least, most = (least, middle) if fits else (middle + 1, most)
    return least


def _most_rows(work: Workload, hosts: int) -> int:
    """Return those of the first host: it has a row more of each table whose rows do not divide."""
    return sum(number * -(-rows // hosts) for rows, number in work.alike.items())


def _most_rows_whole(work: Workload, hosts: int) -> int:
    """Return those of the fullest host: whole tables go largest first to the one with least."""
    if len(work.alike) == 1:
        return work.tables[0] * -(-len(work.tables) // hosts)
    full = [0] * hosts
    for rows in sorted(work.tables, reverse=True):
        heapreplace(full, full[0] + rows)
    return max(full)


def _most_counted(rule: Rule, work: Workload) -> int:
    """Return the most that a token could be counted."""
    return rule.most_counted(work.examples or 0, work.widest, work.batch_size)


def of_fields(
    fields: Sequence[Field],
    dim: int,
    batch_size: int,
    hidden: tuple[int, ...] | None = None,
    examples: int | None = None,
) -> Workload:
    """Return the workload of training on data with these fields."""
    widths = [field.width for field in fields]
    return Workload(
        tables=tuple(field.size for field in fields),
        columns=sum(widths),
        widest=max(widths),
        dim=dim,
        batch_size=batch_size,
        hidden=hidden,
        examples=examples,
    )


def of_model(folder: Path, batch_size: int | None = None, examples: int | None = None) -> Workload:
    """Return that of training a saved model again, in batches of its size unless one is given."""
    from freqsgd.runs import checkpoint
    from freqsgd.runs.checkpoint import MODEL

    description = checkpoint.describe(folder / MODEL)
    try:
        shape = description["shape"]
        fields = [
            Field(name, int(size), int(width))
            for name, size, width in zip(
                description["fields"], shape["sizes"], shape["widths"], strict=True
            )
        ]
        hidden = tuple(shape["hidden"]) if MODELS[description["model"]].network else None
        batch_size = batch_size or int(description["record"]["batch_size"])
        return of_fields(fields, int(shape["dim"]), batch_size, hidden, examples)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{folder} holds no FM or DeepFM that freqsgd train wrote") from error
