"""Minibatch training of FM written out sample by sample, pair by pair, in float64.

Independent of the package: the law, the optimizers and the gradients are spelled out.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


class SlowFM:
    def __init__(self, weight, bias, starts, optimizer, lr, *, frequencies=None, **options):
        self.weight = np.array(weight, np.float64)  # last column: linear weights
        self.bias = float(bias)
        self.starts, self.optimizer, self.lr = starts, optimizer, lr
        self.frequencies = frequencies
        self.decay = options.get("weight_decay", 0.0)
        self.decay_power = options.get("weight_decay_power", 1.0)
        self.cap = options.get("max_lr") or math.inf
        self.linear_lr = options.get("linear_lr_scale", 1.0)
        self.linear_decay = options.get("linear_decay_scale", 1.0)
        self.by_batch = options.get("count") == "batch"
        self.dense_lr = options.get("dense_lr", lr)  # of the bias
        self.counts = np.zeros(len(self.weight))
        self.samples = self.steps = 0
        self.squares = np.zeros_like(self.weight)
        self.moment = np.zeros_like(self.weight)
        self.row_squares = np.zeros((len(self.weight), 2))
        self.bias_squares, self.bias_moment = np.zeros(1), np.zeros(1)
        self.field_starts = sorted(set(starts))
        self.column_squares = np.zeros((len(starts), self.weight.shape[1]))  # of each field
        self.tokens = np.zeros(len(starts))

    def rows(self, sample):
        return [int(i) + s for i, s in zip(sample, self.starts, strict=True) if i >= 0]

    def field(self, row):
        return sum(start <= row for start in self.field_starts) - 1

    def logit(self, rows):
        z = self.bias + sum(self.weight[k, -1] for k in rows)
        for a in range(len(rows)):
            for b in range(a):
                z += self.weight[rows[a], :-1] @ self.weight[rows[b], :-1]
        return z

    def step(self, ids, labels):
        """Returns the mean loss."""
        gradient, slope_sum = np.zeros_like(self.weight), 0.0
        times = defaultdict(int)
        squares, tokens = np.zeros_like(self.column_squares), np.zeros_like(self.tokens)
        loss = 0.0
        for sample, label in zip(ids, labels, strict=True):
            rows = self.rows(sample)
            z = self.logit(rows)
            p = 1 / (1 + math.exp(-z))
            loss -= math.log(p if label else 1 - p) / len(ids)
            g = (p - label) / len(ids)
            slope_sum += g
            for a, k in enumerate(rows):
                times[k] += 1
                own = np.zeros(self.weight.shape[1])
                own[-1] = g
                for b, other in enumerate(rows):
                    if a != b:
                        own[:-1] += g * self.weight[other, :-1]
                gradient[k] += own
                squares[self.field(k)] += own**2
                tokens[self.field(k)] += 1
        self.samples += len(ids)
        self.steps += 1
        for k, n in times.items():
            self.counts[k] += 1 if self.by_batch else n
        if self.optimizer == "cfadam":
            self.rows_by_cfadam(gradient, slope_sum, times, squares, tokens)
        elif CASES[self.optimizer].dense:
            self.all_rows(gradient, slope_sum)
        else:
            self.rows_of_batch(gradient, slope_sum, times, len(ids))
        return loss

    def rows_of_batch(self, gradient, slope_sum, times, size):
        rule, new = CASES[self.optimizer].rule, self.weight.copy()
        for k, n in times.items():
            seen = self.steps if self.by_batch else self.samples
            p = self.frequencies[k] if self.optimizer == "fasgd" else self.counts[k] / seen
            q = 1.0 if self.by_batch else n / size
            decay = self.decay * q / p**self.decay_power
            parts = (slice(0, -1), 1.0, 1.0), (slice(-1, None), self.linear_lr, self.linear_decay)
            for i, (part, lr_scale, decay_scale) in enumerate(parts):
                kept = self.row_squares[k, i : i + 1], None
                rate, direction = rule(self, kept, self.lr, p, gradient[k, part])
                shrunk = np.minimum(rate * lr_scale * decay * decay_scale, 0.5)
                new[k, part] -= rate * lr_scale * direction + shrunk * self.weight[k, part]
        self.weight = new
        kept, slope = (self.bias_squares, self.bias_moment), np.array([slope_sum])
        rate, direction = rule(self, kept, self.dense_lr, 1.0, slope)
        step = rate * direction + np.minimum(rate * self.decay, 0.5) * self.bias
        self.bias -= step.item()

    def rows_by_cfadam(self, gradient, slope_sum, times, squares, tokens):
        """CFAdam with one table per field; a linear weight is one more column of its row."""
        self.tokens += tokens
        self.column_squares += 0.001 * (squares - self.column_squares)
        lr_scale, decay_scale = np.ones(self.weight.shape[1]), np.ones(self.weight.shape[1])
        lr_scale[-1], decay_scale[-1] = self.linear_lr, self.linear_decay
        for k, n in times.items():
            field = self.field(k)
            m, share = tokens[field], self.counts[k] / self.tokens[field]
            root = np.sqrt(self.column_squares[field] / (1 - 0.999**self.steps))
            u = gradient[k] / (root + 1e-8)
            p = max(share, 0.001 / m)
            longest, length = 3 * math.sqrt(max(p, 1 / m)), math.sqrt((u**2).mean())
            part = self.lr * lr_scale * self.decay * decay_scale * n / m / share**self.decay_power
            step = self.lr / math.sqrt(p) * min(1, longest / length) * lr_scale * u
            self.weight[k] -= step + np.minimum(part, 0.5) * self.weight[k]
        self.bias *= 1 - self.lr * self.decay
        kept = self.bias_squares, self.bias_moment
        rate, direction = adam(self, kept, self.lr, None, np.array([slope_sum]))
        self.bias -= (rate * direction).item()

    def all_rows(self, gradient, slope_sum):
        rule, scale = CASES[self.optimizer].rule, np.ones(self.weight.shape[1])
        decay = np.full(self.weight.shape[1], self.decay)
        scale[-1], decay[-1] = self.linear_lr, self.decay * self.linear_decay
        kept = self.squares, self.moment
        rate, direction = rule(self, kept, self.lr, None, gradient + decay * self.weight)
        self.weight = self.weight - scale * rate * direction
        kept, slope = (self.bias_squares, self.bias_moment), slope_sum + self.decay * self.bias
        rate, direction = rule(self, kept, self.lr, None, np.array([slope]))
        self.bias -= (rate * direction).item()


# Rules take the squares and the moment that they may keep, the learning rate, the frequency of a
# row and a gradient. They return the rate and what it is multiplied by.


def sgd(slow, kept, lr, p, gradient):
    return lr, gradient


def by_frequency(slow, kept, lr, p, gradient):
    return min(lr / math.sqrt(p), slow.cap), gradient


def adagrad(slow, kept, lr, p, gradient):
    squares, _ = kept
    squares += gradient**2
    return lr / (np.sqrt(squares) + 1e-10), gradient


def rowwise_adagrad(slow, kept, lr, p, gradient):
    squares, _ = kept
    squares += (gradient**2).mean()
    return lr / (np.sqrt(squares) + 1e-10), gradient


def adam(slow, kept, lr, p, gradient):
    squares, moment = kept
    moment += 0.1 * (gradient - moment)
    squares += 0.001 * (gradient**2 - squares)
    c1, c2 = 1 - 0.9**slow.steps, 1 - 0.999**slow.steps
    return lr / (np.sqrt(squares / c2) + 1e-8), moment / c1


@dataclass(frozen=True)
class Case:
    """An optimizer of the package, for the tests of its engine.

    Args:
        rule: what it does, spelled out
        lr: a rate that moves weights visibly in a few steps
        state_bytes: that it keeps for 100 rows of 15 numbers and a linear weight, and for the bias
        dense: its weight decay is that of torch: every row, every step
    """

    rule: Callable[..., Any]
    lr: float
    state_bytes: int
    dense: bool = False


CASES = {  # a row for each optimizer: it gets every test of the engine
    "sgd": Case(sgd, 0.5, 0),
    "fasgd": Case(by_frequency, 0.5, 400),
    "cfsgd": Case(by_frequency, 0.5, 400),
    "cfadam": Case(adam, 0.05, 400 + 2 * 17 * 8 + 8),  # the rule is the bias's: see rows_by_cfadam
    "adagrad": Case(adagrad, 0.05, 6400 + 8, dense=True),
    "rowwise-adagrad": Case(rowwise_adagrad, 0.05, 800 + 8),
    "adam": Case(adam, 0.05, 12800 + 8, dense=True),
}
