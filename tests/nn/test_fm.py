from __future__ import annotations

import itertools
import math

import pytest
import torch

from freqsgd.nn import FM, DeepFM, fm

OPTIMIZERS = {
    "SGD": (torch.optim.SGD, True),
    "SGD with momentum": (lambda p, lr: torch.optim.SGD(p, lr, momentum=0.9), True),
    "Adagrad": (torch.optim.Adagrad, True),
    "Adam": (torch.optim.Adam, False),
    "AdamW": (torch.optim.AdamW, False),
    "RMSprop": (torch.optim.RMSprop, False),
    "LBFGS": (torch.optim.LBFGS, False),
}


def log_odds(model, tokens):
    """The formula, pair by pair."""
    rows = model.tokens.weight[tokens]
    z = model.bias + rows[:, -1].sum()
    return z + sum(a @ b for a, b in itertools.combinations(rows[:, :-1], 2))


def test_log_odds_are_bias_linear_weights_and_all_pairs():
    model = FM([4, 3, 5], dim=6)
    torch.nn.init.normal_(model.tokens.weight)
    ids = torch.tensor([[0, 0, 0], [3, 2, 4], [1, 2, 0]])
    expected = [log_odds(model, row + torch.tensor([0, 4, 7])) for row in ids]
    torch.testing.assert_close(model(ids), torch.stack(expected))


def test_each_token_of_a_bag_is_a_feature_of_its_own():
    model = FM([4, 6], dim=5, widths=[1, 3])
    torch.nn.init.normal_(model.tokens.weight)
    ids = torch.tensor([[1, 0, 5, -1], [3, -1, -1, -1], [0, 2, 2, 2]])
    present = [[1, 4, 9], [3], [0, 6, 6, 6]]
    expected = [log_odds(model, torch.tensor(tokens)) for tokens in present]
    torch.testing.assert_close(model(ids), torch.stack(expected))
    model(ids).sum().backward()
    assert set(model.tokens.weight.grad.coalesce().indices()[0].tolist()) == {0, 1, 3, 4, 6, 9}


def test_deepfm_adds_a_network_over_the_vectors_of_all_fields():
    model = DeepFM([4, 6], dim=5, hidden=(7,), widths=[1, 2]).eval()
    ids = torch.tensor([[1, 0, 5], [3, 2, -1]])
    w = model.tokens.weight
    vectors = torch.stack(
        [torch.cat([w[1, :5], w[4, :5] + w[9, :5]]), torch.cat([w[3, :5], w[6, :5]])]
    )
    expected = FM.forward(model, ids) + model.network(vectors)[:, 0]
    torch.testing.assert_close(model(ids), expected)
    kinds = [type(layer).__name__ for layer in model.network]
    assert kinds == ["Linear", "BatchNorm1d", "ReLU", "Dropout", "Linear"]


def test_vectors_start_xavier_uniform_and_linear_weights_at_zero():
    model = FM([900, 100], dim=16, init_scale=0.5)
    bound = 0.5 * math.sqrt(6 / (1000 + 16))
    vectors = model.tokens.weight[:, :-1]
    assert vectors.abs().max().item() <= bound
    assert vectors.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)
    assert not model.tokens.weight[:, -1].any()
    assert model.bias.item() == 0


@pytest.mark.parametrize("kind", [FM, DeepFM])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_torch_optimizers_lower_the_loss(name, kind):
    make, sparse = OPTIMIZERS[name]
    options = {"dropout": 0.0} if kind is DeepFM else {}
    model = kind([20, 10], dim=8, sparse=sparse, **options)
    ids = torch.stack([torch.randint(0, 20, (256,)), torch.randint(0, 10, (256,))], 1)
    labels = (ids[:, 0] < 10).float()
    optimizer = make(model.parameters(), lr=0.01)

    def closure():
        optimizer.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(ids), labels)
        loss.backward()
        return loss

    first = closure().item()
    for _ in range(60):
        optimizer.step(closure)
    assert closure().item() < first - 0.003


@pytest.mark.parametrize("ids", [[[0, 3]], [[-1, 0]]])
def test_an_id_of_another_field_is_refused(ids):
    with pytest.raises(IndexError, match="out of range for field"):
        FM([4, 3], dim=2)(torch.tensor(ids))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], 4), "at least 1"),
        (([3, 0], 4), "at least 1"),
        (([3], 0), "at least 1"),
    ],
)
def test_sizes_that_make_no_model_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        FM(*arguments)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"shape \(samples, 2\)"):
        FM([4, 3], dim=2)(torch.zeros(5, 3, dtype=torch.long))
    with pytest.raises(ValueError, match="widths"):
        FM([4, 3], dim=2, widths=[1])
    with pytest.raises(ValueError, match="hidden"):
        DeepFM([4, 3], dim=2, hidden=(0,))
    with pytest.raises(TypeError, match="integers"):
        FM([4, 3], dim=2)(torch.zeros(5, 2))


def test_rows_of_a_huge_table_can_be_drawn_without_the_others(monkeypatch):
    monkeypatch.setattr(fm, "_HUGE", 1000)
    monkeypatch.setattr(fm, "_BLOCK", 100)
    torch.manual_seed(5)
    table = FM([300, 250], dim=4).tokens.weight.detach()
    torch.manual_seed(5)
    seed = int(torch.randint(2**62, ()))
    for first, last in ((0, 550), (30, 270), (99, 100), (100, 200), (410, 550)):
        rows = torch.empty(last - first, 5)
        assert fm.draw_rows(rows, fm.start_bound([300, 250], 4, 1.0), first, seed) == seed
        rows[:, 4] = 0
        assert torch.equal(rows, table[first:last])
    assert len(table.unique(dim=0)) == 550
    assert table.abs().max() <= (6 / 554) ** 0.5
