"""The engine where a row counts once per batch that holds it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from freqsgd import CFSGD
from freqsgd.nn import FM, DeepFM
from freqsgd.optimizers import Rule
from freqsgd.recommender.engine import engine_for
from freqsgd.recommender.memory import memory_plan
from freqsgd.recommender.settings import Settings
from freqsgd.tables.fields import Field
from tests.recommender.slow import SlowFM
from tests.recommender.test_engine import copy_of, samples, train

SIZES, WIDTHS = [40, 12, 9], [1, 4, 2]  # tokens come several times in a sample, and in a batch
RULES = {
    "plain": {},
    "own rate": {"dense_lr": 0.2},
    "cap": {"max_lr": 0.8},
    "decay": {"weight_decay": 0.05},
    "decay by batch": {"weight_decay": 0.05, "weight_decay_power": 0.0, "dense_lr": 0.2},
}


def rule_of(**options):
    return Rule("cfsgd", 0.5, count="batch", **options)


def model_of(kind, dim=10, sizes=SIZES, widths=WIDTHS):
    options = {"dropout": 0.0} if kind is DeepFM else {}
    return kind(sizes, dim, widths=widths, init_scale=2.0, **options)


def by_autograd(model, rule, ids, labels, batch, lrs):
    """A step per rate; tables and other weights are groups of their own."""
    tables = [model.tokens.weight]
    others = [each for name, each in model.named_parameters() if name != "tokens.weight"]
    law = {"weight_decay": rule.weight_decay, "max_lr": rule.max_lr}
    law["weight_decay_power"] = rule.weight_decay_power
    optimizer = CFSGD([{"params": tables}, {"params": others}], rule.lr, count="batch", **law)
    for step, lr in enumerate(lrs):
        rows = slice(step * batch, (step + 1) * batch)
        target = torch.from_numpy(labels[rows]).float()
        optimizer.zero_grad()
        binary_cross_entropy_with_logits(model(torch.from_numpy(ids[rows])), target).backward()
        dense = lr / batch**0.5 if rule.dense_lr is None else rule.dense_lr * lr / rule.lr
        for group, rate in zip(optimizer.param_groups, (lr, dense), strict=True):
            group["lr"] = rate
        optimizer.step()
    return optimizer


@pytest.mark.parametrize("kind", [FM, DeepFM])
@pytest.mark.parametrize("options", RULES.values(), ids=RULES)
def test_the_engine_equals_autograd_and_the_torch_optimizer(kind, options):
    ids, labels = samples(SIZES, 330, WIDTHS)
    rule, model = rule_of(**options), model_of(kind)
    other = copy_of(model, **({"dropout": 0.0} if kind is DeepFM else {}))
    lrs = np.linspace(rule.lr, 0.1, 6)  # other weights follow
    optimizer = by_autograd(other, rule, ids, labels, 64, lrs)
    engine = engine_for(model, rule, batch_size=64, threads=2)
    list(engine.train(ids, labels, np.arange(330), lrs))
    for (key, ours), theirs in zip(
        model.state_dict().items(), other.state_dict().values(), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5, msg=key)
    assert torch.equal(engine.state["counts"].long(), optimizer.counts(other.tokens.weight))
    assert engine.state["counts"].max() == 6
    torch.testing.assert_close(
        engine.state["counts"] / engine.steps,
        optimizer.frequencies(other.tokens.weight),
        check_dtype=False,
    )


@pytest.mark.parametrize("dense", [None, 0.2])
def test_the_engine_equals_training_sample_by_sample(dense):
    law = {
        "weight_decay": 0.05, "weight_decay_power": 0.5, "max_lr": 0.9,
        "linear_lr_scale": 0.3, "linear_decay_scale": 3.0,
    }  # fmt: skip
    ids, labels = samples(SIZES, 150, WIDTHS)
    rule, model = rule_of(dense_lr=dense, **law), model_of(FM)
    slow = SlowFM(
        model.tokens.weight.detach().numpy(), 0.0, model.columns_start.tolist(), "cfsgd", 0.5,
        count="batch", dense_lr=0.5 / 8 if dense is None else dense, **law,
    )  # fmt: skip
    order = np.random.default_rng(1).permutation(150)
    parts = [order[i : i + 64] for i in range(0, 150, 64)]
    expected = [slow.step(ids[rows], labels[rows]) for rows in parts]
    engine, losses = train(model, rule, ids, labels)
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    np.testing.assert_allclose(model.tokens.weight.detach(), slow.weight, rtol=2e-4, atol=3e-5)
    assert model.bias.item() == pytest.approx(slow.bias, abs=1e-5)
    np.testing.assert_array_equal(engine.state["counts"], slow.counts)


@pytest.mark.parametrize("kind", [FM, DeepFM])
def test_any_number_of_threads_gives_the_same_bits(kind, monkeypatch):
    monkeypatch.setattr("freqsgd.recommender.predict._SMALL", 0)  # so that two threads do run
    ids, labels = samples(SIZES, 3000, WIDTHS)
    models = [model_of(kind)]
    models.append(copy_of(models[0], **({"dropout": 0.0} if kind is DeepFM else {})))
    engines = [
        train(model, rule_of(weight_decay=0.05), ids, labels, batch=500, threads=threads)[0]
        for model, threads in zip(models, (1, 2), strict=True)
    ]
    assert torch.equal(models[0].tokens.weight, models[1].tokens.weight)
    assert torch.equal(models[0].bias, models[1].bias)
    assert torch.equal(engines[0].state["counts"], engines[1].state["counts"])


@pytest.mark.parametrize("kind", [FM, DeepFM])
def test_a_state_that_was_saved_goes_on_to_the_same_bits(kind):
    ids, labels = samples(SIZES, 630, WIDTHS)
    rule, model = rule_of(dense_lr=0.2), model_of(kind)
    resumed = copy_of(model, **({"dropout": 0.0} if kind is DeepFM else {}))
    rows, lrs = np.arange(630), np.full(10, rule.lr)
    whole = engine_for(model, rule, batch_size=64)
    list(whole.train(ids, labels, rows, lrs))
    first, last = (engine_for(resumed, rule, batch_size=64) for _ in range(2))
    list(first.train(ids, labels, rows[:192], lrs[:3]))
    last.load_state(first.state, first.samples, first.steps)
    list(last.train(ids, labels, rows[192:], lrs[3:]))
    for ours, theirs in zip(model.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    assert torch.equal(whole.state["counts"], last.state["counts"])


def test_counters_are_wide_only_where_there_could_be_so_many_steps():
    ids, labels = samples([5, 5], 100, [1, 3])
    fields, rule = [Field("a", 5), Field("b", 5, 3)], rule_of()
    settings = Settings(dim=4, batch_size=50)
    for expected, kind in ((50 * (2**31 - 1), torch.int32), (50 * 2**31, torch.int64)):
        model = FM([5, 5], 4, widths=[1, 3])
        engine = engine_for(model, rule, batch_size=50, expected=expected)
        assert engine.state["counts"].dtype == kind
        assert memory_plan(fields, rule, settings, examples=expected).state == engine.state_bytes
    counts = torch.full((10,), 2**31 - 3, dtype=torch.int32)
    for steps, kind in ((2**31 - 3, torch.int32), (2**31 - 2, torch.int64)):
        engine = engine_for(model, rule, batch_size=50)
        engine.load_state({"counts": counts}, 50 * steps, steps)
        list(engine.train(ids, labels, np.arange(100), np.full(2, 0.5)))
        assert engine.state["counts"].dtype == kind
        assert engine.state["counts"].max() == 2**31 - 1
