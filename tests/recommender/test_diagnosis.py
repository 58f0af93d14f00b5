"""What ``--diagnose`` sees, against slow computations, and that it changes nothing."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from freqsgd.compare import compare
from freqsgd.errors import DataError, InterruptedFitError
from freqsgd.optimizers import Rule
from freqsgd.recommender.diagnosis import (
    bucket_norms,
    buckets,
    relate,
    row_moments,
    scatter,
    squared_norms,
)
from freqsgd.recommender.engine import build_model, engine_for
from freqsgd.recommender.settings import Settings
from freqsgd.recommender.training import fit
from freqsgd.tables.dataset import Dataset
from freqsgd.tables.fields import Field, Splits
from tests.recommender.made_up import dataset
from tests.recommender.slow import SlowFM
from tests.recommender.test_training import interrupt_at
from tests.words.made_up import corpus

SMALL = Settings(dim=4, batch_size=100, epochs=3, patience=3)
KEYS = ("pearson", "pearson_log", "spearman", "slope", "intercept", "slope_error")


def with_bags(rows=300):
    """A field, and bags of up to three tokens in which tokens repeat."""
    rng = np.random.default_rng(4)
    bags = rng.integers(-1, 6, (rows, 3))
    ids = np.ascontiguousarray(np.column_stack([rng.integers(0, 9, rows), bags]), np.int32)
    splits = Splits(*np.split(np.arange(rows), [rows - 80, rows - 40]))
    labels = rng.integers(0, 2, rows).astype(np.uint8)
    return Dataset("bags", (Field("one", 9), Field("bag", 6, 3)), ids, labels, splits)


def shaken(data, settings):
    """A model whose weights are all of some size."""
    model = build_model(data, settings)
    torch.manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.3 * torch.randn(weight.shape))
    return model


# ---- second moments ------------------------------------------------------------------------------


def test_correlations_and_line_are_those_of_scipy():
    rng = np.random.default_rng(0)
    counts = rng.geometric(0.01, 400)
    counts[:5] = 0  # never seen
    moments = 1e-9 * counts**1.1 * rng.lognormal(0, 0.5, 400)
    found = relate(counts, moments)
    x, y = counts[5:], moments[5:]
    line = stats.linregress(np.log(x), np.log(y))
    expected = (
        stats.pearsonr(x, y).statistic,
        stats.pearsonr(np.log(x), np.log(y)).statistic,
        stats.spearmanr(x, y).statistic,
        line.slope,
        line.intercept,
        line.stderr,
    )
    assert found["tokens"] == 395
    assert [found[key] for key in KEYS] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("counts", [[3, 3, 3, 3], [1, 2], [0, 0, 0]])
def test_without_a_spread_of_counts_there_is_no_relation(counts):
    found = relate(np.array(counts), np.linspace(1.0, 2.0, len(counts)))
    assert [found[key] for key in KEYS] == [None] * len(KEYS)


@pytest.mark.parametrize("optimizer", ["adagrad", "rowwise-adagrad", "adam"])
def test_moments_are_the_row_means_of_squared_gradients_without_the_linear_weight(optimizer):
    data = dataset(rows=300, sizes=(12, 8))
    model, rule = shaken(data, SMALL), Rule(optimizer, 0.05)
    engine = engine_for(model, rule, batch_size=50)
    starts = model.columns_start.tolist()
    slow = SlowFM(model.tokens.weight.detach().numpy(), model.bias.item(), starts, optimizer, 0.05)
    order = np.arange(300)
    list(engine.train(data.ids, data.labels, order, np.full(6, 0.05)))
    for rows in np.split(order, 6):
        slow.step(data.ids[rows], data.labels[rows])
    squares = slow.squares[:, :-1].mean(1)
    expected = slow.row_squares[:, 0] if optimizer == "rowwise-adagrad" else squares
    assert row_moments(optimizer, engine.state) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("optimizer", ["sgd", "cfsgd", "fasgd"])
def test_optimizers_without_second_moments_have_gradients_alone(optimizer):
    _, record = fit(dataset(), Rule(optimizer, 0.1), SMALL, diagnose=True)
    assert list(record["diagnosis"]) == ["gradients"]


def test_counts_are_those_that_cfsgd_has_after_the_same_epochs(monkeypatch):
    data, kept = dataset(), []
    told = []
    monkeypatch.setattr(
        "freqsgd.recommender.diagnosis.row_moments",
        lambda name, state: kept.append(state["counts"].clone()),
    )
    fit(data, Rule("cfsgd", 1.0), SMALL, diagnose=True)
    monkeypatch.undo()
    monkeypatch.setattr(
        "freqsgd.recommender.diagnosis.relate", lambda counts, moments: told.append(counts) or {}
    )
    fit(data, Rule("adagrad", 0.1), SMALL, diagnose=True)
    assert len(told) == 3
    for counts, counters in zip(told, kept[1:], strict=True):
        assert counts.tolist() == counters.tolist()


def test_a_scatter_plot_has_tokens_of_all_ranks_with_their_fields():
    rng = np.random.default_rng(0)
    counts = rng.permutation(5000)  # one was never seen
    found = scatter(counts, 2.0 * counts, [1000, 3000, 1000])
    drawn = np.array(found["count"])
    assert len(drawn) == 2000
    assert (drawn[0], drawn[-1]) == (4999, 1)
    assert set(np.diff(drawn)) == {-2, -3}
    assert found["moment"] == (2.0 * drawn).tolist()
    row_of = np.argsort(counts)
    expected = [0 if row_of[c] < 1000 else 1 if row_of[c] < 4000 else 2 for c in drawn]
    assert found["field"] == expected


# ---- gradients -----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["fm", "deepfm"])
@pytest.mark.parametrize("bags", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_gradient_is_that_of_the_loss_over_all_training_rows(
    model, bags, weighted, monkeypatch
):
    data = with_bags() if bags else dataset(rows=300, sizes=(12, 8))
    if weighted:
        weights = np.random.default_rng(0).random(data.rows).astype(np.float32)
        data = dataclasses.replace(data, weights=weights)
    network = shaken(data, dataclasses.replace(SMALL, model=model))
    network.train()
    monkeypatch.setattr("freqsgd.recommender.diagnosis._BLOCK", 97)
    vectors, linear = squared_norms(network, data)
    assert network.training

    network.double().eval()
    network.tokens.sparse = False
    rows = data.splits.train
    chance = torch.sigmoid(network(torch.from_numpy(data.ids[rows])))
    labels = torch.from_numpy(data.labels[rows]).double()
    losses = -(labels * chance.log() + (1 - labels) * (1 - chance).log())
    if weighted:
        losses = losses * torch.from_numpy(data.weights[rows])
    losses.mean().backward()
    gradient = network.tokens.weight.grad.numpy()
    assert vectors == pytest.approx((gradient[:, :-1] ** 2).sum(1), rel=1e-4, abs=1e-14)
    assert linear == pytest.approx(gradient[:, -1] ** 2, rel=1e-3, abs=1e-14)


def test_buckets_hold_every_token_once_by_powers_of_two():
    counts = np.array([0, 1, 2, 3, 4, 7, 8, 1023, 1024, 1025, 2**31, 0, 1])
    found = buckets(counts)
    assert sorted(np.concatenate([tokens for *_, tokens in found])) == list(np.flatnonzero(counts))
    for low, high, tokens in found:
        assert high == 2 * low - 1
        assert all(low <= count <= high for count in counts[tokens])
    assert [low for low, *_ in found] == [1, 2, 4, 8, 512, 1024, 2**31]


def test_means_of_a_bucket_are_over_its_tokens():
    counts = np.array([2, 9, 3, 0])
    vectors, linear = np.array([1.0, 5.0, 4.0, 7.0]), np.array([0.1, 0.2, 0.3, 0.4])
    few, many = bucket_norms((vectors, linear), counts, samples=10)
    assert few == {
        "from": 2,
        "to": 3,
        "tokens": 2,
        "norm2": 2.5,
        "norm2_per_occurrence": pytest.approx((1 / 0.2**2 + 4 / 0.3**2) / 2),
        "linear2": pytest.approx(0.2),
        "linear2_per_occurrence": pytest.approx((0.1 / 0.2**2 + 0.3 / 0.3**2) / 2),
    }
    assert (many["from"], many["to"], many["norm2"]) == (8, 15, 5.0)


def test_a_gradient_that_is_not_finite_is_missing():
    (one,) = bucket_norms((np.array([np.inf]), np.array([np.nan])), np.array([1]), samples=1)
    assert (one["norm2"], one["linear2_per_occurrence"]) == (None, None)


def test_the_linear_gradient_per_occurrence_is_the_mean_error_of_the_probabilities():
    data = dataset()
    last_is_kept = dataclasses.replace(SMALL, patience=None)
    model, record = fit(data, Rule("cfsgd", 1.0), last_is_kept, diagnose=True)
    train, counts = data.splits.train, data.token_counts
    error = torch.sigmoid(model(torch.from_numpy(data.ids[train]))).detach().numpy()
    error = error - data.labels[train]
    for bucket in record["diagnosis"]["gradients"][-1]["buckets"]:
        squares = []
        for token in np.flatnonzero((counts >= bucket["from"]) & (counts <= bucket["to"])):
            field, own = (0, token) if token < 60 else (1, token - 60)
            squares.append(error[data.ids[train, field] == own].mean() ** 2)
        assert bucket["tokens"] == len(squares)
        assert bucket["linear2_per_occurrence"] == pytest.approx(np.mean(squares), rel=1e-3)


# ---- runs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["fm", "deepfm"])
def test_looking_does_not_change_what_is_trained(model):
    settings = dataclasses.replace(SMALL, model=model)
    plain, without = fit(dataset(), Rule("adam", 0.02), settings)
    seen, record = fit(dataset(), Rule("adam", 0.02), settings, diagnose=True)
    for ours, theirs in zip(seen.state_dict().values(), plain.state_dict().values(), strict=True):
        assert torch.equal(ours, theirs)
    assert "diagnosis" not in without
    assert [entry["epoch"] for entry in record["diagnosis"]["gradients"]] == [0, 1, 2, 3]
    assert [entry["epoch"] for entry in record["diagnosis"]["moments"]] == [1, 2, 3]
    assert record["diagnosis"]["scatter"]["epoch"] == 3


@pytest.mark.parametrize("model", ["fm", "deepfm"])
def test_an_interrupted_run_ends_with_the_same_diagnosis(model, tmp_path):
    settings = dataclasses.replace(SMALL, model=model)
    data, rule = dataset(), Rule("adagrad", 0.05)
    _, whole = fit(data, rule, settings, diagnose=True)
    with pytest.raises(InterruptedFitError):
        fit(data, rule, settings, folder=tmp_path, listener=interrupt_at(24), diagnose=True)
    _, resumed = fit(data, rule, settings, folder=tmp_path, resume=True, diagnose=True)
    _, again = fit(data, rule, settings, folder=tmp_path, resume=True, diagnose=True)
    assert resumed["diagnosis"] == again["diagnosis"] == whole["diagnosis"]
    json.dumps(resumed, allow_nan=False)


@pytest.mark.parametrize("at_first", [False, True])
@pytest.mark.parametrize("listener", [None, interrupt_at(24)])
def test_a_run_goes_on_as_it_began_with_or_without_diagnosis(at_first, listener, tmp_path):
    options = {"folder": tmp_path, "listener": listener}
    try:
        fit(dataset(), Rule("sgd", 1.0), SMALL, diagnose=at_first, **options)
    except InterruptedFitError:
        assert listener
    with pytest.raises(DataError, match="written with diagnose"):
        fit(dataset(), Rule("sgd", 1.0), SMALL, folder=tmp_path, resume=True, diagnose=not at_first)


def test_a_diverged_run_has_the_diagnosis_of_the_time_before():
    _, record = fit(dataset(), Rule("sgd", 1e6), SMALL, diagnose=True)
    assert record["stopped"] == "diverged"
    assert [entry["epoch"] for entry in record["diagnosis"]["gradients"]] == [0]
    json.dumps(record, allow_nan=False)


@pytest.mark.parametrize(("model", "related"), [("fm", False), ("deepfm", True)])
def test_vectors_that_never_meet_another_have_no_moments_to_relate(model, related):
    rng, rows = np.random.default_rng(0), 300
    ids = rng.integers(1, 20, (rows, 1)).astype(np.int32)
    splits = Splits(*np.split(np.arange(rows), [200, 250]))
    labels = rng.integers(0, 2, rows).astype(np.uint8)
    data = Dataset("one field", (Field("only", 20),), ids, labels, splits)
    _, record = fit(data, Rule("adam", 0.01), replace(SMALL, model=model), diagnose=True)
    assert ("moments" in record["diagnosis"]) == related
    assert len(record["diagnosis"]["gradients"]) == len(record["epochs"]) + 1


def test_a_comparison_predicts_the_ratio_of_the_bounds_in_each_bucket(tmp_path):
    data = dataset()
    rules = [Rule("sgd", 1.0), Rule("cfsgd", 1.0)]
    results = compare(data, rules, SMALL, out=tmp_path, diagnose=True)
    assert json.loads((tmp_path / "results.json").read_text()) == results
    assert results["diagnosis"]["fields"] == ["field0", "field1"]
    counts = data.token_counts[data.token_counts > 0]
    p = counts / len(data.splits.train)
    for found in results["diagnosis"]["prediction"]:
        own = p[(counts >= found["from"]) & (counts <= found["to"])]
        assert found["tokens"] == len(own)
        assert found["p"] == pytest.approx(own.mean())
        sgd = np.sqrt((p**2).sum())  # Theorem 2, what differs between tokens and algorithms
        fasgd = np.mean(np.sqrt(own * p.sum()))  # Theorem 1, the mean over the bucket
        assert found["improvement"] == pytest.approx(sgd / fasgd)


def test_the_prediction_for_bags_is_that_of_occurrences():
    data = with_bags()
    results = compare(data, [Rule("sgd", 0.1)], SMALL, diagnose=True)
    counts = data.token_counts[data.token_counts > 0]
    for found in results["diagnosis"]["prediction"]:
        own = counts[(counts >= found["from"]) & (counts <= found["to"])]
        ratios = np.sqrt((counts**2).sum()) / np.mean(np.sqrt(own * counts.sum()))
        assert found["improvement"] == pytest.approx(ratios)


def test_a_model_goes_back_to_training_even_if_a_look_fails(monkeypatch):
    data = dataset()
    model = build_model(data, SMALL).train()
    monkeypatch.setattr(model, "forward", lambda ids: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        squared_norms(model, data)
    assert model.training


def test_text_is_refused():
    with pytest.raises(DataError, match="not for text"):
        compare(corpus(), [Rule("sgd", 1.0)], diagnose=True)
