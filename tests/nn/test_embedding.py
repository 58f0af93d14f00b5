"""CFEmbedding equals nn.Embedding(sparse=True) with its optimizer, and says what it cannot do."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
import torch
from torch import nn

import freqsgd
from freqsgd import CFSGD, CFAdam
from freqsgd.nn import CFEmbedding

OPTIONS = [
    {},
    {"power": 0.3, "max_lr": 0.4},
    {"weight_decay": 0.1, "weight_decay_power": 0.5},
    {"count": "batch"},
    {"count": "batch", "weight_decay": 0.1},
    {"rule": "adam"},
    {"rule": "adam", "clip": 0.5, "beta2": 0.9, "eps": 1e-3, "weight_decay": 0.1},
]
options_of_both = pytest.mark.parametrize("options", OPTIONS)


def twins(sizes, dim, dtype=torch.float32, **options):
    """A CFEmbedding with fields, and the tables of nn.Embedding that it must equal."""
    ours = CFEmbedding(sizes, dim, lr=0.3, dtype=dtype, **options)
    tables = [
        nn.Embedding(len(rows), dim, sparse=True, _weight=rows.clone(), dtype=dtype)
        for rows in ours.weight.split(sizes)
    ]
    options.pop("pooling", None)
    return ours, tables, optimizer_like([t.weight for t in tables], **options)


def optimizer_like(params, rule="sgd", beta2=0.999, **options):
    """The optimizer whose rule a CFEmbedding with these options has."""
    if rule == "adam":
        options.pop("tokens_per_sample", None)
        return CFAdam(params, 0.3, betas=(0.9, beta2), **options)
    return CFSGD(params, 0.3, **options)


@options_of_both
@pytest.mark.parametrize("pooling", [None, "sum"])
@pytest.mark.parametrize("dim", [1, 3, 16])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_fields_equal_one_sparse_table_each(options, pooling, dim, dtype):
    sizes = [5, 300, 1]
    ours, tables, opt = twins(sizes, dim, dtype, pooling=pooling, **options)
    for _ in range(4):
        ids = torch.stack([(torch.rand(700) ** 3 * n).long() for n in sizes], 1)
        expected = torch.stack([t(ids[:, f]) for f, t in enumerate(tables)], 1)
        if pooling:
            expected = expected.sum(1)
        slopes = torch.randn_like(expected)
        out = ours(ids)
        torch.testing.assert_close(out.detach(), expected.detach(), rtol=1e-6, atol=1e-6)
        (out * slopes).mean().backward()
        opt.zero_grad()
        (expected * slopes).mean().backward()
        opt.step()
    weights = torch.cat([t.weight.detach() for t in tables])
    torch.testing.assert_close(ours.weight, weights, rtol=1e-6, atol=1e-6)
    assert ours.counts.tolist() == torch.cat([opt.counts(t.weight) for t in tables]).tolist()


@options_of_both
def test_one_table_takes_ids_of_any_shape(options):
    options = options if "rule" in options else {**options, "tokens_per_sample": 3}
    ours = CFEmbedding(9, 4, lr=0.3, **options)
    table = nn.Embedding(9, 4, sparse=True, _weight=ours.weight.clone())
    opt = optimizer_like(table.parameters(), **options)
    for shape in ((), (6,), (2, 3), (2, 2, 3)):
        ids = torch.randint(0, 9, shape)
        assert ours(ids).shape == (*shape, 4)
        ours(ids).square().sum().backward()
        opt.zero_grad()
        table(ids).square().sum().backward()
        opt.step()
    torch.testing.assert_close(ours.weight, table.weight.detach(), rtol=1e-5, atol=1e-6)


@options_of_both
@pytest.mark.parametrize("padding", [None, -7])
def test_pooled_bags_equal_embedding_bag(options, padding):
    ours = CFEmbedding(7, 5, lr=0.3, pooling="sum", padding_idx=padding, **options)
    bag = nn.EmbeddingBag(
        7, 5, mode="sum", sparse=True, padding_idx=padding, _weight=ours.weight.clone()
    )
    opt = optimizer_like(bag.parameters(), **options)
    for _ in range(3):
        ids = torch.randint(0, 7, (8, 4))
        slopes = torch.randn(8, 5)
        (ours(ids) * slopes).sum().backward()
        opt.zero_grad()
        (bag(ids) * slopes).sum().backward()
        opt.step()
    torch.testing.assert_close(ours.weight, bag.weight.detach(), rtol=1e-5, atol=1e-6)
    if padding is not None:
        assert ours.weight[0].tolist() == [0.0] * 5
    assert ours.counts.tolist() == opt.counts(bag.weight).tolist()


def test_empty_batches_and_empty_bags_are_taken():
    for ours, shape in (
        (CFEmbedding([3, 4], 2, lr=0.1, weight_decay=0.1), (0, 2)),
        (CFEmbedding([3, 4], 2, lr=0.1, count="batch"), (0, 2)),
        (CFEmbedding(3, 2, lr=0.1, pooling="sum"), (5, 0)),
        (CFEmbedding(3, 2, lr=0.1, rule="adam"), (0,)),
        (CFEmbedding(3, 2, lr=0.1), (0,)),
    ):
        before = ours.weight.clone()
        out = ours(torch.empty(shape, dtype=torch.int64))
        assert out.sum() == 0
        out.sum().backward()
        assert torch.equal(ours.weight, before)
    assert ours(torch.tensor([1, 2, 2])).shape == (3, 2)


def test_the_callers_buffer_of_ids_may_be_filled_again_before_backward():
    ours = CFEmbedding(5, 2, lr=0.1)
    buffer = np.array([1, 2])
    loss = ours(torch.from_numpy(buffer)).sum()
    buffer[:] = 10**9
    loss.backward()
    assert ours.counts.tolist() == [0, 1, 1, 0, 0]


def test_buffers_of_another_shape_are_refused():
    ours = CFEmbedding(4, 2, lr=0.1)
    ours.weight = torch.zeros(3, 2)
    with pytest.raises(RuntimeError, match="must keep their 4 rows"):
        ours(torch.tensor([1]))
    ours = CFEmbedding(4, 2, lr=0.1)
    ours.counts = torch.zeros(4, 2, dtype=torch.int32)[:, 0]
    with pytest.raises(RuntimeError, match="must keep their 4 rows"):
        ours(torch.tensor([1]))


def test_int32_ids_and_strided_ids_are_taken():
    ours = CFEmbedding([3, 4], 2, lr=0.1)
    ids = torch.tensor([[0, 1, 2], [3, 0, 1]]).t()
    assert torch.equal(ours(ids.int()), ours(ids))
    assert torch.equal(ours(ids)[2, 1], ours.weight[3 + 1])


def test_nothing_changes_in_evaluation_or_without_gradients():
    ours = CFEmbedding(4, 2, lr=0.1)
    before = ours.weight.clone()
    with torch.no_grad():
        assert not ours(torch.tensor([1])).requires_grad
    ours.eval()
    assert not ours(torch.tensor([1])).requires_grad
    assert torch.equal(ours.weight, before)
    assert ours.counts.sum() == 0


def test_the_table_has_no_parameters_and_no_gradient():
    ours = CFEmbedding(4, 2, lr=0.1)
    ours(torch.tensor([1])).sum().backward()
    assert list(ours.parameters()) == []
    assert ours.weight.grad is None
    assert set(ours.state_dict()) == {"weight", "counts", "seen"}


@pytest.mark.parametrize("retain", [False, True])
def test_a_second_backward_through_one_graph_raises_and_changes_nothing(retain):
    ours = CFEmbedding(4, 2, lr=0.1)
    loss = ours(torch.tensor([1, 1])).sum()
    loss.backward(retain_graph=retain)
    before = ours.weight.clone()
    with pytest.raises(RuntimeError, match="second backward" if retain else "second time"):
        loss.backward()
    assert torch.equal(ours.weight, before)
    assert ours.counts.tolist() == [0, 2, 0, 0]


def test_follow_reads_the_learning_rate_at_each_backward():
    head = nn.Linear(2, 1)
    opt = torch.optim.SGD([{"params": [head.weight]}, {"params": [head.bias], "lr": 0.5}], lr=0.1)
    schedule = torch.optim.lr_scheduler.ExponentialLR(opt, 0.5)
    ours = CFEmbedding(1, 2, lr=99.0).follow(opt, group=1)
    for expected in (0.5, 0.25, 0.125):
        before = ours.weight.clone()
        ours(torch.tensor([0])).sum().backward()
        torch.testing.assert_close(before - ours.weight, torch.full((1, 2), expected))
        opt.step()
        schedule.step()


def test_follow_refuses_a_group_that_is_not_there():
    opt = torch.optim.SGD(nn.Linear(2, 1).parameters(), lr=0.1)
    with pytest.raises(IndexError):
        CFEmbedding(1, 2, lr=0.1).follow(opt, group=1)


def test_a_copy_goes_on_by_itself_and_follows_nobody():
    opt = torch.optim.SGD(nn.Linear(2, 1).parameters(), lr=0.1)
    ours = CFEmbedding(3, 2, lr=0.25).follow(opt)
    for twin in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        before = ours.weight.clone()
        start = twin.weight.clone()
        twin(torch.tensor([1])).sum().backward()
        torch.testing.assert_close(start[1] - twin.weight[1], torch.full((2,), 0.25))
        assert torch.equal(ours.weight, before)


@pytest.mark.parametrize("rule", ["sgd", "adam"])
def test_a_state_dict_goes_on_with_the_same_bits_and_exact_counts(rule):
    ours, twin = (CFEmbedding([3, 2], 2, lr=0.1, rule=rule) for _ in range(2))
    ours.counts[1], ours.seen[:] = 2**24 + 1, 2**25
    ours(torch.tensor([[1, 0]])).sum().backward()
    twin.load_state_dict(ours.state_dict())
    for module in (ours, twin):
        module(torch.tensor([[1, 1], [1, 0]])).square().sum().backward()
    assert torch.equal(ours.weight, twin.weight)
    assert ours.counts.tolist() == twin.counts.tolist()
    assert twin.counts[1] == 2**24 + 4


def test_counts_become_int64_in_time_and_load_into_a_fresh_module():
    ours = CFEmbedding(2, 2, lr=0.1)
    ours.counts[0], ours.seen[:] = 2**31 - 2, 2**31 - 2
    ours(torch.tensor([0, 0, 0])).sum().backward()
    assert ours.counts.tolist() == [2**31 + 1, 0]
    twin = CFEmbedding(2, 2, lr=0.1)
    twin.load_state_dict(ours.state_dict())
    assert twin.counts.tolist() == [2**31 + 1, 0]


def test_a_damaged_state_dict_is_refused():
    ours = CFEmbedding(3, 2, lr=0.1)
    state = ours.state_dict()
    for name, value in (("counts", torch.tensor([1, -1, 0])), ("counts", torch.tensor([1, 2]))):
        with pytest.raises((ValueError, RuntimeError), match="saved counts"):
            ours.load_state_dict({**state, name: value})
    assert ours.counts.tolist() == [0, 0, 0]


@pytest.mark.parametrize("rule", ["sgd", "adam"])
@pytest.mark.parametrize("poison", [math.nan, math.inf])
def test_a_gradient_that_is_not_finite_raises_before_anything_is_written(poison, rule):
    ours = CFEmbedding([4, 4], 2, lr=0.1, weight_decay=0.1, rule=rule)
    before = ours.weight.clone()
    slopes = torch.ones(3, 2, 2)
    slopes[2, 1, 1] = poison
    with pytest.raises(ValueError, match="NaN or infinity"):
        (ours(torch.ones(3, 2, dtype=torch.int64)) * slopes).sum().backward()
    assert torch.equal(ours.weight, before)
    assert ours.counts.sum() == 0


def test_bad_ids_name_their_field():
    ours = CFEmbedding([4, 9], 2, lr=0.1)
    with pytest.raises(IndexError, match="id 9 of field 1 is out of range for 9 rows"):
        ours(torch.tensor([[0, 0], [3, 9]]))
    with pytest.raises(IndexError, match="id -1 of field 0"):
        ours(torch.tensor([[-1, 0]]))
    with pytest.raises(ValueError, match="an axis of 2 fields"):
        ours(torch.tensor([1, 2, 3]))
    with pytest.raises(TypeError, match="integers"):
        ours(torch.ones(1, 2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_embeddings": 0}, "must be >= 1"),
        ({"num_embeddings": []}, "must be >= 1"),
        ({"embedding_dim": 0}, "must be >= 1"),
        ({"lr": -1.0}, "lr must be"),
        ({"lr": math.nan}, "lr must be"),
        ({"power": 2.0}, "power must lie in"),
        ({"pooling": "mean"}, "pooling must be None or 'sum'"),
        ({"count": "x"}, "count must be"),
        ({"padding_idx": 4}, "out of range"),
        ({"num_embeddings": [4, 4], "padding_idx": 0}, "single table"),
        ({"num_embeddings": [4, 4], "tokens_per_sample": 2}, "single table"),
        ({"tokens_per_sample": 0}, "tokens_per_sample"),
        ({"rule": "adagrad"}, "rule must be 'sgd' or 'adam'"),
        ({"rule": "adam", "count": "batch"}, "rule='adam' has no option 'count'"),
        ({"rule": "adam", "max_lr": 1.0}, "rule='adam' has no option 'max_lr'"),
        ({"beta2": 0.9}, "rule='sgd' has no option 'beta2'"),
        ({"rule": "adam", "beta2": 1.0}, "beta2 must lie in"),
    ],
)
def test_senseless_options_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        CFEmbedding(**{"num_embeddings": 4, "embedding_dim": 2, "lr": 0.1, **arguments})


def test_half_precision_weights_are_refused():
    ours = CFEmbedding(4, 2, lr=0.1).half()
    with pytest.raises(RuntimeError, match="float32 or float64"):
        ours(torch.tensor([1]))


def test_a_model_with_a_head_learns():
    sizes = [50, 40]
    ours = CFEmbedding(sizes, 8, lr=0.5, pooling="sum")
    head = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    opt = torch.optim.SGD(head.parameters(), lr=0.1)
    losses = []
    for _ in range(200):
        ids = torch.stack([torch.randint(0, n, (64,)) for n in sizes], 1)
        loss = (head(ours(ids))[:, 0] - ids.float().sin().sum(1)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    assert sum(losses[-20:]) < 0.3 * sum(losses[:20])


def test_the_package_finds_it_lazily():
    assert freqsgd.nn.CFEmbedding is CFEmbedding


@pytest.mark.parametrize("options", [{"lr": "0.1"}, {"power": "0.5"}, {"lr": True}])
def test_options_that_only_look_like_numbers_are_refused(options):
    with pytest.raises(ValueError, match="must be a number"):
        CFEmbedding(4, 2, **{"lr": 0.1, **options})
