"""Lightning's Trainer does with CFSGD what a loop written by hand does."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import ExponentialLR
from torch.utils.data import DataLoader, TensorDataset

import freqsgd
from freqsgd import CFSGD

pytestmark = pytest.mark.ci

ROWS, DIM, FIELDS = 25, 5, 3


def make_network(sparse: bool) -> nn.Sequential:
    torch.manual_seed(4)
    return nn.Sequential(
        nn.Embedding(ROWS, DIM, sparse=sparse), nn.Flatten(), nn.Linear(FIELDS * DIM, 1)
    )


def make_optimizer(network: nn.Module) -> CFSGD:
    return CFSGD(network.parameters(), lr=0.2, tokens_per_sample=FIELDS, weight_decay=0.01)


def make_loader() -> DataLoader[tuple[Tensor, ...]]:
    generator = torch.Generator().manual_seed(2)
    ids = (torch.rand(40, FIELDS, generator=generator) ** 2 * ROWS).long()
    clicks = torch.rand(40, 1, generator=generator).round()
    return DataLoader(TensorDataset(ids, clicks), batch_size=8)


def loss_of(network: nn.Module, batch: Any) -> Tensor:
    ids, clicks = batch
    return nn.functional.binary_cross_entropy_with_logits(network(ids), clicks)


def train_by_hand(sparse: bool, watched: bool, epochs: int, accumulate: int = 1) -> Any:
    network = make_network(sparse)
    opt = make_optimizer(network)
    scheduler = ExponentialLR(opt, 0.5)
    if watched:
        freqsgd.watch(network, opt)
    batches = list(make_loader())
    for _ in range(epochs):
        for number, batch in enumerate(batches, 1):
            (loss_of(network, batch) / accumulate).backward()
            if number % accumulate == 0 or number == len(batches):
                opt.step()
                opt.zero_grad()
        scheduler.step()
    return network, opt


def make_module(lightning: ModuleType, sparse: bool, watched: bool) -> Any:
    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.network = make_network(sparse)

        def training_step(self, batch: Any, index: int) -> Tensor:
            return loss_of(self.network, batch)

        def validation_step(self, batch: Any, index: int) -> None:
            loss_of(self.network, batch)  # looks up tokens, which must not be counted

        def configure_optimizers(self) -> Any:
            opt = make_optimizer(self.network)
            if watched:
                freqsgd.watch(self, opt)
            return [opt], [ExponentialLR(opt, 0.5)]

    return Module()


def make_trainer(lightning: ModuleType, folder: Path, epochs: int, accumulate: int = 1) -> Any:
    return lightning.Trainer(
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
        max_epochs=epochs,
        accumulate_grad_batches=accumulate,
    )


def assert_same(module: Any, network: nn.Module, opt: CFSGD) -> None:
    (trained,) = module.trainer.optimizers
    assert torch.equal(trained.counts(module.network[0].weight), opt.counts(network[0].weight))
    assert trained.param_groups[0]["lr"] == opt.param_groups[0]["lr"]
    for param, other in zip(module.network.parameters(), network.parameters(), strict=True):
        assert torch.equal(param, other)


@pytest.mark.parametrize(
    ("sparse", "watched", "accumulate"),
    [(True, False, 1), (False, True, 1), (True, True, 2), (False, True, 2)],
)
def test_trainer_equals_a_loop_by_hand(
    tmp_path: Path, sparse: bool, watched: bool, accumulate: int
) -> None:
    lightning = pytest.importorskip("lightning")
    module = make_module(lightning, sparse, watched)
    trainer = make_trainer(lightning, tmp_path, epochs=2, accumulate=accumulate)
    trainer.fit(module, make_loader(), make_loader())

    network, opt = train_by_hand(sparse, watched, epochs=2, accumulate=accumulate)
    assert_same(module, network, opt)
    ids = torch.cat([ids.flatten() for ids, _ in make_loader()])
    expected = 2 * torch.bincount(ids, minlength=ROWS)
    assert torch.equal(opt.counts(network[0].weight), expected)
    assert opt.param_groups[0]["lr"] == pytest.approx(0.05)


@pytest.mark.parametrize(("sparse", "watched"), [(True, False), (False, True)])
def test_a_run_resumed_from_a_checkpoint_ends_like_one_that_never_stopped(
    tmp_path: Path, sparse: bool, watched: bool
) -> None:
    lightning = pytest.importorskip("lightning")
    first = make_trainer(lightning, tmp_path, epochs=1)
    first.fit(make_module(lightning, sparse, watched), make_loader(), make_loader())
    first.save_checkpoint(tmp_path / "half.ckpt")

    module = make_module(lightning, sparse, watched)
    with torch.no_grad():
        module.network[0].weight.fill_(9.0)  # all that matters is in the file
    second = make_trainer(lightning, tmp_path, epochs=2)
    second.fit(module, make_loader(), make_loader(), ckpt_path=tmp_path / "half.ckpt")
    assert_same(module, *train_by_hand(sparse, watched, epochs=2))
