"""Warnings where a step would go wrong in silence, and none elsewhere."""

from __future__ import annotations

import copy
import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from freqsgd import CFSGD, FASGD, param_groups, watch

UNMARKED = "is not marked as a table"
MERGED = "can merge repeated ids"


@pytest.fixture(autouse=True)
def unexpected_warnings_fail():
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.filterwarnings("ignore", "Sparse invariant checks")
        yield


def step(opt, loss):
    opt.zero_grad()
    loss.backward()
    opt.step()


class Positions(nn.Embedding):
    """A subclass, as many libraries have."""


@pytest.mark.parametrize("make", [nn.Embedding, nn.EmbeddingBag, Positions])
@pytest.mark.parametrize("named", [False, True])
def test_a_dense_table_that_nobody_watches_is_told_once_and_by_its_remedy(make, named):
    model = nn.Sequential(make(6, 3), nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    opt = CFSGD(model.named_parameters() if named else model.parameters(), 0.1)
    ids = torch.tensor([[1, 1, 4]])
    with pytest.warns(UserWarning, match=UNMARKED) as caught:
        step(opt, model(ids).sum())
    (message,) = [str(warning.message) for warning in caught]
    assert "(6, 3)" in message
    assert "freqsgd.param_groups(model)" in message
    assert "freqsgd.watch(model, optimizer)" in message
    assert caught[0].filename == __file__
    for _ in range(3):
        step(opt, model(ids).sum())  # said once


def test_the_remedy_works():
    model = nn.Sequential(nn.Embedding(6, 3), nn.Linear(3, 1))
    opt = CFSGD(param_groups(model), 0.1)
    watch(model, opt)
    step(opt, model(torch.tensor([1, 1, 4])).sum())
    assert opt.counts(model[0].weight).tolist() == [0, 2, 0, 0, 1, 0]


def test_all_tables_of_a_step_are_named_by_one_warning():
    small, large = nn.Embedding(2, 3), nn.Embedding(50, 3)
    opt = CFSGD([small.weight, large.weight], 0.1)
    both = r"a parameter of shape \(2, 3\), a parameter of shape \(50, 3\)"
    with pytest.warns(UserWarning, match=f"{UNMARKED}: {both}") as caught:
        step(opt, (small(torch.tensor([0, 1])) * large(torch.tensor([7, 7]))).sum())
    assert len(caught) == 1


def test_a_table_that_lacks_no_row_in_its_first_batch_is_told():
    model = nn.Sequential(nn.Embedding(3, 2), nn.Linear(2, 1))
    opt = CFSGD(model.parameters(), 0.1)
    with pytest.warns(UserWarning, match=r"\(3, 2\)"):
        step(opt, model(torch.tensor([0, 1, 2])).sum())


@pytest.mark.parametrize("vector", [nn.LayerNorm(4), nn.Linear(1, 4)])
def test_a_table_whose_rows_are_all_touched_beside_a_vector_of_its_length_is_told(vector):
    model = nn.ModuleList([nn.Embedding(4, 3), vector])
    opt = CFSGD([model[0].weight, *list(vector.parameters())[-1:]], 0.1)
    with pytest.warns(UserWarning, match=UNMARKED):
        step(opt, model[0](torch.arange(4)).sum())


def test_power_0_is_sgd_which_needs_no_counts(recwarn):
    emb = nn.Embedding(6, 3)
    step(CFSGD(emb.parameters(), 0.1, power=0.0), emb(torch.tensor([1])).sum())
    assert [w for w in recwarn if issubclass(w.category, UserWarning)] == []


def test_a_bare_parameter_that_is_used_as_a_table_is_told_by_its_gradient():
    table = nn.Parameter(torch.randn(5000, 2))
    opt = CFSGD([table], 0.1)
    with pytest.warns(UserWarning, match=r"looks like a table: .* \(5000, 2\).*observe"):
        step(opt, F.embedding(torch.tensor([3, 4, 4]), table).sum())


def test_a_table_that_comes_later_is_told_when_it_comes():
    model = nn.ModuleList([nn.Embedding(6, 3), nn.Embedding(7, 3)])
    opt = CFSGD(model.parameters(), 0.1)
    ids = torch.tensor([2])
    with pytest.warns(UserWarning, match=r"\(6, 3\)"):
        step(opt, model[0](ids).sum())
    step(opt, model[0](ids).sum() + 0 * model[1](ids).sum())  # a gradient of zero says nothing
    with pytest.warns(UserWarning, match=r"\(7, 3\)"):
        step(opt, model[1](ids).sum())


def test_a_warning_that_is_turned_into_an_error_stops_every_step_before_it_writes():
    emb = nn.Embedding(6, 3)
    start = emb.weight.detach().clone()
    opt = CFSGD(emb.parameters(), 0.1)
    for _ in range(2):
        with pytest.raises(UserWarning, match=UNMARKED):
            step(opt, emb(torch.tensor([1])).sum())
    assert torch.equal(emb.weight, start)


def test_layers_with_dead_units_are_not_taken_for_tables():
    """Rows of dead units are zero in the gradient of the layer that feeds them."""
    layer = nn.Linear(3, 1500)
    with torch.no_grad():
        layer.bias[:1000] = -1e6
    opt = CFSGD(layer.parameters(), 0.1)
    step(opt, layer(torch.randn(8, 3)).relu().sum())
    assert (layer.weight.grad == 0).all(1).sum() >= 1000


def test_wide_layers_and_softmax_outputs_are_not_taken_for_tables():
    model = nn.Sequential(nn.Linear(3, 2000), nn.ReLU(), nn.Linear(2000, 3000))
    opt = CFSGD(model.parameters(), 0.1)
    step(opt, F.cross_entropy(model(torch.randn(8, 3)), torch.randint(3000, (8,))))


def test_fasgd_tells_of_tables_without_frequencies():
    model = nn.ModuleList([nn.Embedding(6, 3), nn.Embedding(4, 3)])
    given = {model[0].weight: torch.full((6,), 0.5)}
    opt = FASGD(model.parameters(), 0.1, frequencies=given)
    ids = torch.tensor([1, 2])
    with pytest.warns(UserWarning, match=r"of shape \(4, 3\)\..*freqsgd\.token_frequencies"):
        step(opt, (model[0](ids) * model[1](ids)).sum())


# ---- merged ids ------------------------------------------------------------------------------


def accumulate(emb, opt, batches):
    opt.zero_grad()
    for ids in batches:
        emb(torch.as_tensor(ids)).pow(2).sum().backward()
    opt.step()


TWO = [[1, 1, 2], [1, 1, 2]]  # torch merges these to three entries


@pytest.mark.parametrize("steps_before", [0, 2])
@pytest.mark.parametrize("make", [nn.Embedding, nn.EmbeddingBag])
def test_accumulated_sparse_gradients_are_told_once(make, steps_before):
    emb = make(6, 3, sparse=True)
    opt = CFSGD(emb.parameters(), 0.1)
    for _ in range(steps_before):
        accumulate(emb, opt, [[[1, 1, 2]]])
    with pytest.warns(UserWarning, match=f"second backward.*{MERGED}") as caught:
        accumulate(emb, opt, [[ids] for ids in TWO])
    assert caught[0].filename == __file__
    assert opt.counts(emb.weight).sum() < 3 * steps_before + 6, "torch keeps them apart by now"
    accumulate(emb, opt, [[ids] for ids in TWO])  # said once


def test_coalesced_gradients_are_told_once():
    emb = nn.Embedding(6, 3, sparse=True)
    opt = CFSGD(emb.parameters(), 0.1)
    for number in range(3):
        opt.zero_grad()
        emb(torch.tensor([1, 1, 2])).sum().backward()
        emb.weight.grad = emb.weight.grad.coalesce()
        if number == 0:
            with pytest.warns(UserWarning, match=f"is coalesced.*{MERGED}"):
                opt.step()
        else:
            opt.step()


@pytest.mark.parametrize("set_to_none", [True, False])
@pytest.mark.parametrize("ids", [[1, 1, 2], [3, 4], [5], [0, 0], [0]])
def test_one_backward_per_step_is_never_told(set_to_none, ids):
    emb = nn.Embedding(6, 3, sparse=True, padding_idx=0)
    opt = CFSGD(emb.parameters(), 0.1)
    for _ in range(3):
        opt.zero_grad(set_to_none=set_to_none)
        emb(torch.tensor(ids)).pow(2).sum().backward()
        opt.step()


def test_a_scaler_and_hooks_are_not_told():
    emb = nn.Embedding(6, 3, sparse=True)
    emb.weight.register_hook(lambda grad: grad * 2)
    opt = CFSGD(emb.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu")
    for _ in range(3):
        opt.zero_grad()
        scaler.scale(emb(torch.tensor([1, 1, 2])).pow(2).sum()).backward()
        scaler.step(opt)
        scaler.update()
    assert opt.counts(emb.weight).tolist() == [0, 6, 3, 0, 0, 0]


@pytest.mark.parametrize("options", [{"watched": True}, {"count": "batch"}])
def test_accumulation_that_is_counted_right_is_not_told(options):
    emb = nn.Embedding(6, 3, sparse=True)
    watched = options.pop("watched", False)
    opt = CFSGD(emb.parameters(), 0.1, **options)
    if watched:
        watch(emb, opt)
    accumulate(emb, opt, TWO)
    assert opt.counts(emb.weight).tolist() == [0, 4 if watched else 1, 2 if watched else 1, 0, 0, 0]


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_fasgd_tells_of_merged_ids_where_it_counts(weight_decay):
    emb = nn.Embedding(6, 3, sparse=True)
    p = torch.full((6,), 0.5)
    opt = FASGD(emb.parameters(), 0.1, frequencies=p, weight_decay=weight_decay)
    if weight_decay:
        with pytest.warns(UserWarning, match=MERGED):
            accumulate(emb, opt, TWO)
    else:
        accumulate(emb, opt, TWO)


def test_a_copied_optimizer_looks_for_itself():
    emb = nn.Embedding(6, 3)
    opt = CFSGD(emb.parameters(), 0.1)
    with pytest.warns(UserWarning, match=UNMARKED):
        step(opt, emb(torch.tensor([1])).sum())
    twin, twin_opt = copy.deepcopy((emb, opt))
    with pytest.warns(UserWarning, match=UNMARKED):
        step(twin_opt, twin(torch.tensor([1])).sum())
