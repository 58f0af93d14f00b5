"""Errors and warnings name a parameter as its model does, where that is known."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from freqsgd import CFSGD, FASGD, CFAdam, param_groups, watch

ROWS, DIM = 6, 3
NAMED = r"parameter 'user\.weight' of shape \(6, 3\)"
NAMELESS = r"a parameter of shape \(6, 3\)"
IDS = torch.tensor([1, 1, 4])


class Model(nn.Module):
    def __init__(self, sparse=True):
        super().__init__()
        self.user = nn.Embedding(ROWS, DIM, sparse=sparse)
        self.head = nn.Linear(DIM, 1)

    def forward(self, ids):
        return self.head(self.user(ids)).sum()


def cfsgd(params, **options):
    return CFSGD(params, 0.1, **options)


def watched(model, params, **options):
    opt = cfsgd(params, **options)
    watch(model, opt)
    return opt


def named_group(model, **options):
    return cfsgd([{"params": [("user.weight", model.user.weight)]}], **options)


WAYS = {
    "named_parameters": lambda model, **options: cfsgd(model.named_parameters(), **options),
    "named group": named_group,
    "model": cfsgd,
    "model of CFAdam": CFAdam,
    "watch": lambda model, **options: watched(model, model.parameters(), **options),
    "watch groups": lambda model, **options: watched(model, param_groups(model), **options),
}


every_way = pytest.mark.parametrize("build", WAYS.values(), ids=WAYS.keys())


def poison(model):
    model.user.weight.grad = None
    model(IDS).backward()
    model.user.weight.grad._values()[0, 0] = torch.nan


@every_way
@pytest.mark.parametrize("fused", [None, False])
def test_a_gradient_that_is_not_finite_is_named(build, fused):
    model = Model()
    opt = build(model, fused=fused)
    poison(model)
    with pytest.raises(ValueError, match=f"the gradient of {NAMED} holds NaN or infinity"):
        opt.step()


@every_way
def test_ids_and_tensors_that_do_not_fit_are_named(build):
    model = Model()
    opt = build(model)
    with pytest.raises(IndexError, match=f"id 9 is out of range for 6 rows of {NAMED}"):
        opt.observe(model.user.weight, torch.tensor([9]))
    with pytest.raises(ValueError, match=f"{NAMED} cannot change its columns: 3 before, 4 now"):
        opt.resize(model.user.weight, nn.Parameter(torch.zeros(ROWS, 4)))
    opt.observe(model.user.weight, IDS)
    opt.step()
    model.user.weight.data = torch.zeros(ROWS + 1, DIM)
    opt.observe(model.user.weight, IDS)
    with pytest.raises(
        RuntimeError, match=r"'user\.weight' of shape \(7, 3\) has counts for 6 rows"
    ):
        opt.step()


@pytest.mark.parametrize(("named", "expected"), [(True, NAMED), (False, NAMELESS)])
def test_warnings_name_the_parameter_or_give_its_shape(named, expected):
    def optimizer(model):
        return cfsgd(model.named_parameters() if named else model.parameters())

    model = Model(sparse=False)
    opt = optimizer(model)
    model(IDS).backward()
    with pytest.warns(UserWarning, match=f"not marked as a table: {expected}. It is updated"):
        opt.step()
    model = Model()
    opt = optimizer(model)
    for _ in range(2):
        model(IDS).backward()
    with pytest.warns(UserWarning, match=f"sparse gradient of {expected} was changed"):
        opt.step()


@pytest.mark.parametrize(("named", "expected"), [(True, NAMED), (False, NAMELESS)])
def test_errors_of_tables_name_the_parameter_or_give_its_shape(named, expected):
    model = Model(sparse=False)
    table = [("user.weight", model.user.weight)] if named else [model.user.weight]
    opt = cfsgd([{"params": table, "table": True}])
    model(IDS).backward()
    with pytest.raises(RuntimeError, match=f"the gradient of {expected}, a table, is dense"):
        opt.step()
    model.user.weight.grad = torch.ones(ROWS, DIM).to_sparse()  # of two sparse dimensions
    with pytest.raises(ValueError, match=f"{expected} has one of layout"):
        opt.step()
    model.bfloat16()
    with pytest.raises(ValueError, match=f"fused=True cannot serve {expected}: the weights are"):
        cfsgd([{"params": table, "table": True}], fused=True)
    with pytest.raises(ValueError, match=f"no frequencies for {expected}, a table"):
        FASGD([{"params": table, "table": True}], 0.1, frequencies=None)
    with pytest.raises(ValueError, match=f"each of 6 rows of {expected}, got shape"):
        FASGD(table, 0.1, frequencies=torch.ones(2))


@every_way
def test_saved_state_that_does_not_fit_is_named(build):
    model = Model()
    opt = build(model)
    opt.observe(model.user.weight, IDS)
    opt.step()
    state = opt.state_dict()
    (counters,) = [s for s in state["state"].values() if "counts" in s]
    counters["counts"] = counters["counts"][:-1]
    message = rf"cannot load the state of {NAMED}: saved counts of shape \(5,\) do not fit"
    with pytest.raises(ValueError, match=message):
        opt.load_state_dict(state)


def test_parameters_of_a_model_are_named_when_the_optimizer_is_built():
    model = Model()
    model.head.weight = nn.Parameter(torch.zeros(1, DIM, dtype=torch.complex64))
    with pytest.raises(TypeError, match=r"complex64 for parameter 'head\.weight' of shape \(1, 3"):
        CFAdam(model)


# ---- what becomes of names -------------------------------------------------------------------


def error_of(opt, model):
    poison(model)
    with pytest.raises(ValueError, match="holds NaN or infinity") as caught:
        opt.step()
    return str(caught.value)


def test_names_are_saved_and_loaded_as_torch_does():
    """State with names brings them; state without leaves those that are there."""
    model = Model()
    named, nameless = cfsgd(model.named_parameters()), cfsgd(model.parameters())
    torchs = torch.optim.SGD(model.named_parameters(), 0.1)
    saved = named.state_dict()
    assert [g["param_names"] for g in saved["param_groups"]] == [
        g["param_names"] for g in torchs.state_dict()["param_groups"]
    ]
    bare = nameless.state_dict()
    named.load_state_dict(bare)
    assert "'user.weight'" in error_of(named, model)
    nameless.load_state_dict(saved)
    assert "'user.weight'" in error_of(nameless, model)


@pytest.mark.parametrize("way", ["model", "watch", "model of CFAdam"])
def test_names_that_torch_does_not_keep_are_not_saved(way):
    """A saved state has the keys that it has without names, and later groups need no names."""
    model, other = Model(), Model()
    opt, plain = WAYS[way](model), WAYS[way](other)
    plain._names.clear()
    for state in (opt.state_dict(), plain.state_dict()):
        assert not any("param_names" in group for group in state["param_groups"])
    assert opt.state_dict().keys() == {"state", "param_groups"}
    opt.load_state_dict(plain.state_dict())
    assert "'user.weight'" in error_of(opt, model)
    opt.add_param_group({"params": [nn.Parameter(torch.zeros(2))]})


@every_way
@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))]
)
def test_copies_know_the_names(build, duplicate):
    model = Model()
    model, opt = duplicate((model, build(model)))
    assert "'user.weight'" in error_of(opt, model)


@pytest.mark.parametrize("way", ["named_parameters", "model", "watch"])
def test_a_resized_table_keeps_its_name(way):
    model = Model()
    opt = WAYS[way](model)
    old = model.user.weight
    model.user.weight = nn.Parameter(torch.zeros(ROWS + 1, DIM))
    opt.resize(old, model.user.weight)
    assert "'user.weight' of shape (7, 3)" in error_of(opt, model)
    gone = weakref.ref(old)
    del old
    gc.collect()
    assert gone() is None


@every_way
def test_names_do_not_keep_a_model_alive(build):
    model = Model()
    opt = build(model)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None
    assert opt.param_groups


def test_taking_over_from_adam_takes_the_names():
    model = Model(sparse=False)
    adam = torch.optim.Adam(model.named_parameters())
    opt = CFAdam.from_adam(adam, {model.user.weight: torch.ones(ROWS, dtype=torch.int64)})
    names = [name for group in opt.param_groups for name in group["param_names"]]
    params = [param for group in opt.param_groups for param in group["params"]]
    assert dict(zip(names, params, strict=True)) == dict(model.named_parameters())


def test_a_name_given_to_the_optimizer_comes_before_that_of_a_watched_part():
    model = Model()
    opt = cfsgd(model.named_parameters())
    watch(model.user, opt)
    assert "'user.weight'" in error_of(opt, model)


def test_names_are_those_of_the_model_that_ddp_wraps(tmp_path: Path):
    store = (tmp_path / "group").as_uri()
    dist.init_process_group("gloo", init_method=store, world_size=1, rank=0)
    try:
        model = Model(sparse=False)
        opt = cfsgd(model.parameters())
        watch(DistributedDataParallel(model), opt)
    finally:
        dist.destroy_process_group()
    with pytest.raises(IndexError, match=f"of {NAMED}"):
        opt.observe(model.user.weight, torch.tensor([9]))
