"""Training word models with a softmax over the whole vocabulary."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim import Optimizer

from freqsgd.errors import DivergedError
from freqsgd.optim import CFSGD, FASGD, CFAdam
from freqsgd.optimizers import Rule
from freqsgd.runs.torch_threads import torch_threads
from freqsgd.words.corpus import Paragraphs
from freqsgd.words.engine import WordEngine, WordLosses
from freqsgd.words.windows import Ids, Samples


class SoftmaxEngine(WordEngine):
    """Minibatch training of a word model, equal to autograd and the torch optimizer.

    A step minimises the mean cross-entropy of its samples. The frequency of a word in the output
    table and its bias is its share of the targets. fasgd takes its frequencies, which are nearly
    those of the samples, from the counts. The model has a bias. Results differ in rounding between
    numbers of threads.
    """

    def _prepare(self, counts: NDArray[np.int64]) -> None:
        model, rule, settings = self.model, self.rule, self.settings
        self._layer = SoftmaxLayer(model.output)
        self._input: Tensor = model.input.weight
        bias = model.output.bias.detach()[:, None]  # whose entries belong to words too
        self._outputs: list[Tensor] = [model.output.weight, bias]
        names = ("input.weight", "output.weight", "output.bias")
        self._tables = dict(zip(names, [self._input, *self._outputs], strict=True))
        self._optimizer = word_optimizer(
            rule, self._input, self._outputs, counts * self._share, settings.inputs_per_sample
        )

    @property
    def state(self) -> dict[str, Tensor]:
        """What the optimizer keeps, by name; Adam has it from the first step on."""
        return {
            f"{name}.{key}": _as_tensor(value)
            for name, table in self._tables.items()
            for key, value in self._optimizer.state.get(table, {}).items()
        }

    def load_state(self, state: dict[str, Tensor], samples: int, steps: int) -> None:
        """Continue from a state that was saved."""
        saved = self._optimizer.state_dict()
        saved["state"] = {}
        for number, (name, table) in enumerate(self._tables.items()):
            for key, value in state.items():
                if key.startswith(f"{name}."):
                    size = table.shape[1] if key.endswith("square_avg") else len(table)
                    if value.dim() and len(value) != size:
                        raise ValueError(f"the saved {key} does not fit {len(table)} words")
                    of_table = saved["state"].setdefault(number, {})
                    of_table[key.removeprefix(f"{name}.")] = _as_number(value)
        self._optimizer.load_state_dict(saved)
        self.samples, self.steps = samples, steps

    def evaluate(self, text: Paragraphs) -> WordLosses:
        """Return the losses of a text, all of its words included; the model stays as it is."""
        vectors = self._input.detach()
        before = None if self.model.max_norm is None else vectors.clone()
        try:
            with torch.no_grad(), torch_threads(self.threads):
                return self._add_up(text, self._losses)
        finally:
            if before is not None:  # vectors are shortened when they are used
                vectors.copy_(before)

    def _losses(self, samples: Samples) -> NDArray[np.float32]:
        hidden = self.model.hidden(torch.from_numpy(samples.inputs))
        losses = self._layer.losses(hidden, samples.rows, samples.targets)
        return np.asarray(losses.numpy())

    def _step(self, ids: Ids, starts: Ids, lr: float, epoch: int) -> float:
        samples = self._samples(ids, starts)
        if not len(samples):
            return 0.0
        weight, bias = self._outputs
        self._optimizer.zero_grad()
        weight.grad, bias.grad = torch.zeros_like(weight), torch.zeros_like(bias)
        with torch_threads(self.threads):
            hidden = self.model.hidden(torch.from_numpy(samples.inputs))
            losses, slopes = self._layer.gradients(
                hidden.detach(), samples.rows, samples.targets, weight.grad, bias.grad[:, 0]
            )
            loss = float(losses.sum(dtype=torch.float64))
            if not math.isfinite(loss):
                raise DivergedError(self.steps)
            hidden.backward(slopes)
            self._observe(samples)
            for group in self._optimizer.param_groups:
                group["lr"] = lr
            self._optimizer.step()
        self._optimizer.zero_grad()
        self.samples += len(samples)
        return loss

    def _observe(self, samples: Samples) -> None:
        """Tell an optimizer that counts what the batch holds."""
        if isinstance(self._optimizer, CFAdam | CFSGD | FASGD):
            inputs, targets = map(torch.from_numpy, (samples.occurrences, samples.targets))
            self._optimizer.observe(self._input, inputs, len(samples))
            for table in self._outputs:
                self._optimizer.observe(table, targets, len(samples))


def _as_tensor(value: float | Tensor) -> Tensor:
    """Return a value as a tensor; Python's numbers have 64 bits."""
    kind = torch.float64 if isinstance(value, float) else None
    return torch.as_tensor(value, dtype=kind)


def _as_number(value: Tensor) -> float | Tensor:
    """Return what :func:`_as_tensor` was given."""
    whole = value.dim() == 0 and value.dtype in (torch.int64, torch.float64)
    return value.item() if whole else value.clone()


