"""The rate law for the kernels of a sharded model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from freqsgd.data.dataset import DataError
from freqsgd.rates import RateLaw

if TYPE_CHECKING:
    from torchrec.distributed import DistributedModelParallel

__all__ = ["MAX_STEPS", "TableRates"]

MAX_STEPS = 2**24  # the kernel counts in float32, which cannot add 1 to this


class TableRates:
    """Gives the kernels of a sharded model the rate of each batch.

    The kernel divides its rate by sqrt(n_k), n_k batches having held row k. Batch t therefore gets

        lr / sqrt(1 / t) = lr * sqrt(t),    so that    eta_k = lr / sqrt(p_k),  p_k = n_k / t

    as :class:`~freqsgd.CFSGD` with ``count="batch"``.

    Args:
        model: made by :func:`~freqsgd.distributed.shard`
        lr: rate of a row that every batch holds

    Attributes:
        steps: batches so far

    Note:
        On a CPU the kernel reads its rate in the forward pass: call :meth:`step` before that, once
        for each batch that is learned from, on all ranks.
    """

    def __init__(self, model: DistributedModelParallel, lr: float) -> None:
        self.steps = 0
        self._law = RateLaw(lr)
        self._optimizer = model.fused_optimizer

    def step(self) -> None:
        """Begin a batch: call it before the forward pass."""
        if self.steps >= MAX_STEPS:
            raise DataError(
                f"FBGEMM's counters end at {MAX_STEPS:,} batches: take larger batches, or halve "
                "counts and steps by set_counts and load_state_dict"
            )
        self.steps += 1
        for group in self._optimizer.param_groups:
            group["lr"] = self._law.rate(1 / self.steps)
        self._optimizer.zero_grad()  # hands it to the kernels

    def counts(self) -> dict[str, tuple[int, Tensor]]:
        """How many batches held each row of this rank: its first row and int64 counts.

        By the names of the tables' weights in ``model.state_dict()``; those without rows here are
        left out.
        """
        return {
            name: (first, counter.long()) for name, (first, counter) in self._counters().items()
        }

    @torch.no_grad()
    def set_counts(self, counts: dict[str, Tensor]) -> None:
        """Start from known counts of this rank's rows, by name; ``steps`` are loaded apart."""
        for name, (_, counter) in self._counters().items():
            if counts[name].shape != counter.shape:
                raise DataError(
                    f"{name} has {len(counter)} rows on this rank, but {len(counts[name])} counts"
                )
            counter.copy_(counts[name])

    def state_dict(self) -> dict[str, Any]:
        """Steps and rate; counts are the kernels'."""
        return {"steps": self.steps, "lr": self._law.lr}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from saved steps, at the saved rate."""
        self.steps, self._law = int(state["steps"]), RateLaw(float(state["lr"]))

    def _counters(self) -> dict[str, tuple[int, Tensor]]:
        """The kernels' own memory."""
        return {
            name: (part.metadata.shard_offsets[0], part.tensor)
            for name, state in self._optimizer.state_dict()["state"].items()
            for key, counter in state.items()
            if key.endswith(".row_counter")
            for part in counter.local_shards()
        }
