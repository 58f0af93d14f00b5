"""Short training runs that can stop anywhere and go on elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import StepLR

import freqsgd
from freqsgd import CFSGD, FASGD, CFAdam
from freqsgd.optim._base import FrequencyOptimizer

ROWS, DIM, BATCH, STEPS = 16, 5, 12, 6


@dataclass
class Setup:
    """Which model is trained, and how."""

    rule: str = "cfsgd"
    sparse: bool = True
    dtype: torch.dtype = torch.float32
    options: dict[str, Any] = field(default_factory=dict)

    def begin(self, seed: int = 0) -> Run:
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Embedding(ROWS, DIM, sparse=self.sparse), nn.Linear(DIM, 1))
        model.to(self.dtype)
        return Run(model, self.make_optimizer(model), watched=not self.sparse)

    def make_optimizer(self, model: nn.Module) -> FrequencyOptimizer:
        if self.rule == "cfadam":
            return CFAdam(model.parameters(), 0.02, **self.options)
        if self.rule == "cfsgd":
            return CFSGD(model.parameters(), 0.2, **self.options)
        frequencies = torch.linspace(0.05, 1.0, ROWS)
        return FASGD(model.parameters(), 0.2, frequencies=[frequencies, None, None], **self.options)


class Run:
    """A model, its optimizer and its schedule."""

    def __init__(self, model: nn.Sequential, opt: FrequencyOptimizer, watched: bool) -> None:
        self.model, self.opt = model, opt
        self.schedule = StepLR(opt, 2, 0.5)
        if watched:
            freqsgd.watch(model, opt)

    @property
    def table(self) -> nn.Parameter:
        return self.model[0].weight

    def train(self, steps: Iterable[int]) -> Run:
        for step in steps:
            generator = torch.Generator().manual_seed(step)
            ids = (torch.rand(BATCH, generator=generator) ** 2 * ROWS).long()
            clicks = torch.rand(BATCH, 1, generator=generator).round()
            self.opt.zero_grad()
            out = self.model(ids).float()
            nn.functional.binary_cross_entropy_with_logits(out, clicks).backward()
            self.opt.step()
            self.schedule.step()
        return self

    def observe(self) -> Run:
        """Look at tokens whose step is still to come."""
        self.opt.observe(self.table, torch.tensor([3, 3, 15]))
        self.opt.observe(self.table, torch.tensor([[0, 3]]), samples=1)
        return self

    def result(self) -> dict[str, Any]:
        """Everything that further training depends on."""
        state = self.opt.state_dict()
        return {
            "model": dict(self.model.state_dict()),
            "state": {key: value for key, value in state["state"].items() if value},
            "options": [
                {key: value for key, value in group.items() if key not in ("params", "param_names")}
                for group in state["param_groups"]
            ],
        }

    def state_dict(self) -> dict[str, Any]:
        parts = (self.model, self.opt, self.schedule)
        return {str(number): part.state_dict() for number, part in enumerate(parts)}

    def load_state_dict(self, state: dict[str, Any]) -> Run:
        for number, part in enumerate((self.model, self.opt, self.schedule)):
            part.load_state_dict(state[str(number)])
        return self


SETUPS = {
    "sparse": Setup(),
    "dense": Setup(sparse=False),
    "decay": Setup(options={"weight_decay": 0.1, "weight_decay_power": 0.5}),
    "batchwise": Setup(sparse=False, options={"count": "batch", "weight_decay": 0.1}),
    "halflife": Setup(options={"halflife": 15.0, "tokens_per_sample": 2}),
    "capped": Setup(options={"max_lr": 0.5, "power": 0.7, "fused": False}),
    "float64": Setup(dtype=torch.float64),
    "bfloat16": Setup(dtype=torch.bfloat16, options={"weight_decay": 0.1}),
    "float16": Setup(dtype=torch.float16, sparse=False),
    "cfadam": Setup(rule="cfadam"),
    "cfadam-dense": Setup(rule="cfadam", sparse=False, options={"weight_decay": 0.1}),
    "cfadam-bfloat16": Setup(rule="cfadam", dtype=torch.bfloat16),
    "fasgd": Setup(rule="fasgd"),
    "fasgd-decay": Setup(rule="fasgd", sparse=False, options={"weight_decay": 0.1}),
}


def assert_identical(some: Any, other: Any, where: str = "state") -> None:
    """Compare nested state to the last bit."""
    assert type(some) is type(other), where
    if isinstance(some, Tensor):
        assert some.dtype == other.dtype, where
        assert torch.equal(some, other), where
    elif isinstance(some, dict):
        assert some.keys() == other.keys(), where
        for key in some:
            assert_identical(some[key], other[key], f"{where}[{key!r}]")
    elif isinstance(some, list | tuple):
        assert len(some) == len(other), where
        for number, (item, counterpart) in enumerate(zip(some, other, strict=True)):
            assert_identical(item, counterpart, f"{where}[{number}]")
    else:
        assert some == other, where
