"""How much memory tables and optimizers take, and how many hosts hold them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heapreplace

from freqsgd.data.dataset import DataError
from freqsgd.distributed.layout import Layout
from freqsgd.training.memory_plan import MemoryPlan, table_state
from freqsgd.training.rules import OPTIMIZERS, Rule

__all__ = [
    "COUNTER_SGD",
    "FLOAT",
    "KEPT",
    "RESERVE",
    "Workload",
    "hosts_needed",
    "state_of_row",
    "tables_fit",
    "usable_memory",
]

FLOAT = 4
COUNTER_SGD = "counter-sgd"
KEPT = {  # what optimizers keep beside the rows of TorchRec's tables
    "adam": OPTIMIZERS["adam"],
    "adagrad": OPTIMIZERS["adagrad"],
    "rowwise-adagrad": "one float per row",  # FBGEMM's: linear weights are of the row
    COUNTER_SGD: "three floats per row",  # FBGEMM's: of Adagrad, of the last batch, the counter
    "cfsgd": OPTIMIZERS["cfsgd"],
    "sgd": OPTIMIZERS["sgd"],
}
RESERVE = 0.1  # part of a host's memory for everything else: system, libraries, reading
_CFSGD = Rule("cfsgd")


@dataclass(frozen=True)
class Workload:
    """What is to be trained.

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
        """Of all tables."""
        return sum(self.tables)

    @property
    def looked_up(self) -> int:
        """Rows that a batch looks up."""
        return self.batch_size * (self.columns if self.tokens is None else self.tokens)

    @property
    def row_width(self) -> int:
        """Numbers of a row in TorchRec: vector, linear weight, and zeros up to a multiple of 4."""
        return Layout((), (), self.dim).row

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

    @property
    def workspace(self) -> int:
        """Bytes that a host needs for a step under row-wise sharding, about.

        It has a sum, which may be 0, for every column of the whole batch, gloo's copy of these and
        then their gradients; and what its own examples take.
        """
        return 3 * self.outputs

    def one_process(self) -> MemoryPlan:
        """What training it in one process would take, with CF-SGD."""
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
    """Bytes that an optimizer keeps for a row of TorchRec's tables."""
    of_fbgemm = {"rowwise-adagrad": FLOAT, COUNTER_SGD: 3 * FLOAT}
    if optimizer in of_fbgemm:
        return of_fbgemm[optimizer]
    rule = Rule(optimizer)
    return table_state(rule, 1, work.row_width - 1, _most_counted(rule, work))


def usable_memory(host_memory: int, work: Workload) -> int:
    """What a host has for its part of the tables and of the optimizer's state."""
    usable = int(host_memory * (1 - RESERVE)) - work.workspace
    if usable <= 0:
        raise DataError(
            f"a host of {host_memory / 1e9:,.1f} GB is too small: under row-wise sharding every "
            f"host has sums and gradients of the whole batch, {work.workspace / 1e9:,.1f} GB; "
            "take smaller batches or more memory"
        )
    return usable


def hosts_needed(tables: Sequence[int], bytes_of_row: int, usable: int) -> int:
    """The fewest hosts that hold the tables; the first has a row more where rows do not divide."""

    def fit(hosts: int) -> bool:
        return sum(-(-rows // hosts) for rows in tables) * bytes_of_row <= usable

    most = max(tables)
    if not fit(most):
        raise DataError(
            f"{len(tables):,} features do not fit any number of hosts: a row of each takes more "
            f"than the {usable / 1e9:,.1f} GB that a host has for them"
        )
    return 1 + bisect_left(range(1, most), True, key=fit)


def tables_fit(tables: Sequence[int], bytes_of_row: int, usable: int, hosts: int) -> bool:
    """Whether hosts hold whole tables, given largest first to the one that has least."""
    if hosts > len(tables):
        return False  # some would be idle
    held = [0] * hosts
    for rows in sorted(tables, reverse=True):
        heapreplace(held, held[0] + rows)
    return max(held) * bytes_of_row <= usable


def _most_counted(rule: Rule, work: Workload) -> int:
    """The most that a token could be counted."""
    return rule.most_counted(work.examples or 0, work.widest, work.batch_size)
