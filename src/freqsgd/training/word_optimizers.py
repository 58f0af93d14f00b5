"""The optimizers of word models whose loss is a softmax: the package's own, and torch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.optim import Optimizer

from freqsgd.optim import CFSGD, FASGD
from freqsgd.training.rules import Rule

__all__ = ["RowwiseAdagrad", "word_optimizer"]


def word_optimizer(
    rule: Rule, inputs: Tensor, outputs: list[Tensor], counts: NDArray[Any], per_sample: int
) -> Optimizer:
    """The optimizer of a rule, for tables that have a row for each word.

    Args:
        rule: its name and options, which have been checked
        inputs: the table that predicts
        outputs: the tables of the words that are predicted, one in each sample
        counts: occurrences of each word in the training text, for fasgd
        per_sample: words of ``inputs`` that a full sample uses
    """
    tables = [inputs, *outputs]
    plain: dict[str, Any] = {"lr": rule.law.lr, "weight_decay": rule.weight_decay}
    law = {
        **plain, "max_lr": rule.law.max_lr, "weight_decay_power": rule.weight_decay_power
    }  # fmt: skip
    groups: list[dict[str, Any]] = [
        {"params": [inputs], "tokens_per_sample": per_sample},
        {"params": outputs, "tokens_per_sample": 1},
    ]
    match rule.optimizer:
        case "adam":
            return torch.optim.Adam(tables, **plain)
        case "adagrad":
            return torch.optim.Adagrad(tables, **plain)
        case "rowwise-adagrad":
            return RowwiseAdagrad(tables, rule.law.lr)
        case "fasgd":
            p = torch.from_numpy(np.maximum(counts, 1) / max(counts.sum(), 1)).float()
            groups[0]["frequencies"] = (p * per_sample).clamp(max=per_sample)
            groups[1]["frequencies"] = [p.clamp(max=1)] * len(outputs)
            return FASGD(groups, frequencies=None, **law)
        case "sgd" if rule.weight_decay == 0:
            return torch.optim.SGD(tables, rule.law.lr)
    optimizer = CFSGD(groups, power=rule.law.power, **law)
    for table in tables:  # so that the state has its size from the start
        optimizer.set_counts(table, torch.zeros(len(table), dtype=torch.int64), 0)
    return optimizer


class RowwiseAdagrad(Optimizer):
    r"""Adagrad with one number per row: its rate is that of the row's mean square.

    .. math::
        s_k \leftarrow s_k + |g_k|^2 / d, \qquad
        \theta_k \leftarrow \theta_k - \text{lr} \; g_k / (\sqrt{s_k} + \text{eps})

    Args:
        params: tables
        lr: learning rate
        eps: keeps the division defined
    """

    def __init__(self, params: Any, lr: float, *, eps: float = 1e-10) -> None:
        super().__init__(params, {"lr": lr, "eps": eps})
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param]["sum"] = param.new_zeros(len(param))

    @overload
    def step(self, closure: None = None) -> None: ...

    @overload
    def step(self, closure: Callable[[], float]) -> float: ...

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Update the tables from their gradients, which are dense."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is not None:
                    total = self.state[param]["sum"].add_(param.grad.square().mean(1))
                    rates = group["lr"] / (total.sqrt() + group["eps"])
                    param.addcmul_(param.grad, rates[:, None], value=-1)
        return loss
