"""A watched model that is compiled trains like one that is not."""

from __future__ import annotations

import copy
import shutil
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import freqsgd
from freqsgd import CFSGD
from freqsgd.nn import CFEmbedding

ROWS, DIM, BATCH, STEPS = 30, 8, 16, 4


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(ROWS, DIM, padding_idx=2)
        self.head = nn.Linear(DIM, 1)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.table(ids).sum(1).relu())


def make_model() -> tuple[Model, CFSGD]:
    torch.manual_seed(6)
    model = Model()
    opt = CFSGD(model.parameters(), lr=0.05, weight_decay=0.02)
    freqsgd.watch(model, opt)
    return model, opt


def train(model: nn.Module, opt: CFSGD) -> None:
    generator = torch.Generator().manual_seed(1)
    for _ in range(STEPS):
        ids = (torch.rand(BATCH, 3, generator=generator) ** 2 * ROWS).long()
        clicks = torch.rand(BATCH, 1, generator=generator).round()
        nn.functional.binary_cross_entropy_with_logits(model(ids), clicks).backward()
        opt.step()
        opt.zero_grad()


needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("c++", "g++", "clang++"))),
    reason="torch.compile needs a C++ compiler on the CPU",
)


@pytest.mark.ci
@needs_compiler
def test_a_compiled_model_counts_and_learns_like_the_eager_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("torch._inductor.config.compile_threads", 1)  # no processes that compile
    torch.compiler.reset()
    eager, eager_opt = make_model()
    train(eager, eager_opt)

    model, opt = make_model()
    train(torch.compile(model), opt)

    counts = opt.counts(model.table.weight)
    assert torch.equal(counts, eager_opt.counts(eager.table.weight))
    assert counts[2] == 0
    assert counts.max() > STEPS
    for param, other in zip(model.parameters(), eager.parameters(), strict=True):
        torch.testing.assert_close(param, other, rtol=0, atol=1e-5)
    assert any(tmp_path.iterdir()), "nothing was compiled"
    torch.compiler.reset()


@pytest.mark.ci
@needs_compiler
def test_a_table_that_updates_itself_may_stand_in_a_compiled_model() -> None:
    model = nn.Sequential(CFEmbedding([9, 7], DIM, lr=0.1), nn.Flatten(), nn.Linear(2 * DIM, 1))
    twin = copy.deepcopy(model)
    ids = torch.randint(0, 7, (BATCH, 2))
    for module in (model, torch.compile(twin)):
        for _ in range(3):
            module(ids).square().mean().backward()
    torch.testing.assert_close(model[0].weight, twin[0].weight)
    assert torch.equal(model[0].counts, twin[0].counts)
    assert twin[0].counts.sum() == 3 * 2 * BATCH
    torch.compiler.reset()
