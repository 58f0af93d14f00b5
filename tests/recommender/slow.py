"""Minibatch training of FM written out sample by sample, pair by pair, in float64.

Independent of the package: the law, the optimizers and the gradients are spelled out.
"""

from __future__ import annotations

import math
from collections import defaultdict

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
        self.bias_squares = self.bias_moment = 0.0

    def rows(self, sample):
        return [int(i) + s for i, s in zip(sample, self.starts, strict=True) if i >= 0]

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
                gradient[k, -1] += g
                for b, other in enumerate(rows):
                    if a != b:
                        gradient[k, :-1] += g * self.weight[other, :-1]
        self.samples += len(ids)
        self.steps += 1
        for k, n in times.items():
            self.counts[k] += 1 if self.by_batch else n
        if self.optimizer in ("adagrad", "adam"):
            self.dense(gradient, slope_sum)
        else:
            self.touched(gradient, slope_sum, times, len(ids))
        return loss

    def touched(self, gradient, slope_sum, times, size):
        new = self.weight.copy()
        for k, n in times.items():
            seen = self.steps if self.by_batch else self.samples
            p = self.frequencies[k] if self.optimizer == "fasgd" else self.counts[k] / seen
            q = 1.0 if self.by_batch else n / size
            if self.optimizer == "rowwise-adagrad":
                self.row_squares[k] += (gradient[k, :-1] ** 2).mean(), gradient[k, -1] ** 2
                rates = self.lr / (np.sqrt(self.row_squares[k]) + 1e-10)
            elif self.optimizer == "sgd":
                rates = np.array([self.lr, self.lr])
            else:
                rates = np.full(2, min(self.lr / math.sqrt(p), self.cap))
            rates[1] *= self.linear_lr
            decay = self.decay * q / p**self.decay_power
            parts = np.minimum(rates * [decay, decay * self.linear_decay], 0.5)
            new[k, :-1] -= rates[0] * gradient[k, :-1] + parts[0] * self.weight[k, :-1]
            new[k, -1] -= rates[1] * gradient[k, -1] + parts[1] * self.weight[k, -1]
        self.weight = new
        capped = self.optimizer in ("cfsgd", "fasgd")
        rate = min(self.dense_lr, self.cap) if capped else self.lr
        if self.optimizer == "rowwise-adagrad":
            self.bias_squares += slope_sum**2
            rate /= math.sqrt(self.bias_squares) + 1e-10
        self.bias -= rate * slope_sum + min(rate * self.decay, 0.5) * self.bias

    def dense(self, gradient, slope_sum):
        scale = np.ones(self.weight.shape[1])
        decay = np.full(self.weight.shape[1], self.decay)
        scale[-1], decay[-1] = self.linear_lr, self.decay * self.linear_decay
        gradient = gradient + decay * self.weight
        slope_sum += self.decay * self.bias
        if self.optimizer == "adagrad":
            self.squares += gradient**2
            self.bias_squares += slope_sum**2
            self.weight -= self.lr * scale * gradient / (np.sqrt(self.squares) + 1e-10)
            self.bias -= self.lr * slope_sum / (math.sqrt(self.bias_squares) + 1e-10)
            return
        c1, c2 = 1 - 0.9**self.steps, 1 - 0.999**self.steps
        self.moment = 0.9 * self.moment + 0.1 * gradient
        self.squares = 0.999 * self.squares + 0.001 * gradient**2
        self.bias_moment = 0.9 * self.bias_moment + 0.1 * slope_sum
        self.bias_squares = 0.999 * self.bias_squares + 0.001 * slope_sum**2
        root = np.sqrt(self.squares / c2) + 1e-8
        self.weight -= self.lr * scale * (self.moment / c1) / root
        self.bias -= self.lr * (self.bias_moment / c1) / (math.sqrt(self.bias_squares / c2) + 1e-8)
