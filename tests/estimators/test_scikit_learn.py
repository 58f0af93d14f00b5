"""scikit-learn's own checks, and what people do with its estimators."""

from __future__ import annotations

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from freqsgd import DeepFMClassifier, FMClassifier
from tests.estimators.made_up import clicks
from tests.test_import import loaded_by

FRACTIONS = "gives X of fractions without asking for the categorical tag; they are refused"
EXPECTED = {
    "check_positive_only_tag_during_fit": FRACTIONS,
    "check_decision_proba_consistency": FRACTIONS,
    "check_sample_weight_equivalence_on_dense_data": (
        "gives X of fractions; and a weight of 2 is not a row given twice: steps are taken over "
        "batches of rows, and frequencies count rows"
    ),
}
SMALL = {"dim": 4, "epochs": 20, "lr": 1.0, "batch_size": 64}


@parametrize_with_checks(
    [kind(dim=4, epochs=20, batch_size=64) for kind in (FMClassifier, DeepFMClassifier)],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_cross_validation_and_grid_search_in_processes():
    X, y = clicks()
    estimator = FMClassifier(**SMALL)
    scores = cross_val_score(estimator, X, y, cv=3, scoring="roc_auc")
    assert scores.min() > 0.7
    search = GridSearchCV(estimator, {"dim": np.array([2, 4])}, cv=2, n_jobs=2).fit(X, y)
    assert search.best_params_["dim"] in (2, 4)
    assert search.best_estimator_.model_.dim == search.best_params_["dim"]


def test_a_pipeline_hands_its_frame_on():
    X, y = clicks()
    frame = pd.DataFrame(X, columns=["user", "item"])
    pair = FunctionTransformer(lambda f: f.assign(both=f["user"] + f["item"]))
    pipeline = make_pipeline(pair, FMClassifier(**SMALL)).fit(frame, y)
    assert list(pipeline[-1].feature_names_in_) == ["user", "item", "both"]
    assert roc_auc_score(y, pipeline.predict_proba(frame)[:, 1]) > 0.75


@pytest.mark.parametrize("kind", [FMClassifier, DeepFMClassifier])
def test_clones_and_copies_predict_the_same_bits(kind, tmp_path):
    X, y = clicks()
    estimator = kind(**SMALL).fit(X, y)
    again = clone(estimator).fit(X, y)
    assert np.array_equal(again.decision_function(X), estimator.decision_function(X))
    joblib.dump(estimator, tmp_path / "estimator")
    copied = joblib.load(tmp_path / "estimator")
    assert np.array_equal(copied.decision_function(X), estimator.decision_function(X))


@pytest.mark.parametrize("classes", [("no", "yes"), (False, True), (-1, 1), (2.0, 7.0)])
def test_classes_of_any_kind(classes):
    X, y = clicks()
    named = np.array(classes)[y]
    expected = FMClassifier(**SMALL).fit(X, y).predict(X)
    for target in (named, named.tolist(), pd.Series(named), pl.Series(named)):
        estimator = FMClassifier(**SMALL).fit(X, target)
        assert estimator.classes_.tolist() == list(classes)
        assert np.array_equal(estimator.predict(X), np.array(classes)[expected])


def test_the_package_loads_scikit_learn_when_it_is_needed_and_says_so_if_it_is_missing():
    assert not {"sklearn", "polars"} & loaded_by("import freqsgd")
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import freqsgd\n"
        "try: freqsgd.FMClassifier\n"
        "except ImportError as error: message = str(error)\n"
        "assert message == \"freqsgd.FMClassifier needs sklearn: pip install 'freqsgd[sklearn]'\""
    )
    assert "polars" in loaded_by(code)
