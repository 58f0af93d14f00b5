"""CFEmbedding cannot serve a GradScaler or DDP: it says so before it writes anything."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from freqsgd.nn import CFEmbedding

IDS = torch.tensor([[1, 4], [1, 2], [1, 4]])


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = CFEmbedding([6, 5], 3, lr=0.1, weight_decay=0.1)
        self.head = nn.Linear(3, 1)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.table(ids)).pow(2).mean()


@pytest.fixture(autouse=True)
def _no_scaler_left() -> Iterator[None]:
    """Errors hold on to the frames, and so to the scalers, they were raised in."""
    gc.collect()
    yield
    gc.collect()


def state_of(model: Model) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def assert_untouched(model: Model, before: dict[str, Tensor]) -> None:
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_a_scaler_at_work_is_refused() -> None:
    model = Model()
    before = state_of(model)
    scaler = torch.amp.GradScaler("cpu", init_scale=16.0)
    loss = scaler.scale(model(IDS))
    with pytest.raises(RuntimeError, match=r"GradScaler.*nn\.Embedding with CFSGD"):
        loss.backward()
    assert_untouched(model, before)


@pytest.mark.parametrize("enabled", [False, True])
def test_a_scaler_that_scales_nothing_is_let_pass(enabled: bool) -> None:
    scaler = torch.amp.GradScaler("cpu", enabled=enabled)
    model = Model()
    loss = model(IDS)
    if not enabled:
        loss = scaler.scale(loss)
    loss.backward()
    assert model.table.counts.tolist() == [0, 3, 0, 0, 0, 0, 0, 0, 1, 0, 2]


def test_bfloat16_autocast_needs_no_scaler() -> None:
    model = Model()
    before = state_of(model)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(IDS)
    loss.backward()
    seen = model.table.counts > 0
    assert seen.nonzero().flatten().tolist() == [1, 8, 10]
    moved = (model.table.weight != before["table.weight"]).all(1)
    assert torch.equal(moved, seen)
    assert model.table.weight.isfinite().all()


@pytest.fixture
def _alone_in_a_group(tmp_path: Path) -> Iterator[None]:
    meeting_point = (tmp_path / "group").as_uri()
    dist.init_process_group("gloo", init_method=meeting_point, world_size=1, rank=0)
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("_alone_in_a_group")
def test_ddp_is_refused() -> None:
    model = Model()
    before = state_of(model)
    ddp = DistributedDataParallel(model)
    with pytest.raises(RuntimeError, match=r"DistributedDataParallel.*freqsgd\.watch"):
        ddp(IDS)
    assert_untouched(model, before)
    ddp.eval()
    assert ddp(IDS).isfinite()  # evaluation changes nothing, so it is allowed
    assert_untouched(model, before)
