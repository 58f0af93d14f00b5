"""Tables of a factorization machine: how its rows lie in them, and which of them a rank holds."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from torch import Tensor

FLOAT = 4  # bytes


def row_width(dim: int) -> int:
    """Return the numbers of a row: vector, linear weight, and zeros up to a multiple of 4."""
    return -(-(dim + 1) // 4) * 4


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
        """Numbers of a row."""
        return row_width(self.dim)

    @property
    def tables(self) -> list[str]:
        """Names of the tables."""
        return [f"field{number}" for number in range(len(self.sizes))]

    @property
    def columns(self) -> list[str]:
        """Names of the columns of ids; a bag has several, which share its table."""
        return [f"{t}.{k}" for t, w in zip(self.tables, self.widths, strict=True) for k in range(w)]

    @property
    def starts(self) -> dict[str, int]:
        """The model's row where each table begins."""
        return dict(zip(self.tables, accumulate(self.sizes, initial=0), strict=False))


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


def rows_by_weight(model: Any) -> dict[str, Rows]:
    """Return what a rank holds of a sharded model's tables, by the names of their weights.

    These are the names in the state of the model; the tensors are the kernel's own memory.
    """
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
