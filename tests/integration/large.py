"""Steps that are large enough for a kernel to use several threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from freqsgd import CFSGD, CFAdam
from freqsgd.kernels import threads
from freqsgd.optim._fused import SMALL

DIM = 17  # no multiple of a vector's length
NUMBERS = 2 * SMALL


@dataclass
class Work:
    """Tables under one optimizer, and the gradients and observations of several steps."""

    tables: int = 1
    dense: bool = False
    steps: int = 3
    seed: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    make: Callable[..., CFSGD | CFAdam] = CFSGD

    def __post_init__(self) -> None:
        generator = torch.Generator().manual_seed(self.seed)
        rows = NUMBERS // DIM // self.tables + 1
        self.weights = [torch.randn(rows, DIM, generator=generator) for _ in range(self.tables)]
        self.batches = [
            [
                (
                    (torch.rand(rows, generator=generator) ** 3 * rows).long(),
                    torch.randn(rows, DIM, generator=generator),
                )
                for _ in range(self.tables)
            ]
            for _ in range(self.steps)
        ]

    def begin(self) -> tuple[list[nn.Parameter], CFSGD | CFAdam]:
        params = [nn.Parameter(weight.clone()) for weight in self.weights]
        return params, self.make(params, **{"lr": 0.1, "fused": True, **self.options})

    def load(self, params: list[nn.Parameter], opt: CFSGD | CFAdam, step: int) -> None:
        """Give the parameters the gradients of one step."""
        for param, (ids, values) in zip(params, self.batches[step], strict=True):
            if self.dense:
                param.grad = values
                opt.observe(param, ids)
            else:
                param.grad = torch.sparse_coo_tensor(
                    ids[None], values, param.shape, check_invariants=False
                )

    def run(self) -> list[Tensor]:
        """The weights and counts after all steps."""
        params, opt = self.begin()
        for step in range(self.steps):
            self.load(params, opt, step)
            opt.step()
        return [p.detach() for p in params] + [opt.counts(p) for p in params]


def assert_same_bits(some: list[Tensor], others: list[Tensor]) -> None:
    assert len(some) == len(others)
    for tensor, other in zip(some, others, strict=True):
        assert tensor.dtype == other.dtype
        assert tensor.numpy().tobytes() == other.numpy().tobytes()


def spy_on_team(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list to which every kernel that runs on torch's threads adds their number."""
    team: Callable[..., None] | None = threads._team
    if team is None:
        pytest.skip("torch has no OpenMP team here")
    calls: list[int] = []

    def spy(kernel: int, job: int, workers: int, flags: int) -> None:
        calls.append(workers)
        team(kernel, job, workers, flags)

    monkeypatch.setattr(threads, "_team", spy)
    return calls
