"""Training of word models with a softmax, a sample at a time, the optimizers spelled out.

Only the gradient of a sample is autograd's, in float64.
"""

from __future__ import annotations

import copy
import math

import torch
from torch.nn.functional import cross_entropy


class SlowWords:
    """``step`` takes samples (words that predict, word that is predicted)."""

    def __init__(self, model, rule, *, frequencies=None):
        self.model = copy.deepcopy(model).double()
        self.rule = rule
        self.given = frequencies  # of inputs, of targets
        self.counts = torch.zeros(2, model.words, dtype=torch.float64)
        self.samples = 0
        self.squares = {}
        self.steps = 0
        torch_optimizer = {"adagrad": torch.optim.Adagrad, "adam": torch.optim.Adam}
        if rule.optimizer in torch_optimizer:
            self.torch = torch_optimizer[rule.optimizer](
                self.model.parameters(), rule.lr, weight_decay=rule.weight_decay
            )

    def step(self, samples, lr):
        """Returns the sum of the losses."""
        self.model.zero_grad()
        total = 0.0
        batch = torch.zeros_like(self.counts)
        for inputs, target in samples:
            loss = cross_entropy(self.model(inputs), torch.tensor([target]))
            (loss / len(samples)).backward()
            total += loss.item()
            for word in inputs.reshape(-1).tolist():
                batch[0, word] += word >= 0
            batch[1, target] += 1
        self.counts += batch
        self.samples += len(samples)
        self.steps += 1
        if self.rule.optimizer in ("adagrad", "adam"):
            self.torch.param_groups[0]["lr"] = lr
            self.torch.step()
            return total
        with torch.no_grad():
            for name, table in self.model.named_parameters():
                side = 0 if name == "input.weight" else 1
                if self.rule.optimizer == "cfadam":
                    self.move_as_adam(name, table, lr, side, batch[side])
                    continue
                for k in range(self.model.words):
                    self.move(name, table, k, lr, side, float(batch[side, k]) / len(samples))
        return total

    def move(self, name, table, k, lr, side, q):
        """Update a row by the rule."""
        rule, gradient = self.rule, table.grad[k]
        p = max(float(self.counts[side, k]), 1.0) / self.samples
        if self.given is not None and rule.optimizer == "fasgd":
            p = self.given[side][k]
        if rule.optimizer == "rowwise-adagrad":
            total = self.squares.get((name, k), 0.0) + gradient.square().mean().item()
            self.squares[name, k] = total
            rate = lr / (math.sqrt(total) + 1e-10)
        elif rule.optimizer == "sgd":
            rate = lr
        else:
            rate = min(lr / math.sqrt(p), rule.max_lr or math.inf)
        decay = min(rate * rule.weight_decay * q / p**rule.weight_decay_power, 0.5)
        table[k] -= rate * gradient + decay * table[k]

    def move_as_adam(self, name, table, lr, side, batch):
        """Update a table by CFAdam, as docs/cfadam.md has it for gradients of one row per token."""
        columns = table.grad.square().sum(0)
        s = self.squares[name] = 0.999 * self.squares.get(name, 0.0) + 0.001 * columns
        m, n = float(batch.sum()), float(self.counts[side].sum())
        for k in range(self.model.words):
            u = table.grad[k] / ((s / (1 - 0.999**self.steps)).sqrt() + 1e-8)
            share = max(float(self.counts[side, k]), 1.0) / n
            p = max(share, 0.001 / m)
            longest, length = 3 * math.sqrt(max(p, 1 / m)), float(u.square().mean().sqrt())
            part = lr * self.rule.weight_decay * float(batch[k]) / m
            part = min(part / share**self.rule.weight_decay_power, 0.5)
            step = lr / math.sqrt(p) * min(1.0, longest / max(length, 1e-300)) * u
            table[k] -= step + part * table[k]
