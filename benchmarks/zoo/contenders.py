"""The optimizers that are compared, each with six rates on its own natural scale."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

import freqsgd
from benchmarks.zoo.task import Task

DENSE_LR = 1e-3  # of weights that are not tables, by Adam, whatever the contender

Factory = Callable[[Task, nn.Module, float], list[Optimizer]]
TableFactory = Callable[[list[Tensor], float], Optimizer]


@dataclass(frozen=True)
class Contender:
    """An optimizer, the kind of gradient that it wants from tables, and its grid of rates."""

    optimizers: Factory
    sparse: bool
    rates: tuple[float, ...]


class RowwiseAdagrad(Optimizer):
    """Adagrad with one number per row: the sum of the mean squares of the row's gradients."""

    def __init__(self, params: Iterable[Tensor], lr: float, eps: float = 1e-10) -> None:
        super().__init__(params, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is None:
                    continue
                rows, grad = _rows(param)
                sums = self.state[param].setdefault("sums", param.new_zeros(len(param)))
                sums[rows] += grad.square().mean(1)
                scale = sums[rows].sqrt_().add_(group["eps"])
                param.index_add_(0, rows, grad / scale[:, None], alpha=-group["lr"])


class FactoredAdam(Optimizer):
    """Adam without momentum whose second moment is an outer product, as in Adafactor.

    Rows and columns keep running means of their squared gradients, in which a row that is absent
    from a step has gradient 0; the second moment of a weight is row * column / mean.
    """

    def __init__(
        self, params: Iterable[Tensor], lr: float, beta2: float = 0.999, eps: float = 1e-8
    ) -> None:
        super().__init__(params, {"lr": lr, "beta2": beta2, "eps": eps})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is None:
                    continue
                rows, grad = _rows(param)
                state, beta2 = self.state[param], group["beta2"]
                if not state:
                    state["step"] = 0
                    state["rows"] = param.new_zeros(len(param))
                    state["columns"] = param.new_zeros(param.shape[1])
                state["step"] += 1
                square = grad.square()
                by_row = state["rows"].mul_(beta2)
                by_row.index_add_(0, rows, square.mean(1), alpha=1 - beta2)
                by_column = state["columns"].mul_(beta2)
                by_column.add_(square.sum(0), alpha=(1 - beta2) / len(param))
                correction = 1 - beta2 ** state["step"]
                columns = by_column / (by_column.mean() * correction).clamp(min=1e-30)
                scale = (by_row[rows, None] * columns).sqrt_().add_(group["eps"])
                param.index_add_(0, rows, grad / scale, alpha=-group["lr"])


def _rows(param: Tensor) -> tuple[Tensor, Tensor]:
    """Return the distinct rows of a sparse gradient and their summed gradients."""
    assert param.grad is not None
    grad = param.grad.coalesce()
    return grad.indices()[0], grad.values()


def _tables_by(make: TableFactory) -> Factory:
    """Return a factory that gives tables to ``make`` and all other weights to Adam."""

    def optimizers(task: Task, model: nn.Module, lr: float) -> list[Optimizer]:
        tables, rest = (group["params"] for group in freqsgd.param_groups(model))
        return [make(tables, lr), *_dense(rest)]

    return optimizers


def _dense(weights: list[Tensor]) -> list[Optimizer]:
    return [torch.optim.Adam(weights, lr=DENSE_LR)] if weights else []


def _cfsgd(task: Task, model: nn.Module, lr: float) -> list[Optimizer]:
    tables, rest = freqsgd.param_groups(model)
    groups = []
    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding | nn.EmbeddingBag):
            tokens = task.tokens_per_sample.get(name, 1)
            groups.append({"params": [module.weight], "table": True, "tokens_per_sample": tokens})
    assert len(groups) == len(tables["params"])
    optimizer = freqsgd.CFSGD(groups, lr=lr)
    freqsgd.watch(model, optimizer)
    return [optimizer, *_dense(rest["params"])]


def _cfadam(task: Task, model: nn.Module, lr: float) -> list[Optimizer]:
    tables, rest = freqsgd.param_groups(model)
    optimizer = freqsgd.CFAdam([tables], lr=lr)
    freqsgd.watch(model, optimizer)
    return [optimizer, *_dense(rest["params"])]


def _whole_adam(task: Task, model: nn.Module, lr: float) -> list[Optimizer]:
    return [torch.optim.Adam(model.parameters(), lr=lr)]


def _whole_cfadam(task: Task, model: nn.Module, lr: float) -> list[Optimizer]:
    return [freqsgd.CFAdam(model, lr=lr)]


_ADAM_RATES = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
_ADAGRAD_RATES = (3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)
_SGD_RATES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
_CFSGD_RATES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)

# Question (b): an optimizer for the tables; all other weights by Adam at DENSE_LR.
CONTENDERS = {
    "adam": Contender(_tables_by(torch.optim.Adam), False, _ADAM_RATES),
    "sparse-adam": Contender(_tables_by(torch.optim.SparseAdam), True, _ADAM_RATES),
    "adagrad": Contender(_tables_by(torch.optim.Adagrad), True, _ADAGRAD_RATES),
    "rowwise-adagrad": Contender(_tables_by(RowwiseAdagrad), True, _ADAGRAD_RATES),
    "factored": Contender(_tables_by(FactoredAdam), True, _ADAM_RATES),
    "sgd": Contender(_tables_by(torch.optim.SGD), True, _SGD_RATES),
    "cfsgd": Contender(_cfsgd, True, _CFSGD_RATES),
    "cfadam": Contender(_cfadam, True, _ADAM_RATES),
}

# Question (a): one optimizer for the whole model at Adam's default rate.
UNTUNED = {
    "adam": Contender(_whole_adam, False, (1e-3,)),
    "cfadam": Contender(_whole_cfadam, False, (1e-3,)),
}
