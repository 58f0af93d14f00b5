"""The rows of tables that a rank holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

__all__ = ["Layout", "Rows", "held_rows", "rows_by_weight"]


class Rows(NamedTuple):
    """Consecutive rows of a table, and how often each was counted."""

    table: str
    first: int
    weight: Tensor
    counts: Tensor

    @property
    def last(self) -> int:
        """The row after them."""
        return self.first + len(self.weight)


def held_rows(model: Any) -> list[Rows]:
    """What a rank holds of the tables of a sharded model: the kernel's own memory."""
    return list(rows_by_weight(model).values())


def rows_by_weight(model: Any) -> dict[str, Rows]:
    """The same by the names of the weights in the state of the model."""
    from torch.distributed._shard.sharded_tensor.api import ShardedTensor

    state = model.fused_optimizer.state_dict()["state"]
    held = {}
    for name, weight in model.state_dict().items():
        if isinstance(weight, ShardedTensor) and name in state:
            table = name.split(".")[-2]
            counters = state[name][f"{table}.row_counter"].local_shards()
            for shard, counter in zip(weight.local_shards(), counters, strict=True):
                first = shard.metadata.shard_offsets[0]
                held[name] = Rows(table, first, shard.tensor.detach(), counter.tensor)
    return held


@dataclass(frozen=True)
class Layout:
    """How the rows of an :class:`~freqsgd.nn.FM` lie in tables, one per field.

    Args:
        sizes, widths: of the fields, as of the model
        dim: of the vectors
    """

    sizes: tuple[int, ...]
    widths: tuple[int, ...]
    dim: int

    @property
    def row(self) -> int:
        """Numbers of a row: vector, linear weight, and zeros up to a multiple of 4."""
        return -(-(self.dim + 1) // 4) * 4

    @property
    def tables(self) -> list[str]:
        """Their names."""
        return [f"field{number}" for number in range(len(self.sizes))]

    @property
    def columns(self) -> list[str]:
        """Names of the columns of ids; a bag has several, which share its table."""
        return [f"{t}.{k}" for t, w in zip(self.tables, self.widths, strict=True) for k in range(w)]

    @property
    def starts(self) -> dict[str, int]:
        """The model's row where each table begins."""
        first = np.cumsum([0, *self.sizes[:-1]])
        return dict(zip(self.tables, map(int, first), strict=True))
