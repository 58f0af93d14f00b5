"""The rows of tables that a rank holds."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import Tensor

__all__ = ["Rows", "held_rows", "rows_by_weight"]


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