# Cross-entropy of a softmax over the vocabulary, without holding all of its logits.
#
# Where a hidden vector h predicts n words, c_o of them the word o, the logits are needed once: with
# P = softmax(W h + b) the slope of the n losses' sum is n (P - c / n). Logits are made for a piece
# of the hidden vectors at a time and turned, in place, into P - c / n; the factor n goes to the
# thin side of the products.

_PIECE = 1 << 21  # logits at a time: 8 MB, which a cache may hold; fastest in benchmarks
_FEWEST = 64  # rows of a piece, for products of matrices to be worth it

Piece = tuple[slice, slice, Tensor, Tensor]


class SoftmaxLayer:
    """The output table of a word model.

    The methods take hidden vectors (rows, dim), the row of each sample, which never falls, and the
    word that each predicts.
    """

    def __init__(self, output: nn.Linear) -> None:
        self.weight, self.bias = output.weight.detach(), output.bias.detach()
        self._rows = max(_FEWEST, _PIECE // len(self.weight))
        self._logits = self.weight.new_empty(self._rows, len(self.weight))

    def losses(self, hidden: Tensor, rows: Ids, targets: Ids) -> Tensor:
        """Return the loss of each sample."""
        losses = hidden.new_empty(len(targets))
        for _, samples, log_p, cells in self._pieces(hidden, rows, targets):
            losses[samples] = -log_p.view(-1)[cells]
        return losses

    def gradients(
        self, hidden: Tensor, rows: Ids, targets: Ids, to_weight: Tensor, to_bias: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the loss of each sample, and the gradient of their mean by the hidden vectors.

        The gradients of weight and bias are added to ``to_weight`` and ``to_bias``.
        """
        losses, to_hidden = hidden.new_empty(len(targets)), torch.empty_like(hidden)
        repeats = np.bincount(rows, minlength=len(hidden))
        parts = torch.from_numpy(-1 / repeats[rows]).to(hidden.dtype)
        share = torch.from_numpy(repeats / len(rows)).to(hidden.dtype)
        for some, samples, log_p, cells in self._pieces(hidden, rows, targets):
            losses[samples] = -log_p.view(-1)[cells]
            slopes = log_p.exp_()
            slopes.view(-1).index_add_(0, cells, parts[samples])
            torch.mm(slopes, self.weight, out=to_hidden[some])
            to_weight.addmm_(slopes.t(), hidden[some] * share[some, None])
            to_bias.addmv_(slopes.t(), share[some])
        return losses, to_hidden.mul_(share[:, None])

    def _pieces(self, hidden: Tensor, rows: Ids, targets: Ids) -> Iterator[Piece]:
        """Yield rows, their samples, the rows' log probabilities, the samples' places in them."""
        for first in range(0, len(hidden), self._rows):
            last = min(first + self._rows, len(hidden))
            log_p = self._logits[: last - first]
            torch.addmm(self.bias, hidden[first:last], self.weight.t(), out=log_p)
            torch.log_softmax(log_p, 1, out=log_p)
            start, end = np.searchsorted(rows, [first, last])
            cells = (rows[start:end] - first) * len(self.weight) + targets[start:end]
            yield slice(first, last), slice(start, end), log_p, torch.from_numpy(cells)


def word_optimizer(
    rule: Rule, inputs: Tensor, outputs: list[Tensor], counts: NDArray[Any], per_sample: int
) -> Optimizer:
    """Return the optimizer of a rule, for tables that have a row for each word.

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
    zeros = torch.zeros(len(inputs), dtype=torch.int64)  # so that states have their size at once
    match rule.facts.softmax:
        case "Adam":
            return torch.optim.Adam(tables, **plain)
        case "Adagrad":
            return torch.optim.Adagrad(tables, **plain)
        case "RowwiseAdagrad":
            return RowwiseAdagrad(tables, rule.law.lr)
        case "FASGD":
            p = torch.from_numpy(np.maximum(counts, 1) / max(counts.sum(), 1)).float()
            groups[0]["frequencies"] = (p * per_sample).clamp(max=per_sample)
            groups[1]["frequencies"] = [p.clamp(max=1)] * len(outputs)
            return FASGD(groups, frequencies=None, **law)
        case "CFSGD" if not rule.counts:
            return torch.optim.SGD(tables, rule.law.lr)
        case "CFAdam":
            adam = CFAdam(tables, weight_decay_power=rule.weight_decay_power, **plain)
            for table in tables:
                adam.set_counts(table, zeros)
            return adam
    optimizer = CFSGD(groups, power=rule.law.power, **law)
    for table in tables:
        optimizer.set_counts(table, zeros, 0)
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

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update the tables from their gradients, which are dense; a closure is not taken."""
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is not None:
                    total = self.state[param]["sum"].add_(param.grad.square().mean(1))
                    rates = group["lr"] / (total.sqrt() + group["eps"])
                    param.addcmul_(param.grad, rates[:, None], value=-1)
