"""The step in plain torch operations: any device, any dtype, and the specification.

The fused kernels must compute what this file says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from freqsgd.optim._counting import Batch
from freqsgd.optim._parameters import Describe, check_rows
from freqsgd.rates import AdamLaw, RateLaw


@dataclass(slots=True)
class Update:
    """What a step does to one parameter.

    ``grad`` holds one row per entry of ``ids``, or has the parameter's own shape where ``ids`` is
    None. Of a table, ``source`` holds one number per row: divided by ``n`` it is the frequency of
    the row, and where it is 0 ``unseen`` stands for it. All other parameters are ordinary weights,
    which every sample touches.

    A table with an :class:`~freqsgd.rates.AdamLaw` gets the ``squares`` of its gradient, summed per
    column, from ``check``; then the optimizer sets ``scale``, which multiplies each column.
    ``describe`` names the parameter in messages.
    """

    describe: Describe
    param: Tensor
    law: RateLaw
    maximize: bool
    grad: Tensor | None
    ids: Tensor | None
    table: bool = False
    counts: Tensor | None = None
    batch: Batch | None = None
    source: Tensor | None = None
    n: float = 1.0
    unseen: float = 1.0
    squares: Tensor | None = None
    scale: Tensor | None = None

    @property
    def sums_squares(self) -> bool:
        """Return whether ``check`` must sum the squares of the gradient."""
        return self.table and isinstance(self.law, AdamLaw) and self.grad is not None

    def frequencies(self, rows: Tensor | slice) -> Tensor:
        """Return the p of the rate law."""
        assert self.source is not None
        source = wide(self.source[rows])
        return torch.where(source == 0, self.unseen, source) / self.n


def wide(x: Tensor) -> Tensor:
    """Convert to the widest floats of a device, in which frequencies and rates are computed."""
    return x.float() if x.device.type == "mps" else x.double()


def check(updates: Sequence[Update]) -> None:
    """Refuse a step with a gradient that is not finite, before anything is written.

    Sum the squares of each gradient that needs them.
    """
    for update in updates:
        if update.sums_squares and update.grad is not None:
            update.squares = wide(update.grad).square().sum(0)
    pairs = [(u, u.grad) for u in updates if u.grad is not None and u.grad.numel()]
    if not pairs:
        return
    for update, _ in pairs:
        if update.ids is not None and update.ids.device.type == "cpu":
            check_rows(update.param, update.ids, update.describe)
    extremes = [torch.stack(torch.aminmax(grad)).isfinite().all() for _, grad in pairs]
    if not torch.stack([flag.to(extremes[0].device) for flag in extremes]).all():
        bad = next(u for (u, _), flag in zip(pairs, extremes, strict=True) if not flag)
        raise non_finite(bad.describe(bad.param))
    for update in updates:  # a square of float64 may overflow too
        if update.squares is not None and not update.squares.isfinite().all():
            raise non_finite(update.describe(update.param))


def non_finite(described: str) -> ValueError:
    """Return the error that a gradient with NaN or infinity gives."""
    return ValueError(
        f"the gradient of {described} holds NaN or infinity; nothing was updated. Lower lr, bound "
        "the steps or the gradients, or look for NaN in the inputs"
    )


def apply(update: Update) -> None:
    """Count the tokens of the step, then move the weights."""
    param, law, ids = update.param, update.law, update.ids
    gains = None
    if update.counts is not None and update.batch is not None:
        gains = count(update.counts, update.batch, distinct=law.weight_decay > 0)
    if update.grad is None:
        return

    grad = _working(-update.grad if update.maximize else update.grad)
    if not update.table:
        _ordinary_step(param, grad, law.rate(1.0), law.decay(1.0, 1.0))
        return
    p = update.frequencies(slice(None) if ids is None else ids)
    if isinstance(law, AdamLaw) and update.scale is not None and update.batch is not None:
        p = p.clamp(min=law.least(update.batch.added))
        grad = _scale_columns(grad, update.scale, law.bound(p, update.batch.added))
    delta = _scale_rows(grad, law.rate(p))
    if law.weight_decay > 0 and gains is not None and update.batch is not None:
        rows, gained = gains
        part = law.decay(update.frequencies(rows), wide(gained) / update.batch.added)
        decay = _scale_rows(_working(param[rows]), part)
        if ids is None:
            delta.index_add_(0, rows, decay)
        else:  # decay is one more occurrence of each distinct row
            ids, delta = torch.cat([ids, rows]), torch.cat([delta, decay])
    if ids is None:
        _subtract(param, delta)
    else:
        _subtract_rows(param, ids, delta)


def count(counts: Tensor, batch: Batch, *, distinct: bool) -> tuple[Tensor, Tensor] | None:
    """Add a batch to the counters; if asked, return its distinct rows and what each gained."""
    increments = batch.increments
    if increments is None:
        increments = torch.ones((), dtype=counts.dtype, device=counts.device).expand(
            batch.ids.shape
        )
    if not (distinct or batch.once):
        counts.index_add_(0, batch.ids, increments)
        return None
    rows, inverse = batch.ids.unique(return_inverse=True)
    gained = torch.zeros(rows.shape, dtype=counts.dtype, device=counts.device)
    if batch.once:
        gained.index_copy_(0, inverse, increments)  # all occurrences of a row bring the same
    else:
        gained.index_add_(0, inverse, increments)
    counts.index_add_(0, rows, gained)
    return rows, gained


def _ordinary_step(param: Tensor, grad: Tensor, rate: float, decay: float) -> None:
    if grad.dtype != param.dtype:
        _subtract(param, grad * rate + _working(param) * decay)
        return
    if decay:
        param.mul_(1 - decay)
    param.add_(grad, alpha=-rate)


def _working(x: Tensor) -> Tensor:
    """Compute on 16-bit weights in float32, so that they are rounded once."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def _scale_columns(grad: Tensor, scale: Tensor, bound: Tensor) -> Tensor:
    """Scale the columns, then shorten each row whose mean square is above its bound."""
    scaled = grad * scale.to(grad.dtype)
    square = wide(scaled).square().mean(1)
    return _scale_rows(scaled, torch.where(square > bound, (bound / square).sqrt(), 1.0))


def _scale_rows(x: Tensor, factor: Tensor) -> Tensor:
    return x * factor.to(x.dtype).unsqueeze(1)


def _subtract(param: Tensor, delta: Tensor) -> None:
    param.copy_(_working(param) - delta)


def _subtract_rows(param: Tensor, ids: Tensor, delta: Tensor) -> None:
    if delta.dtype == param.dtype:
        param.index_add_(0, ids, delta, alpha=-1)
        return
    rows, inverse = ids.unique(return_inverse=True)
    total = delta.new_zeros(rows.numel(), param.shape[1]).index_add_(0, inverse, delta)
    param[rows] = (_working(param[rows]) - total).to(param.dtype)
