"""Copies of a model and its optimizer go their own way."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import freqsgd
from freqsgd import CFSGD
from freqsgd.nn import CFEmbedding

from .runs import SETUPS, STEPS, Run, Setup, assert_identical


def through_pickle(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


ways = pytest.mark.parametrize("duplicate", [copy.deepcopy, through_pickle])


@ways
@pytest.mark.parametrize(
    "setup",
    [setup for setup in SETUPS.values() if setup.sparse],
    ids=[name for name, setup in SETUPS.items() if setup.sparse],
)
def test_a_copy_trains_like_the_original(setup: Setup, duplicate: Callable[[Any], Any]) -> None:
    run = setup.begin().train(range(3)).observe()
    model, opt = duplicate((run.model, run.opt))
    assert opt.param_groups[0]["params"][0] is model[0].weight
    other = Run(model, opt, watched=False)
    other.schedule.load_state_dict(run.schedule.state_dict())
    kept = copy.deepcopy(run.result())
    other.train(range(3, STEPS))
    assert_identical(run.result(), kept)
    run.train(range(3, STEPS))
    assert_identical(other.result(), run.result())


@ways
def test_a_copy_of_a_watched_model_is_watched_anew(duplicate: Callable[[Any], Any]) -> None:
    """It does not count into the optimizer of the original, and says that nobody counts."""
    model = nn.Sequential(nn.Embedding(6, 3), nn.Linear(3, 1))
    opt = CFSGD(model.parameters(), lr=0.1)
    freqsgd.watch(model, opt)
    model(torch.tensor([1, 1, 2])).sum().backward()
    opt.step()
    copied, copied_opt = duplicate((model, opt))
    before = copied[0].weight.detach().clone()
    copied_opt.zero_grad()
    copied(torch.tensor([1, 4])).sum().backward()
    with pytest.raises(RuntimeError, match=r"freqsgd.watch\(model, optimizer\)"):
        copied_opt.step()
    freqsgd.watch(copied, copied_opt)
    copied_opt.zero_grad()
    copied(torch.tensor([1, 4])).sum().backward()
    copied_opt.step()
    assert not torch.equal(copied[0].weight, before)
    assert copied_opt.counts(copied[0].weight).tolist() == [0, 3, 1, 0, 1, 0]
    assert opt.counts(model[0].weight).tolist() == [0, 2, 1, 0, 0, 0]


def test_a_copied_optimizer_alone_is_not_watched() -> None:
    table = nn.Embedding(6, 3)
    opt = CFSGD(table.parameters(), lr=0.1)
    freqsgd.watch(table, opt)
    twin = copy.deepcopy(opt)
    table(torch.tensor([1, 1, 2])).sum().backward()
    opt.step()
    twin.step()
    (param,) = twin.param_groups[0]["params"]
    assert twin.counts(param).tolist() == [0] * 6
    assert opt.counts(table.weight).tolist() == [0, 2, 1, 0, 0, 0]


@ways
def test_a_copy_of_an_embedding_that_updates_itself_trains_like_the_original(
    duplicate: Callable[[Any], Any],
) -> None:
    table = CFEmbedding([5, 4], 3, lr=0.3, weight_decay=0.1)
    ids = torch.tensor([[1, 3], [1, 3], [4, 0]])
    table(ids).pow(2).sum().backward()
    copied = duplicate(table)
    kept = copy.deepcopy(table.state_dict())
    copied(ids).pow(2).sum().backward()
    assert_identical(dict(table.state_dict()), dict(kept))
    table(ids).pow(2).sum().backward()
    assert_identical(dict(copied.state_dict()), dict(table.state_dict()))
    assert table.counts.tolist() == [0, 4, 0, 0, 2, 2, 0, 0, 4]
