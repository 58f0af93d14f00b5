from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import log_loss, roc_auc_score

from freqsgd.runs.metrics import (
    auc,
    auc_by_frequency,
    cross_entropy,
    frequency_classes,
    normalized_entropy,
)


@given(st.lists(st.tuples(st.integers(-5, 5), st.booleans()), min_size=2, max_size=60))
def test_auc_is_the_share_of_pairs_in_order(pairs):
    scores, labels = np.array([p[0] for p in pairs], np.float32), np.array([p[1] for p in pairs])
    won = [(a > b) + 0.5 * (a == b) for a in scores[labels == 1] for b in scores[labels == 0]]
    assert auc(scores, labels) == (pytest.approx(np.mean(won)) if won else None)


def test_auc_and_cross_entropy_agree_with_scikit_learn():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=5000).round(2).astype(np.float32)
    labels = (rng.random(5000) < 1 / (1 + np.exp(-logits))).astype(np.uint8)
    assert auc(logits, labels) == pytest.approx(roc_auc_score(labels, logits), abs=1e-12)
    chances = 1 / (1 + np.exp(-logits.astype(np.float64)))
    assert cross_entropy(logits, labels) == pytest.approx(log_loss(labels, chances))


def test_extreme_log_odds_have_a_finite_loss():
    assert cross_entropy(np.array([1000.0, -1000.0]), np.array([0, 1])) == 1000.0


def test_predicting_the_base_rate_has_a_normalized_entropy_of_one():
    labels = np.array([1, 0, 0, 0, 1, 0, 0, 0])
    logits = np.full(8, math.log(0.25 / 0.75))
    loss = cross_entropy(logits, labels)
    assert normalized_entropy(loss, labels) == pytest.approx(1.0)
    assert normalized_entropy(0.1, np.ones(3)) is None


def test_head_covers_80_percent_of_a_fields_occurrences_and_torso_the_next_15():
    #                 field 0: 80, 15 and 5 of 100;   field 1: all in one token, one never seen
    counts = np.array([3, 15, 80, 2, 0, 7])
    assert frequency_classes(counts, [4, 2]).tolist() == [2, 1, 0, 2, 2, 0]


def test_a_token_that_crosses_the_boundary_belongs_to_the_class_where_it_starts():
    assert frequency_classes(np.array([50, 40, 6, 4]), [4]).tolist() == [0, 0, 1, 2]


def test_auc_by_class_is_the_auc_of_its_samples():
    rng = np.random.default_rng(1)
    logits, labels = rng.normal(size=300), rng.integers(0, 2, 300)
    classes = rng.integers(0, 2, 300).astype(np.int8)  # no tail
    found = auc_by_frequency(logits, labels, classes)
    assert found["head"] == pytest.approx(roc_auc_score(labels[classes == 0], logits[classes == 0]))
    assert found["torso"] == auc(logits[classes == 1], labels[classes == 1])
    assert found["tail"] is None
