"""Probabilities are as high, on average, as the label of the training rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.special import expit

from freqsgd import DeepFMClassifier, FMClassifier
from freqsgd.errors import DataError
from freqsgd.estimators.fitted import shift_to_base_rate
from freqsgd.estimators.inputs import hold_out
from freqsgd.tables.dataset import Dataset
from freqsgd.tables.fields import Splits
from tests.estimators.made_up import clicks

SMALL = {"dim": 4, "epochs": 3, "lr": 0.3, "batch_size": 64}


@pytest.mark.parametrize("kind", [FMClassifier, DeepFMClassifier])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("patience", [None, 2])
def test_the_mean_probability_of_training_rows_is_their_mean_label(kind, weighted, patience):
    X, y = clicks(2000)
    y = y & (np.arange(len(y)) % 10 == 0)  # so that few are positive
    weights = np.random.default_rng(0).uniform(0.1, 3, len(y)) * (1 + 4 * y) if weighted else None
    estimator = kind(**SMALL, patience=patience)
    estimator.fit(X, y, eval_set=(X, y) if patience else None, sample_weight=weights)
    found = np.average(estimator.predict_proba(X)[:, 1], weights=weights)
    assert found == pytest.approx(np.average(y, weights=weights), rel=1e-5)


def test_rows_that_are_held_out_do_not_count():
    X, y = clicks(500)
    weights = np.random.default_rng(0).uniform(0.1, 5, 500)
    options = {"validation_fraction": 0.5, "random_state": 3}
    estimator = FMClassifier(**SMALL, **options).fit(X, y, sample_weight=weights)
    none = np.empty(0, np.int64)
    data = Dataset("X", (), np.empty((500, 0), np.int32), y, Splits(none, none, none))
    rows = hold_out(data, 0.5, 3).splits.train
    found = np.average(estimator.predict_proba(X[rows])[:, 1], weights=weights[rows])
    assert found == pytest.approx(np.average(y[rows], weights=weights[rows]), rel=1e-5)


def test_columns_that_tell_nothing_give_the_base_rate():
    frame = pd.DataFrame({"a": ["x"] * 5000, "b": ["y"] * 5000})
    y = np.arange(5000) % 10 == 0
    assert FMClassifier(dim=8).fit(frame, y).predict_proba(frame)[0, 1] == pytest.approx(0.1)
    X, _ = clicks(5000)
    y = np.arange(5000) % 50 == 0
    for kind in (FMClassifier, DeepFMClassifier):
        mean = kind(dim=8, epochs=10).fit(X, y).predict_proba(X)[:, 1].mean()
        assert mean == pytest.approx(0.02, rel=0.02)  # a tenth of the rows was held out


LOGITS = {
    "usual": np.random.default_rng(0).normal(0, 2, 1000),
    "overfitted": np.repeat([-60.0, 60.0], 500),
    "all high": np.random.default_rng(1).normal(300, 1, 1000),
    "all low": np.random.default_rng(1).normal(-300, 1, 1000),
    "one far away": np.append(np.zeros(999), 1e4),
    "equal": np.full(1000, 0.7),
}


@pytest.mark.parametrize("kind", LOGITS)
@pytest.mark.parametrize("positives", [1, 30, 500, 999])
@pytest.mark.parametrize("scale", [None, 1.0, 1e30])
def test_the_shift_is_the_root_that_scipy_finds(kind, positives, scale):
    logits, labels = LOGITS[kind], np.repeat([1, 0], [positives, 1000 - positives])
    weights = None if scale is None else scale * np.random.default_rng(2).uniform(0.01, 2, 1000)
    mean = np.average(labels, weights=weights)

    def gap(shift):
        return np.average(expit(logits + shift), weights=weights) - mean

    expected = brentq(gap, -2e4, 2e4, xtol=1e-12)
    found = shift_to_base_rate(logits, labels, weights)
    assert abs(gap(found)) <= max(abs(gap(expected)), 1e-9 * mean)


def test_log_odds_that_are_not_finite_are_refused():
    with pytest.raises(DataError, match=r"not finite.*smaller lr"):
        shift_to_base_rate(np.array([0.0, np.inf]), np.array([0, 1]), None)
