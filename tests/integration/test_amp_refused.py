"""CFEmbedding cannot serve a GradScaler, which it cannot see, nor DDP, which it refuses."""

from __future__ import annotations

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


def state_of(model: Model) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def assert_untouched(model: Model, before: dict[str, Tensor]) -> None:
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_a_gradient_that_a_scaler_made_overflow_is_refused_in_words() -> None:
    model = Model()
    before = state_of(model)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)
    loss = scaler.scale(100 * model(IDS))
    with pytest.raises(ValueError, match=r"infinity.*GradScaler.*nn\.Embedding with CFSGD"):
        loss.backward()
    assert_untouched(model, before)


def test_a_scaled_loss_is_not_noticed_and_acts_as_a_larger_rate() -> None:
    """The limitation that the documentation states: nothing in a backward pass shows the scale."""
    scaled, larger = Model(), Model()
    larger.load_state_dict(scaled.state_dict())
    larger.table.lr *= 16
    scaled.table.weight_decay = larger.table.weight_decay = 0.0
    torch.amp.GradScaler("cpu", init_scale=16.0).scale(scaled(IDS)).backward()
    larger(IDS).backward()
    torch.testing.assert_close(scaled.table.weight, larger.table.weight)


def test_a_scaler_that_is_disabled_changes_nothing() -> None:
    model, plain = Model(), Model()
    plain.load_state_dict(model.state_dict())
    torch.amp.GradScaler("cpu", enabled=False).scale(model(IDS)).backward()
    plain(IDS).backward()
    assert torch.equal(model.table.weight, plain.table.weight)
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
