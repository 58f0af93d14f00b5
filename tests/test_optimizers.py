from __future__ import annotations

import json
import math
from dataclasses import asdict

import pytest

from freqsgd.optimizers import OPTIMIZERS, Rule


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


@pytest.mark.parametrize("name", [name for name in OPTIMIZERS if name != "cfsgd"])
def test_only_cfsgd_counts_batches(name):
    with pytest.raises(ValueError, match=f"count 'batch' is for cfsgd, .* not for {name}"):
        Rule(name, 1.0, count="batch")


def test_a_cap_that_is_infinite_is_none_in_the_law_and_in_json():
    rule = Rule("cfsgd", lr=1.0, max_lr=math.inf)
    assert rule.law.max_lr is None
    assert json.loads(json.dumps(rule.plain, allow_nan=False))["max_lr"] is None
    assert rule.plain == {**asdict(rule), "max_lr": None}
