from __future__ import annotations

import json
import math
from dataclasses import asdict

import pytest

from freqsgd.errors import DataError
from freqsgd.optimizers import CAPPED, COUNTING, OPTIMIZERS, Optimizer, Rule, State, by_memory
from freqsgd.recommender.find_lr import find_lr
from freqsgd.recommender.rate_grid import candidates
from freqsgd.recommender.search_space import search_space
from freqsgd.recommender.settings import Settings, preset
from freqsgd.words.settings import TextSettings, check_rule
from tests.recommender.made_up import dataset


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_bias_and_network_move_at_lr_unless_batches_are_counted(name):
    rule = Rule(name, 0.3)
    assert (rule.dense_rate(64), rule.dense_scale(64)) == (0.3, 1.0)


def test_where_batches_are_counted_they_keep_the_rate_of_counting_occurrences():
    occurrences, batches = Rule("cfsgd", 0.3), Rule("cfsgd", 0.3 * 8, count="batch")
    assert batches.dense_rate(64) == pytest.approx(occurrences.dense_rate(64))
    assert batches.dense_scale(64) == 1 / 8
    assert Rule("cfsgd", count="batch").dense_rate(64) == 0.0  # yet to be found, as lr is


def test_or_move_at_a_rate_of_their_own():
    rule = Rule("cfsgd", 2.0, count="batch", dense_lr=0.1)
    assert (rule.dense_rate(64), rule.dense_scale(64)) == (0.1, 0.05)
    for lr in (None, 0.0):
        open_rule = Rule("cfsgd", lr, count="batch", dense_lr=0.1)
        assert open_rule.dense_rate(64) == 0.1
        with pytest.raises(ValueError, match=r"dense_lr needs a learning rate \(lr\) > 0"):
            open_rule.dense_scale(64)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"count": "day"}, "count must be 'occurrence' or 'batch', got 'day'"),
        ({"count": "batch", "halflife": 9.0}, "halflife is in samples"),
        ({"dense_lr": 0.1}, "dense_lr needs count 'batch'"),
        ({"count": "batch", "dense_lr": -0.1}, "dense_lr must be a finite number >= 0, got -0.1"),
        ({"count": "batch", "dense_lr": math.inf}, "dense_lr must be a finite number >= 0"),
        ({"count": "batch", "dense_lr": math.nan}, "dense_lr must be a finite number >= 0"),
    ],
)
def test_counting_that_makes_no_sense_is_refused(options, said):
    with pytest.raises(ValueError, match=said):
        Rule("cfsgd", 1.0, **options)


@pytest.mark.parametrize("name", [name for name in OPTIMIZERS if name not in COUNTING])
def test_only_cfsgd_counts_batches(name):
    with pytest.raises(ValueError, match=f"count 'batch' is for cfsgd, .* not for {name}"):
        Rule(name, 1.0, count="batch")


def test_a_cap_that_is_infinite_is_none_in_the_law_and_in_json():
    rule = Rule("cfsgd", lr=1.0, max_lr=math.inf)
    assert rule.law.max_lr is None
    assert json.loads(json.dumps(rule.plain, allow_nan=False))["max_lr"] is None
    assert rule.plain == {**asdict(rule), "max_lr": None}


def test_the_registry_knows_what_each_takes():
    assert COUNTING == ("cfsgd",)
    assert CAPPED == ("fasgd", "cfsgd")
    assert [each.name for each in by_memory() if each.stateful] == [
        "cfsgd", "cfadam", "counter-sgd", "rowwise-adagrad", "adagrad", "adam"
    ]  # fmt: skip
    for each in OPTIMIZERS.values():
        others = (each.rates_of, each.lr_found_with)
        assert {name for name in others if name is not None} <= set(OPTIMIZERS)


def test_two_optimizers_do_not_share_a_dash_or_a_marker():
    styles = [each.style for each in OPTIMIZERS.values() if each.style is not None]
    assert len({style.dash for style in styles}) == len(styles)
    assert len({style.marker for style in styles}) == len(styles)


def test_a_state_is_per_row_or_per_weight():
    assert State().floats(10, 5) == 0
    assert State("some", row=2).floats(10, 5) == 20
    assert State("some", weight=2).floats(10, 5) == 100


@pytest.mark.parametrize(
    ("name", "decay", "with_linear", "without"),
    [
        ("sgd", 0.0, "nothing", "nothing"),
        ("sgd", 0.1, "one counter per row", "one counter per row"),
        ("cfsgd", 0.1, "one counter per row", "one counter per row"),
        ("fasgd", 0.1, "one frequency per row", "one frequency per row"),
        ("rowwise-adagrad", 0.0, "two floats per row", "one float per row"),
        ("rowwise-adagrad", 0.1, "two floats per row and one counter per row",
         "one float per row and one counter per row"),
        ("adam", 0.1, "two floats per weight", "two floats per weight"),
    ],
)  # fmt: skip
def test_what_is_kept_in_words(name, decay, with_linear, without):
    rule = Rule(name, weight_decay=decay)
    assert rule.keeps == rule.kept(linear=True) == with_linear
    assert rule.kept(linear=False) == without


@pytest.fixture
def bare(monkeypatch):
    """An optimizer of which nothing but its name is known."""
    monkeypatch.setitem(OPTIMIZERS, "bare", Optimizer("bare", "Bare"))
    return Rule("bare")


def test_an_optimizer_without_rates_asks_for_one(bare):
    assert preset("paper", "synthetic", "fm", "bare") is None
    with pytest.raises(DataError, match="bare has no grid of learning rates: give one"):
        candidates(bare, 1024)
    with pytest.raises(DataError, match="no learning rate of bare can be found: give one"):
        find_lr(dataset(), bare, Settings(dim=4))
    assert "typical_decay" in search_space("bare", Settings(), 0.1)


@pytest.mark.parametrize("loss", ["negative", "softmax"])
def test_an_optimizer_that_trains_no_words_is_refused_for_them(bare, loss):
    with pytest.raises(DataError, match=f"bare does not train words with the loss {loss}: use sgd"):
        check_rule(bare, TextSettings(loss=loss))
