"""The rate law for the kernels of a sharded model."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from freqsgd.errors import DataError
from freqsgd.torchrec.group import agree
from freqsgd.torchrec.limits import MAX_STEPS, law_of
from freqsgd.torchrec.tables import rows_by_weight

if TYPE_CHECKING:
    from torchrec.distributed import DistributedModelParallel

    from freqsgd.torchrec.moments import Moments


class TableRates:
    """Gives the kernels of a sharded model the rate of each batch.

    The kernel divides its rate by sqrt(n_k), n_k batches having held row k. Batch t therefore gets

        lr / sqrt(1 / t) = lr * sqrt(t),    so that    eta_k = lr / sqrt(p_k),  p_k = n_k / t

    as :class:`~freqsgd.CFSGD` with ``count="batch"``. With ``scale="adam"`` it gets

        lr * sqrt(t) / sqrt(s),    so that    eta_k = lr / sqrt(p_k s),

    where s is the second moment of the table's gradients (``beta2`` 0.999, bias-corrected): of the
    squares over the batch's occurrences, as :class:`~freqsgd.CFAdam` adds them up, their mean over
    columns, divided by the number of different rows. So p_k s stands for Adam's second moment of
    row k, and ``lr`` is Adam's.

    Args:
        model: made by :func:`~freqsgd.torchrec.sharding.shard`
        lr: rate of a row that every batch holds: that which ``shard`` was given
        scale: "adam" to divide the rates of a table by the root of its second moment; None: as
            they are. It hooks the model's forward pass, so a model has one such TableRates

    Attributes:
        steps: batches so far

    Note:
        On a CPU the kernel reads its rate in the forward pass: call :meth:`step` before that, once
        for each batch that is learned from, on all ranks. The kernel counts in every backward
        pass, once for each time that the collection was called: micro-batches are batches.
    """

    def __init__(
        self, model: DistributedModelParallel, lr: float | None = None, *, scale: str | None = None
    ) -> None:
        given = getattr(model, "table_lr", None)
        if given is None:
            raise DataError("TableRates needs a model that freqsgd.torchrec.sharding.shard made")
        if lr is not None and lr != given:
            raise DataError(f"lr is {lr!r}, but shard was given {given!r}: leave it out here")
        agree({"scale": scale})
        if scale not in (None, "adam"):
            raise DataError(f'scale must be "adam" or None, got {scale!r}')
        if getattr(model, "table_scale", None) is not None:
            raise DataError("the model has a TableRates with scale: take that one")
        self.steps = 0
        self._law = law_of(given)
        self._model = model
        self._optimizer = model.fused_optimizer
        self._moments: list[Moments] = []
        if scale is not None:
            from freqsgd.torchrec.moments import moments_of

            self._moments = moments_of(model)
            model.table_scale = scale

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
        """Return how many batches held each row of this rank: its first row and int64 counts.

        By the names of the tables' weights in ``model.state_dict()``; those without rows here are
        left out.
        """
        return {
            name: (rows.first, rows.counts.long())
            for name, rows in rows_by_weight(self._model).items()
        }

    @torch.no_grad()
    def set_counts(self, counts: dict[str, Tensor]) -> None:
        """Start from known counts of this rank's rows, by name; ``steps`` are loaded apart."""
        held = rows_by_weight(self._model)
        for name, rows in held.items():
            if name not in counts:
                raise DataError(f"{name} has rows on this rank, but no counts")
            given = counts[name]
            if given.shape != rows.counts.shape:
                raise DataError(
                    f"{name} has {len(rows.counts)} rows on this rank, but {given.numel()} counts"
                )
            if not ((given >= 0) & (given <= MAX_STEPS) & (given == given.long())).all():
                raise DataError(f"counts of {name} must be whole numbers from 0 to {MAX_STEPS:,}")
        for name, rows in held.items():
            rows.counts.copy_(counts[name])

    def state_dict(self) -> dict[str, Any]:
        """Return steps, rate and second moments, if any; counts are the kernels'."""
        state: dict[str, Any] = {"steps": self.steps, "lr": self._law.lr}
        if self._moments:
            state["moments"] = {k: v for each in self._moments for k, v in each.state().items()}
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from saved steps, at the saved rate and with the saved second moments."""
        if missing := {"steps", "lr"} - state.keys():
            raise DataError(f"the state of TableRates lacks {' and '.join(sorted(missing))}")
        steps, law, saved = state["steps"], law_of(state["lr"]), state.get("moments")
        if not isinstance(steps, int) or not 0 <= steps <= MAX_STEPS:
            raise DataError(f"steps must be a whole number from 0 to {MAX_STEPS:,}, got {steps!r}")
        names = {name for each in self._moments for name in each.names}
        if bool(names) != (saved is not None):
            raise DataError("the state was saved with another scale: give TableRates the same one")
        if saved is not None and not _are_moments(saved, names):
            raise DataError("the second moments in the state are damaged, or of another model")
        for moments in self._moments:
            moments.load(saved)
        self.steps, self._law = steps, law


def _are_moments(saved: Any, names: set[str]) -> bool:
    """Return whether these are a number and a whole number for each table, neither below 0."""
    return (
        isinstance(saved, dict)
        and saved.keys() == names
        and all(
            isinstance(pair, list)
            and [type(value) for value in pair] == [float, float]
            and all(0 <= value < math.inf for value in pair)
            and pair[1].is_integer()
            for pair in saved.values()
        )
    )
