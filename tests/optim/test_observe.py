"""Counting where the gradient cannot say what the batch held."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from freqsgd import CFSGD, FASGD, param_groups, watch
from tests.reference import MinibatchReference

FUSED = pytest.mark.parametrize("fused", [False, True])


def embedding(sparse, rows=6, dim=3, **options):
    return nn.Embedding(rows, dim, sparse=sparse, dtype=torch.float64, **options)


@FUSED
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weight_decay", [0.0, 0.2])
def test_gradient_accumulation_under_watch_equals_one_large_batch(fused, sparse, weight_decay):
    emb = embedding(sparse)
    reference = MinibatchReference(emb.weight.tolist(), lr=0.1, weight_decay=weight_decay)
    opt = CFSGD(emb.parameters(), 0.1, weight_decay=weight_decay, fused=fused)
    with watch(emb, opt):
        for _ in range(3):
            ids, slopes = torch.randint(0, 6, (8,)), torch.randn(8, 3, dtype=torch.float64)
            opt.zero_grad()
            for part in range(0, 8, 2):  # a second backward merges repeated ids
                (emb(ids[part : part + 2]) * slopes[part : part + 2]).sum().backward()
            opt.step()
            reference.step(ids.tolist(), slopes.tolist())
    assert opt.counts(emb.weight).tolist() == [reference.c[k] for k in range(6)]
    expected = torch.tensor(reference.theta, dtype=torch.float64)
    torch.testing.assert_close(emb.weight.detach(), expected)


@FUSED
@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_bags_with_padding_and_offsets_are_counted_without_padding(fused, mode):
    bag = nn.EmbeddingBag(6, 3, mode=mode, padding_idx=2, sparse=True, dtype=torch.float64)
    twin = nn.EmbeddingBag(6, 3, mode=mode, padding_idx=2, sparse=False, dtype=torch.float64)
    twin.weight.data.copy_(bag.weight)
    ours = CFSGD(bag.parameters(), 0.1, fused=fused)
    dense = CFSGD(twin.parameters(), 0.1, fused=fused)
    ids = torch.tensor([0, 2, 1, 1, 2, 5])
    with watch(twin, dense):
        for model, opt in ((bag, ours), (twin, dense)):
            model(input=ids, offsets=torch.tensor([0, 3])).pow(2).sum().backward()
            opt.step()
    assert ours.counts(bag.weight).tolist() == [1, 2, 0, 0, 0, 1]
    assert dense.counts(twin.weight).tolist() == [1, 2, 0, 0, 0, 1]
    torch.testing.assert_close(bag.weight, twin.weight)


def test_per_sample_weights_scale_gradients_but_not_counts():
    bag = nn.EmbeddingBag(4, 2, mode="sum", sparse=True)
    start = bag.weight.detach().clone()
    opt = CFSGD(bag.parameters(), 1.0)
    weights = torch.tensor([[0.5, 2.0]])
    bag(torch.tensor([[1, 3]]), per_sample_weights=weights).sum().backward()
    opt.step()
    assert opt.counts(bag.weight).tolist() == [0, 1, 0, 1]
    rate = 1 / 0.5**0.5  # each id is half of the ids seen
    torch.testing.assert_close(
        start - bag.weight.detach(),
        rate * torch.tensor([[0.0] * 2, [0.5] * 2, [0.0] * 2, [2.0] * 2]),
    )


def test_a_batch_of_padding_alone_changes_nothing_but_keeps_time():
    emb = embedding(True, padding_idx=0)
    start = emb.weight.detach().clone()
    opt = CFSGD(emb.parameters(), 0.1)
    emb(torch.tensor([0, 0])).sum().backward()
    opt.step()
    assert torch.equal(emb.weight, start)
    assert opt.counts(emb.weight).sum() == 0


def test_observations_replace_the_gradients_own_ids_and_are_used_once():
    emb = embedding(True)
    opt = CFSGD(emb.parameters(), 0.1)
    ids = torch.tensor([1, 1, 4])
    emb(ids).sum().backward()
    opt.observe(emb.weight, torch.tensor([1, 1, 1, 5]))
    opt.step()
    assert opt.counts(emb.weight).tolist() == [0, 3, 0, 0, 0, 1]
    opt.step()  # the same gradient again, nothing observed
    assert opt.counts(emb.weight).tolist() == [0, 5, 0, 0, 1, 1]


def test_observed_ids_may_be_overwritten_by_the_caller_before_the_step():
    emb = embedding(False)
    opt = CFSGD(emb.parameters(), 0.1)
    buffer = torch.tensor([1, 2])
    opt.observe(emb.weight, buffer)
    buffer.fill_(0)
    opt.step()
    assert opt.counts(emb.weight).tolist() == [0, 1, 1, 0, 0, 0]


def test_observations_outlive_zero_grad_and_count_without_a_gradient():
    emb = embedding(False)
    opt = CFSGD(emb.parameters(), 0.1)
    opt.observe(emb.weight, torch.tensor([3]))
    opt.zero_grad(set_to_none=True)
    opt.step()
    assert opt.counts(emb.weight).tolist() == [0, 0, 0, 1, 0, 0]


def test_explicit_samples_override_the_number_of_ids():
    emb = embedding(False)
    opt = CFSGD(emb.parameters(), 0.1, tokens_per_sample=2)
    opt.observe(emb.weight, torch.tensor([0, 0, 1]), samples=4)
    opt.step()
    assert opt.frequencies(emb.weight)[:3].tolist() == [0.5, 0.25, 0.0]
    opt.observe(emb.weight, torch.tensor([0, 1]))  # one sample of two ids
    opt.step()
    assert opt.frequencies(emb.weight)[:3].tolist() == [3 / 5, 2 / 5, 0.0]


def test_tokens_per_sample_makes_the_frequencies_of_each_field_sum_to_one():
    emb = embedding(True, rows=7)
    opt = CFSGD(emb.parameters(), 0.1, tokens_per_sample=2)
    first, second = torch.randint(0, 3, (50,)), torch.randint(3, 7, (50,))
    emb(torch.stack([first, second], 1)).sum().backward()
    opt.step()
    p = opt.frequencies(emb.weight)
    assert p[:3].sum().item() == pytest.approx(1)
    assert p[3:].sum().item() == pytest.approx(1)


@FUSED
def test_rows_with_a_gradient_that_were_never_observed_count_as_seen_once(fused):
    """The output table of a softmax: every row has a gradient, only targets are observed."""
    table = nn.Parameter(torch.randn(4, 3, dtype=torch.float64))
    start = table.detach().clone()
    opt = CFSGD([table], 0.1, fused=fused)
    table.grad = torch.randn(4, 3, dtype=torch.float64)
    opt.observe(table, torch.tensor([0, 0, 0, 1]))
    opt.step()
    p = torch.tensor([3, 1, 1, 1], dtype=torch.float64) / 4
    torch.testing.assert_close(start - table.detach(), 0.1 / p.sqrt()[:, None] * table.grad)
    torch.testing.assert_close(opt.rates(table), 0.1 / p.sqrt())


@FUSED
def test_a_dense_gradient_must_be_observed_in_every_step_if_only_as_nothing(fused):
    table = nn.Parameter(torch.randn(3, 2, dtype=torch.float64))
    opt = CFSGD([table], 0.1, fused=fused)
    opt.observe(table, torch.tensor([0, 0, 1]))
    opt.step()
    start, table.grad = table.detach().clone(), torch.zeros_like(table)
    opt.step()  # a gradient of zero says nothing
    assert torch.equal(table, start)
    table.grad = torch.ones_like(table)
    with pytest.raises(RuntimeError, match=r"optimizer.observe\(param, ids\)"):
        opt.step()
    opt.observe(table, torch.empty(0, dtype=torch.int64))
    opt.step()
    expected = 0.1 / torch.tensor([2 / 3, 1 / 3, 1 / 3], dtype=torch.float64).sqrt()
    torch.testing.assert_close((start - table.detach())[:, 0], expected)


def test_ordinary_weights_move_at_lr():
    layer = nn.Linear(3, 2)
    start = layer.weight.detach().clone()
    opt = CFSGD(layer.parameters(), 0.25)
    layer(torch.ones(1, 3)).sum().backward()
    opt.step()
    torch.testing.assert_close(layer.weight.detach(), start - 0.25)
    assert opt.rates(layer.weight).item() == 0.25


def test_a_table_by_group_option_must_be_observed_when_its_gradient_is_dense():
    model = nn.Sequential(embedding(False), nn.Linear(3, 1, dtype=torch.float64))
    opt = CFSGD(param_groups(model), 0.1)
    model(torch.tensor([1, 2])).sum().backward()
    start = model[0].weight.detach().clone()
    with pytest.raises(RuntimeError, match=r"freqsgd.watch\(model, optimizer\)"):
        opt.step()
    assert torch.equal(model[0].weight, start)
    opt.observe(model[0].weight, torch.tensor([1, 2]))
    opt.step()
    assert opt.counts(model[0].weight).tolist() == [0, 1, 1, 0, 0, 0]


def test_param_groups_separate_tables_from_the_rest():
    shared = nn.Embedding(5, 2)
    model = nn.ModuleDict(
        {"a": shared, "b": nn.EmbeddingBag(4, 2), "c": nn.Linear(2, 5), "d": shared}
    )
    model["c"].weight = shared.weight  # tied
    frozen = nn.Embedding(3, 2)
    frozen.weight.requires_grad_(False)
    model["e"] = frozen
    tables, rest = param_groups(model)
    assert [tuple(p.shape) for p in tables["params"]] == [(5, 2), (4, 2)]
    assert [tuple(p.shape) for p in rest["params"]] == [(5,)]


def test_watch_counts_only_training_with_gradients_and_stops_when_removed():
    emb = embedding(False)
    opt = CFSGD(emb.parameters(), 0.1)
    handle = watch(emb, opt)
    with torch.no_grad():
        emb(torch.tensor([0]))
    emb.eval()
    emb(torch.tensor([1]))
    emb.train()
    emb(torch.tensor([2, 2]))
    handle.remove()
    emb(torch.tensor([3]))
    opt.step()
    assert opt.counts(emb.weight).tolist() == [0, 0, 2, 0, 0, 0]


@pytest.mark.parametrize("options", [{}, {"halflife": 10.0}])
def test_watch_marks_tables_at_once(options):
    emb = embedding(False)
    opt = CFSGD(emb.parameters(), 0.1, **options)
    assert opt.rates(emb.weight).shape == ()
    handle = watch(emb, opt)
    assert opt.rates(emb.weight).tolist() == [0.1] * 6
    assert opt.counts(emb.weight).tolist() == [0] * 6
    handle.remove()
    emb(torch.tensor([1])).sum().backward()
    with pytest.raises(RuntimeError, match=r"freqsgd.watch\(model, optimizer\)"):
        opt.step()  # a table it remains


def test_watch_gives_counters_to_fasgd_only_where_it_counts():
    for decay, keys in ((0.0, {"frequencies"}), (0.1, {"frequencies", "counts"})):
        emb = embedding(False)
        opt = FASGD(emb.parameters(), 0.1, frequencies=torch.ones(6), weight_decay=decay)
        watch(emb, opt)
        assert keys == opt.state[emb.weight].keys() & {"frequencies", "counts"}


def test_watching_twice_or_watching_nothing_is_refused():
    emb = embedding(False)
    opt = CFSGD(emb.parameters(), 0.1)
    with watch(emb, opt), pytest.raises(ValueError, match="watched already"):
        watch(emb, opt)
    watch(emb, opt).remove()
    with pytest.raises(ValueError, match="is in the optimizer"):
        watch(nn.Linear(2, 2), opt)


@FUSED
def test_observed_rows_decay_though_the_gradient_is_empty(fused):
    table = nn.Parameter(torch.ones(3, 2, dtype=torch.float64))
    opt = CFSGD([table], 0.1, weight_decay=1.0, fused=fused)
    empty = torch.empty(1, 0, dtype=torch.int64), torch.empty(0, 2, dtype=torch.float64)
    table.grad = torch.sparse_coo_tensor(*empty, (3, 2), check_invariants=True)
    opt.observe(table, torch.tensor([1, 1, 2]))
    opt.step()
    p = torch.tensor([1.0, 2 / 3, 1 / 3], dtype=torch.float64)
    expected = 1 - 0.1 / p.sqrt()  # q / p = 1 in the first batch
    expected[0] = 1.0
    torch.testing.assert_close(table.detach()[:, 0], expected)


@FUSED
def test_a_row_that_was_never_observed_counts_as_one_present_sample_under_halflife(fused):
    table = nn.Parameter(torch.zeros(3, 2, dtype=torch.float64))
    opt = CFSGD([table], 1.0, halflife=5, fused=fused)
    table.grad = torch.ones_like(table)
    opt.observe(table, torch.zeros(50, dtype=torch.int64))
    opt.step()
    n = sum(2.0 ** (-t / 5) for t in range(50))  # in units of the latest sample
    torch.testing.assert_close(-table.detach()[1, 0].item(), n**0.5)
    torch.testing.assert_close(-table.detach()[:, 0], opt.rates(table))


def test_the_first_observation_may_be_empty():
    table = nn.Parameter(torch.zeros(2, 2))
    opt = CFSGD([table], 0.5)
    table.grad = torch.ones_like(table)
    opt.observe(table, torch.empty(0, dtype=torch.int64))
    opt.step()
    assert table.detach().tolist() == [[-0.5] * 2] * 2


def test_fasgd_uses_observations_for_weight_decay_on_dense_gradients():
    frequencies = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    table = nn.Parameter(torch.randn(3, 2, dtype=torch.float64))
    start = table.detach().clone()
    opt = FASGD([table], 0.1, frequencies=frequencies, weight_decay=0.1)
    table.grad = torch.zeros_like(table)
    with pytest.raises(RuntimeError, match="weight decay needs"):
        opt.step()
    opt.observe(table, torch.tensor([0, 2, 2, 2]))
    opt.step()
    q = torch.tensor([0.25, 0.0, 0.75], dtype=torch.float64)
    part = 0.1 / frequencies.sqrt() * 0.1 * q / frequencies
    torch.testing.assert_close(table.detach(), start * (1 - part)[:, None])
