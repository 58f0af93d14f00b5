"""Documents are read by one rule, whatever they hold."""

from __future__ import annotations

import math

import pytest

from freqsgd.documents import load_object, read_document
from freqsgd.documents.results import Results
from freqsgd.errors import DataError


def results(**changes):
    return {"schema": 1, "runs": [{"optimizer": "sgd", **changes}]}


def test_unknown_keys_are_ignored_and_null_counts_as_missing():
    plain = read_document(results(), Results, "results.json")
    more = {**results(novelty=[1], epochs=None, lr=None, test_auc=math.nan), "dataset": None}
    assert read_document({**more, "later": {}}, Results, "results.json") == plain


def test_null_settings_of_a_trial_are_kept():
    trial = {"number": 0, "params": {"lr": 1, "weight_decay": None, "max_lr_ratio": math.inf}}
    tuning = {"studies": [{"optimizer": "sgd", "trials": [trial]}]}
    found = read_document({**results(), "tuning": tuning}, Results, "results.json")
    assert found.tuning is not None
    params = {"lr": 1, "weight_decay": None, "max_lr_ratio": None}
    assert found.tuning.studies[0].trials[0].params == params


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"schema": 7}, r'out/results.json: "schema" is 7, .* reads 1; .* wrote it again'),
        ({"schema": 1}, r"out/results.json: .*missing required field `runs`; run the command"),
        (results(epochs=[{"epoch": 1}, {"epoch": "2"}]), r"- at `\$\.runs\[0\]\.epochs\[1\]\.epo"),
    ],
)
def test_what_cannot_be_read_is_refused_with_file_place_and_advice(document, words):
    with pytest.raises(DataError, match=words):
        read_document(document, Results, "out/results.json")


@pytest.mark.parametrize("content", [None, "", "[]", '{"a": ', "[" * 100_000])
def test_a_file_that_is_not_there_or_not_whole_is_none(content, tmp_path):
    path = tmp_path / "document.json"
    if content is not None:
        path.write_text(content)
    assert load_object(path) is None
    path.write_text('{"a": 1}')
    assert load_object(path) == {"a": 1}
