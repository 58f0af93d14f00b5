"""Squares of the gradients of occurrences, for gradients that merge them.

CFAdam needs, per column, the sum over occurrences of the squared gradient. A dense gradient holds
one row per token, in which all its occurrences are added up. So a watch takes the squares from the
gradient of what a module has looked up, within ``backward()``.

Afterwards the gradient may be scaled (GradScaler, clipping its norm, DDP's mean over ranks) or
discarded, and the table may have other uses. Therefore the occurrences of a few rows, the
``probe``, are added up beside the squares and compared with the same rows of the gradient that
``step()`` finds: their ratio is the scale, and if they are not parallel, the squares are of no use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from freqsgd.optim._counting import State
from freqsgd.optim._plain import wide

PROBE = 8  # rows that are compared
TOLERANCE = 1e-4  # of their squared difference; bfloat16 rounds to less

Tell = Callable[[Tensor, Tensor], None]  # takes a table and moments of it


class MomentsHook:
    """The hook of a looked-up output: tells a row of squares, then the sums of the probe's rows."""

    def __init__(self, tell: Tell, state: State, module: Any, call: dict[str, Any]) -> None:
        self.tell, self.state, self.module, self.call = tell, state, module, call

    def __call__(self, grad: Tensor) -> None:
        module = self.module
        if module.scale_grad_by_freq or getattr(module, "mode", None) == "max":
            return  # the gradient of an occurrence is not a multiple of the row's
        rows = wide(grad.detach().reshape(-1, grad.shape[-1]))
        probe = probe_of(self.state, module.weight)
        squares, weights = _weights(probe, module, **self.call)
        total = rows.square().sum(0) if squares is None else squares @ rows.square()
        self.tell(module.weight, torch.cat([total[None], weights @ rows]))


def _weights(
    probe: Tensor,
    module: Any,
    input: Tensor,
    offsets: Tensor | None = None,
    per_sample_weights: Tensor | None = None,
    **_: Any,
) -> tuple[Tensor | None, Tensor]:
    """Return how the rows of the output add up to the squares and to the probe's gradients.

    The gradient of an occurrence is that of its row of the output times its weight. The first
    result is the sum of the squared weights of each row, None if all are 1; the second, for each
    row of the probe, the sum of the weights of its occurrences in each row of the output.
    """
    ids = input.reshape(-1)
    found = wide(ids == probe[:, None])
    valid = None if module.padding_idx is None else wide(ids != module.padding_idx)
    if valid is not None:
        found = found * valid
    if isinstance(module, nn.Embedding):
        return valid, found
    places = torch.arange(len(ids), device=ids.device)
    if input.dim() == 2:
        count, bags = len(input), places // max(input.shape[1], 1)
    else:
        assert offsets is not None
        count = len(offsets) - module.include_last_offset
        bags = torch.searchsorted(offsets[:count].long(), places, right=True) - 1

    def by_bag(x: Tensor) -> Tensor:
        return x.new_zeros(*x.shape[:-1], count).index_add_(-1, bags, x)

    weights = wide(torch.ones_like(ids)) if valid is None else valid
    if module.mode == "mean":
        weights = weights / by_bag(weights).clamp(min=1)[bags]
    if per_sample_weights is not None:
        weights = weights * wide(per_sample_weights.detach().reshape(-1))
    return by_bag(weights.square()), by_bag(found * weights)


def probe_of(state: State, param: Tensor) -> Tensor:
    """Return the rows of a table that are compared: the first ones until others are chosen."""
    if "probe" in state:
        probe: Tensor = state["probe"]
        return probe
    return torch.arange(min(PROBE, len(param)), device=param.device)


def choose_probe(state: State) -> None:
    """Compare the most frequent rows from now on; now and then, since frequencies settle."""
    step, counts = state["steps"], state["counts"]
    if step > 1 and step & (step - 1) == 0:
        state["probe"] = counts.topk(min(PROBE, len(counts))).indices


def rows_now(probe: Tensor, grad: Tensor, ids: Tensor | None) -> Tensor:
    """Return the probe's rows of a gradient, whose rows belong to ``ids``, or to all in order."""
    return wide(grad[probe]) if ids is None else wide(ids == probe[:, None]) @ wide(grad)


def squares_of(moments: Tensor, now: Tensor) -> tuple[Tensor, Tensor]:
    """Return the squares of occurrences on the scale of a step's gradient, and if they are usable.

    They are not where the gradient is no multiple of what was looked up.

    Args:
        moments: what was told of all lookups, added up; (tables, 1 + probe, columns)
        now: the probe's rows of the gradients; (tables, probe, columns)
    """
    squares, seen = moments[:, 0], moments[:, 1:]
    scale = (seen * now).sum((1, 2)) / seen.square().sum((1, 2))
    rest = (now - scale[:, None, None] * seen).square().sum((1, 2))
    usable = rest <= TOLERANCE * now.square().sum((1, 2))  # False for NaN
    usable &= (scale != 0) & squares.isfinite().all(1)
    return squares * scale.square()[:, None], usable
