"""Slow, literal versions of what the package does, written from the paper and the rate law."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field


def algorithm_1(theta, samples, gradient, p, alpha, T, L):
    """FA-SGD, a pair of tokens an iteration; ``gradient(theta_i, theta_j, y)`` gives both rows."""
    theta = [list(row) for row in theta]
    for i, j, y in samples:
        g_i, g_j = gradient(theta[i], theta[j], y)
        for k, g in ((i, g_i), (j, g_j)):
            eta = min(1 / (4 * L), alpha / math.sqrt(T * p[k]))
            theta[k] = [w - eta * x for w, x in zip(theta[k], g, strict=True)]
    return theta


def algorithm_2(theta, samples, gradient, alpha, T, L):
    """CF-SGD, one pair an iteration: step (4) before step (2), and t + 1 for t."""
    theta = [list(row) for row in theta]
    c = [0] * len(theta)
    for t, (i, j, y) in enumerate(samples):
        g_i, g_j = gradient(theta[i], theta[j], y)
        c[i] += 1
        c[j] += 1
        for k, g in ((i, g_i), (j, g_j)):
            eta = min(1 / (4 * L), alpha / math.sqrt(T * c[k] / (t + 1)))
            theta[k] = [w - eta * x for w, x in zip(theta[k], g, strict=True)]
    return theta, c


@dataclass
class MinibatchReference:
    """CF-SGD (or FA-SGD, given frequencies) on one table of Python lists, a batch at a time."""

    theta: list[list[float]]
    lr: float
    power: float = 0.5
    max_lr: float = math.inf
    count: str = "occurrence"
    tokens_per_sample: int = 1
    weight_decay: float = 0.0
    weight_decay_power: float = 1.0
    halflife: float | None = None
    maximize: bool = False
    frequencies: list[float] | None = None
    c: Counter = field(default_factory=Counter)
    n: float = 0.0
    time: int = 0  # samples (or batches) seen

    def step(self, ids, gradients):
        """``gradients`` holds one row per entry of ``ids``."""
        c_gain, n_gain, first_weight = Counter(), 0.0, None
        if self.count == "batch":
            weight = self._weight(self.time)
            c_gain = Counter(dict.fromkeys(ids, weight))
            n_gain, first_weight, self.time = weight, weight, self.time + 1
        else:
            F = self.tokens_per_sample
            for position, k in enumerate(ids):
                weight = self._weight((self.time + position) // F)
                first_weight = weight if first_weight is None else first_weight
                c_gain[k] += weight
                n_gain += weight / F
            self.time += len(ids)
        for k, gain in c_gain.items():
            self.c[k] += gain
        self.n += n_gain
        for k, gain in c_gain.items():
            eta, p = self._rate(k)
            part = eta * self.weight_decay * (gain / n_gain) * p**-self.weight_decay_power
            self.theta[k] = [w - min(0.5, part) * w for w in self.theta[k]]
        sign = -1.0 if self.maximize else 1.0
        for k, g in zip(ids, gradients, strict=True):
            eta, _ = self._rate(k)
            self.theta[k] = [w - sign * eta * x for w, x in zip(self.theta[k], g, strict=True)]

    def _weight(self, t):
        return 1.0 if self.halflife is None else 2.0 ** (t / self.halflife)

    def _rate(self, k):
        p = self.frequencies[k] if self.frequencies is not None else self.c[k] / self.n
        return min(self.max_lr, self.lr / p**self.power), p
