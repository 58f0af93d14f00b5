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


@dataclass
class AdamReference:
    """CFAdam on one table of Python lists, a batch at a time."""

    theta: list[list[float]]
    lr: float
    beta2: float = 0.999
    eps: float = 1e-8
    clip: float | None = 3.0
    weight_decay: float = 0.0
    weight_decay_power: float = 1.0
    maximize: bool = False
    c: Counter = field(default_factory=Counter)
    s: list[float] = field(default_factory=list)
    t: int = 0

    def step(self, ids, gradients):
        """``gradients`` holds one row per entry of ``ids``."""
        columns = range(len(self.theta[0]))
        self.s = self.s or [0.0 for _ in columns]
        self.t += 1
        self.c.update(ids)
        n, m = sum(self.c.values()), len(ids)
        squares = [sum(g[j] ** 2 for g in gradients) for j in columns]
        self.s = [self.beta2 * self.s[j] + (1 - self.beta2) * squares[j] for j in columns]
        roots = [math.sqrt(x / (1 - self.beta2**self.t)) + self.eps for x in self.s]
        for k, occurrences in Counter(ids).items():
            p = self.c[k] / n
            part = self.lr * self.weight_decay * (occurrences / m) * p**-self.weight_decay_power
            self.theta[k] = [w - min(0.5, part) * w for w in self.theta[k]]
        for k, g in zip(ids, gradients, strict=True):
            p = max(self.c[k] / n, (1 - self.beta2) / m)
            u = [g[j] / roots[j] for j in columns]
            rms = math.sqrt(sum(x**2 for x in u) / len(u))
            if self.clip is not None and rms > self.clip * math.sqrt(max(p, 1 / m)):
                u = [x * self.clip * math.sqrt(max(p, 1 / m)) / rms for x in u]
            sign = -1.0 if self.maximize else 1.0
            step = sign * self.lr / math.sqrt(p)
            self.theta[k] = [w - step * x for w, x in zip(self.theta[k], u, strict=True)]
