"""Activations that are computed a second time are not counted a second time."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import freqsgd
from freqsgd import CFSGD
from tests.integration.slow import SlowTable

ROWS, DIM, LR = 10, 4, 0.3


class Model(nn.Module):
    def __init__(self, sparse: bool, reentrant: bool | None) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.table = nn.Embedding(ROWS, DIM, sparse=sparse, padding_idx=9)
        self.head = nn.Linear(DIM, 1)
        self.reentrant = reentrant
        self.runs = 0

    def block(self, ids: Tensor, scale: Tensor) -> Tensor:
        self.runs += 1
        return (self.table(ids) * scale).tanh()

    def forward(self, ids: Tensor) -> Tensor:
        # reentrant checkpoints need an input that requires a gradient
        scale = torch.ones((), requires_grad=True)
        if self.reentrant is None:
            hidden = self.block(ids, scale)
        else:
            hidden = checkpoint(self.block, ids, scale, use_reentrant=self.reentrant)
        return self.head(hidden).pow(2).mean()


@pytest.mark.parametrize(
    ("reentrant", "sparse"),
    [(False, True), (False, False), (True, True)],
    ids=["sparse", "dense", "reentrant-sparse"],
)
def test_a_checkpointed_table_counts_each_id_once(reentrant: bool, sparse: bool) -> None:
    model, plain = Model(sparse, reentrant), Model(sparse, None)
    opt = CFSGD(model.parameters(), LR)
    freqsgd.watch(model, opt)
    slow = SlowTable(plain.table.weight, LR)
    for ids in (torch.tensor([3, 3, 9, 1]), torch.tensor([1, 1, 1, 7])):
        model(ids).backward()
        plain(ids).backward()
        slow.step(plain.table.weight.grad, ids[ids != 9])
        opt.step()
        slow.same_as(model.table.weight, opt.counts(model.table.weight))
        plain.load_state_dict(model.state_dict())
        plain.zero_grad()
        opt.zero_grad()
    assert model.runs == 4, "the block ran again in each backward pass"


def test_a_checkpointed_table_that_is_looked_up_twice_counts_both() -> None:
    """One lookup inside of the checkpoint, one outside."""
    model = Model(sparse=False, reentrant=False)
    opt = CFSGD(model.parameters(), LR)
    freqsgd.watch(model, opt)
    (model(torch.tensor([3, 3])) + model.table(torch.tensor([3, 5])).sum()).backward()
    opt.step()
    assert opt.counts(model.table.weight).tolist() == [0, 0, 0, 3, 0, 1, 0, 0, 0, 0]


def test_a_reentrant_checkpoint_hides_a_dense_table_which_is_said() -> None:
    """Its first pass runs without gradients, so that watch cannot tell it from evaluation."""
    model = Model(sparse=False, reentrant=True)
    opt = CFSGD(model.parameters(), LR)
    freqsgd.watch(model, opt)
    model(torch.tensor([3, 3])).backward()
    with pytest.raises(RuntimeError, match=r"optimizer.observe\(param, ids\)"):
        opt.step()
    opt.observe(model.table.weight, torch.tensor([3, 3]))
    opt.step()
    assert opt.counts(model.table.weight)[3] == 2
