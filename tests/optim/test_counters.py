"""Counters: exact beyond 2^24 and 2^31, kept when tables grow, set from elsewhere."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from freqsgd import CFSGD, FASGD

UNIFORM = torch.full((3,), 0.5)


def step(emb, opt, ids):
    opt.zero_grad()
    emb(torch.tensor(ids)).sum().backward()
    opt.step()


@pytest.mark.parametrize("fused", [False, True])
def test_counters_are_int32_and_become_int64_before_one_could_overflow(fused):
    emb = nn.Embedding(3, 2, sparse=True)
    opt = CFSGD(emb.parameters(), 0.1, fused=fused)
    near = 2**31 - 3
    opt.set_counts(emb.weight, torch.tensor([near, 0, 0]), samples=near)
    assert opt.state[emb.weight]["counts"].dtype == torch.int32
    step(emb, opt, [0, 0])
    assert opt.state[emb.weight]["counts"].dtype == torch.int32
    assert opt.counts(emb.weight)[0] == 2**31 - 1
    step(emb, opt, [0, 0, 1])
    assert opt.state[emb.weight]["counts"].dtype == torch.int64
    assert opt.counts(emb.weight).tolist() == [2**31 + 1, 1, 0]
    assert opt.counts(emb.weight).dtype == torch.int64
    assert opt.frequencies(emb.weight)[1].item() == pytest.approx(1 / (2**31 + 2), rel=1e-12)


@pytest.mark.parametrize("fused", [False, True])
def test_single_occurrences_count_beyond_the_integers_of_float32(fused):
    emb = nn.Embedding(2, 2, sparse=True)
    opt = CFSGD(emb.parameters(), 0.1, fused=fused)
    opt.set_counts(emb.weight, torch.tensor([2**24, 0]), samples=2**24)
    for _ in range(3):
        step(emb, opt, [0])
    assert opt.counts(emb.weight)[0] == 2**24 + 3


def test_state_is_one_int32_per_row():
    emb = nn.Embedding(1000, 64, sparse=True)
    opt = CFSGD(emb.parameters(), 0.1)
    step(emb, opt, [1, 2, 3])
    tensors = [v for v in opt.state[emb.weight].values() if isinstance(v, torch.Tensor)]
    assert sum(t.nbytes for t in tensors) == 4 * 1000


@pytest.mark.parametrize("replaced", [False, True])
def test_a_table_that_grows_keeps_its_counts(replaced):
    emb = nn.Embedding(3, 2, sparse=True)
    opt = CFSGD([{"params": emb.parameters()}, {"params": [nn.Parameter(torch.zeros(2))]}], 0.1)
    step(emb, opt, [0, 2, 2])
    old = emb.weight
    grown = torch.cat([old.detach(), torch.zeros(2, 2)])
    if replaced:
        emb.weight = nn.Parameter(grown)
    else:
        emb.weight.data = grown
        emb.weight.grad = None
        emb(torch.tensor([4])).sum().backward()
        with pytest.raises(RuntimeError, match=r"optimizer.resize\(param\)"):
            opt.step()
    emb.num_embeddings = 5
    opt.resize(old, emb.weight)
    step(emb, opt, [4, 2])
    assert opt.counts(emb.weight).tolist() == [1, 0, 3, 0, 1]
    assert opt.frequencies(emb.weight)[2].item() == pytest.approx(3 / 5)
    assert len(opt.state_dict()["state"]) == 1


def test_a_table_cannot_shrink():
    emb = nn.Embedding(3, 2, sparse=True)
    opt = CFSGD(emb.parameters(), 0.1)
    step(emb, opt, [0])
    with pytest.raises(ValueError, match="cannot shrink"):
        opt.resize(emb.weight, nn.Parameter(torch.zeros(2, 2)))
    assert opt.counts(emb.weight).tolist() == [1, 0, 0]


def test_fasgd_asks_for_the_frequencies_of_a_grown_table():
    emb = nn.Embedding(2, 2, sparse=True)
    opt = FASGD(emb.parameters(), 0.1, frequencies=torch.tensor([0.5, 0.5]))
    old = emb.weight
    emb.weight = nn.Parameter(torch.zeros(3, 2))
    opt.resize(old, emb.weight)
    emb(torch.tensor([2])).sum().backward()
    with pytest.raises(RuntimeError, match="set_frequencies"):
        opt.step()
    opt.set_frequencies(emb.weight, torch.tensor([0.5, 0.25, 0.25]))
    opt.step()
    torch.testing.assert_close(emb.weight[2].detach(), torch.tensor([-0.2, -0.2]))


def test_set_counts_starts_warm_and_refuses_nonsense():
    emb = nn.Embedding(3, 2, sparse=True)
    opt = CFSGD(emb.parameters(), 1.0)
    opt.set_counts(emb.weight, torch.tensor([8, 1, 0]), samples=9)
    step(emb, opt, [0])
    assert opt.frequencies(emb.weight).tolist() == pytest.approx([0.9, 0.1, 0.0])
    for counts, samples, message in (
        (torch.tensor([1.0, 2.0, 3.0]), 3, "integers"),
        (torch.tensor([1, 2]), 3, "shape"),
        (torch.tensor([1, -2, 3]), 3, ">= 0, got -2"),
        (torch.tensor([1, 2, 3]), 0, "samples must be an integer, at least 1"),
        (torch.tensor([1, 2, 3]), 2.5, "samples must be an integer"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            opt.set_counts(emb.weight, counts, samples)
    assert opt.counts(emb.weight).tolist() == [9, 1, 0]


def test_a_refused_set_counts_leaves_no_trace():
    layer = nn.Linear(2, 3)
    opt = CFSGD(layer.parameters(), 0.1)
    for param, counts in ((layer.weight, torch.ones(3)), (layer.bias, torch.tensor([1, 1, 1]))):
        with pytest.raises((TypeError, ValueError)):
            opt.set_counts(param, counts, 3)
    layer(torch.ones(1, 2)).sum().backward()
    opt.step()
    assert not opt.state_dict()["state"]


def test_counts_with_halflife_are_worth_half_after_that_many_samples():
    emb = nn.Embedding(2, 2, sparse=True)
    opt = CFSGD(emb.parameters(), 0.1, halflife=100)
    step(emb, opt, [0] * 2000)
    steady = opt.counts(emb.weight)[0].item()
    for _ in range(10):
        step(emb, opt, [1] * 10)
    assert opt.counts(emb.weight)[0].item() == pytest.approx(steady / 2, rel=0.02)
    assert opt.frequencies(emb.weight)[0].item() == pytest.approx(0.5, abs=0.01)


def test_a_halflife_far_shorter_than_a_batch_is_refused_before_anything_is_counted():
    emb = nn.Embedding(2, 2, sparse=True)
    opt = CFSGD(emb.parameters(), 0.1, halflife=0.01)
    emb(torch.zeros(100, dtype=torch.int64)).sum().backward()
    other = nn.Embedding(2, 2, sparse=True)
    opt.add_param_group({"params": other.parameters(), "halflife": None})
    opt.param_groups.reverse()
    other(torch.tensor([1])).sum().backward()
    with pytest.raises(ValueError, match="too short for a step of 100 samples"):
        opt.step()
    assert opt.counts(other.weight).sum() == 0
    assert opt.state[other.weight].get("units", 0) == 0


def test_a_saved_state_moves_to_the_device_of_its_table():
    emb = nn.Embedding(3, 2, sparse=True)
    opt = CFSGD(emb.parameters(), 0.1)
    step(emb, opt, [0, 1])
    elsewhere = CFSGD([nn.Parameter(torch.empty(3, 2, device="meta"))], 0.1)
    elsewhere.load_state_dict(opt.state_dict())
    counts = elsewhere.counts(elsewhere.param_groups[0]["params"][0])
    assert counts.device.type == "meta"
    assert counts.dtype == torch.int64


def fasgd(params, frequencies=UNIFORM):
    return FASGD(params, 0.1, frequencies=frequencies)


@pytest.mark.parametrize("stepped", [False, True])
@pytest.mark.parametrize(
    ("make", "found"),
    [
        (torch.optim.SGD, "momentum"),
        (torch.optim.Adam, "betas"),
        (torch.optim.Adagrad, "lr_decay"),
        (fasgd, "lack .*count"),
        (lambda params: fasgd(params, None), "lack .*count"),
    ],
    ids=["sgd", "adam", "adagrad", "fasgd", "fasgd without tables"],
)
def test_the_state_of_another_optimizer_is_refused(make, found, stepped):
    """Before its first step, its groups alone tell."""
    table = nn.Parameter(torch.randn(3, 2))
    other = make([table])
    if stepped:
        table.grad = torch.ones(3, 2)
        other.step()
    opt = CFSGD([table], 0.1)
    kept = copy.deepcopy(opt.state_dict())
    with pytest.raises(ValueError, match=f"not the state of a CFSGD: .*{found}.*that saved it"):
        opt.load_state_dict(other.state_dict())
    assert opt.state_dict() == kept


def test_state_that_is_not_of_the_options_is_refused():
    opt = CFSGD([nn.Parameter(torch.randn(3, 2))], 0.1)
    state = opt.state_dict()
    with pytest.raises(ValueError, match=r"not the state of a CFSGD: it holds .*exp_avg"):
        opt.load_state_dict({**state, "state": {0: {"exp_avg": torch.zeros(3, 2)}}})
    state["param_groups"][0]["fused"] = "yes"
    with pytest.raises(ValueError, match="fused must be None, True or False, got 'yes'"):
        opt.load_state_dict(state)
    with pytest.raises(ValueError, match=r"not the state of a CFSGD: it has no .*param_groups"):
        opt.load_state_dict(nn.Linear(2, 1).state_dict())


def test_fasgd_refuses_state_without_its_frequencies():
    table = nn.Parameter(torch.randn(3, 2))
    opt = fasgd([table])
    with pytest.raises(ValueError, match=r"not the state of a FASGD: its groups hold .*count"):
        opt.load_state_dict(CFSGD([table], 0.1).state_dict())
    with pytest.raises(ValueError, match=r"shape \(3, 2\): .* it has no frequencies for a table"):
        opt.load_state_dict({**opt.state_dict(), "state": {0: {}}})
    assert opt.frequencies(table).tolist() == UNIFORM.tolist()
    with pytest.raises(ValueError, match=r"not the state of a FASGD: its groups lack .*momentum"):
        opt.load_state_dict(torch.optim.SGD([table], 0.1).state_dict())


def test_unknown_parameters_have_no_counts():
    opt = CFSGD([nn.Parameter(torch.zeros(2, 2))], 0.1)
    with pytest.raises(ValueError, match="not in this optimizer"):
        opt.counts(torch.zeros(2, 2))
