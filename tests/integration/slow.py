"""CF-SGD on one table, row by row in float64, written down from the formulas alone."""

from __future__ import annotations

from collections import Counter
from math import sqrt

import torch
from torch import Tensor


class SlowTable:
    """A table, how often each row was counted, and how many samples it has seen."""

    def __init__(
        self,
        weight: Tensor,
        lr: float,
        *,
        tokens_per_sample: int = 1,
        weight_decay: float = 0.0,
        batchwise: bool = False,
    ) -> None:
        self.weight = weight.detach().double().clone()
        self.counts = [0] * len(weight)
        self.samples = 0.0
        self.lr, self.weight_decay = lr, weight_decay
        self.tokens_per_sample, self.batchwise = tokens_per_sample, batchwise

    def step(self, grad: Tensor, ids: Tensor) -> None:
        """Count ``ids``, then move every row along its part of the dense ``grad``."""
        grad = (grad.to_dense() if grad.is_sparse else grad).double()
        held = Counter(ids.reshape(-1).tolist())
        if self.batchwise:
            held = Counter(set(held))
        added = 1.0 if self.batchwise else sum(held.values()) / self.tokens_per_sample
        self.samples += added
        for row, times in held.items():
            self.counts[row] += times
        for row, count in enumerate(self.counts):
            p = max(count, 1) / self.samples
            rate = self.lr / sqrt(p)
            decay = min(0.5, rate * self.weight_decay * held[row] / added / p)
            self.weight[row] -= rate * grad[row] + decay * self.weight[row].clone()

    def same_as(self, weight: Tensor, counts: Tensor, tolerance: float = 1e-6) -> None:
        """Check a table and its counts against this one."""
        assert counts.tolist() == self.counts
        torch.testing.assert_close(weight.detach().double(), self.weight, rtol=0, atol=tolerance)
