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
from tests.integration.runs import SETUPS, STEPS, Run, Setup, assert_identical


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


def watched(sparse: bool = False) -> tuple[nn.Sequential, CFSGD]:
    model = nn.Sequential(nn.Embedding(6, 3, sparse=sparse), nn.Linear(3, 1))
    opt = CFSGD(model.parameters(), lr=0.1)
    freqsgd.watch(model, opt)
    return model, opt


def learn(model: nn.Module, opt: CFSGD, ids: list[int]) -> None:
    opt.zero_grad()
    for part in (ids[:-2], ids[-2:]):
        model(torch.tensor(part)).pow(2).sum().backward()
    opt.step()


@ways
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("steps", [0, 1])
@pytest.mark.parametrize("model_first", [True, False])
@pytest.mark.parametrize("times", [1, 2])
def test_model_and_optimizer_that_are_copied_together_go_on_counting(
    duplicate: Callable[[Any], Any], sparse: bool, steps: int, model_first: bool, times: int
) -> None:
    model, opt = watched(sparse)
    for _ in range(steps):
        learn(model, opt, [1, 1, 2, 2])
    copied, copied_opt = model, opt
    for _ in range(times):
        if model_first:
            copied, copied_opt = duplicate((copied, copied_opt))
        else:
            copied_opt, copied = duplicate((copied_opt, copied))
    weights = copy.deepcopy(model.state_dict())
    learn(copied, copied_opt, [1, 1, 1, 4])
    before = [0, 2 * steps, 2 * steps, 0, 0, 0]
    assert opt.counts(model[0].weight).tolist() == before
    assert "observed" not in opt.state[model[0].weight]
    assert_identical(dict(model.state_dict()), dict(weights))
    counts = copied_opt.counts(copied[0].weight) - torch.tensor(before)
    assert counts.tolist() == [0, 3, 0, 0, 1, 0]
    learn(model, opt, [1, 1, 1, 4])
    assert_identical(dict(copied.state_dict()), dict(model.state_dict()))
    assert torch.equal(opt.counts(model[0].weight), copied_opt.counts(copied[0].weight))


@ways
def test_a_copied_pair_may_be_watched_anew_and_counts_once(
    duplicate: Callable[[Any], Any],
) -> None:
    copied, copied_opt = duplicate(watched())
    with freqsgd.watch(copied, copied_opt):
        with pytest.raises(ValueError, match="watched already"):
            freqsgd.watch(copied, copied_opt)
        learn(copied, copied_opt, [1, 1, 2, 5])
    assert copied_opt.counts(copied[0].weight).tolist() == [0, 2, 1, 0, 0, 1]
    with pytest.raises(RuntimeError, match=r"freqsgd.watch\(model, optimizer\)"):
        learn(copied, copied_opt, [1, 1, 2, 5])


@ways
def test_a_handle_that_is_copied_too_ends_the_copied_watch(duplicate: Callable[[Any], Any]) -> None:
    model = nn.Embedding(6, 3)
    opt = CFSGD(model.parameters(), lr=0.1)
    handle = freqsgd.watch(model, opt)
    copied, copied_opt, copied_handle = duplicate((model, opt, handle))
    copied_handle.remove()
    for ours in (copied, model):
        ours(torch.tensor([3]))
    copied_opt.step()
    opt.step()
    assert copied_opt.counts(copied.weight).tolist() == [0] * 6
    assert opt.counts(model.weight).tolist() == [0, 0, 0, 1, 0, 0]


@ways
def test_a_model_that_is_copied_alone_counts_for_nobody(duplicate: Callable[[Any], Any]) -> None:
    """Nor does it count for a copy of the optimizer that was made by itself."""
    model, opt = watched()
    copied, copied_opt = duplicate(model), duplicate(opt)
    copied(torch.tensor([1, 1, 2])).sum().backward()
    for ours in (opt, copied_opt):
        ours.step()
        assert ours.counts(ours.param_groups[0]["params"][0]).tolist() == [0] * 6
    own = CFSGD(copied.parameters(), lr=0.1)
    freqsgd.watch(copied, own)
    learn(copied, own, [1, 1, 2, 5])
    assert own.counts(copied[0].weight).tolist() == [0, 2, 1, 0, 0, 1]
    assert opt.counts(model[0].weight).tolist() == [0] * 6


def test_a_copied_optimizer_knows_its_tables() -> None:
    twin = copy.deepcopy(watched()[1])
    (param, *_) = twin.param_groups[0]["params"]
    assert twin.rates(param).shape == (6,)
    param.grad = torch.ones_like(param)
    with pytest.raises(RuntimeError, match=r"freqsgd.watch\(model, optimizer\)"):
        twin.step()


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
