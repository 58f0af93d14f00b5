from __future__ import annotations

import math

import pytest

from freqsgd.errors import DataError
from freqsgd.report.results import read_results
from tests.report.made_up import make_results, make_run, point


@pytest.mark.parametrize("schema", [None, 0, 2, "1", True])
def test_another_schema_is_refused_by_its_number(schema):
    with pytest.raises(DataError, match=rf'"schema" is {schema!r}, .* reads 1'):
        read_results(make_results(schema=schema))


@pytest.mark.parametrize("runs", [None, [], {}, "sgd"])
def test_results_without_runs_are_refused(runs):
    with pytest.raises(DataError, match=r"results.json: .*runs`.*; run the command"):
        read_results(make_results(runs=runs))


@pytest.mark.parametrize("run", [{}, {"optimizer": 3}, "sgd", None])
def test_a_run_without_optimizer_is_reported_with_its_place(run):
    with pytest.raises(DataError, match=r"results.json: .* - at `\$\.runs\[1\].*; run the command"):
        read_results(make_results(make_run("sgd"), run))


def test_all_but_schema_and_the_names_of_optimizers_is_optional():
    results = read_results({"schema": 1, "runs": [{"optimizer": "adam"}]})
    assert results.runs[0].label == "Adam"
    assert results.runs[0].epochs == ()
    assert results.command is None


def test_unknown_keys_are_ignored():
    plain = read_results(make_results(make_run("sgd")))
    assert read_results(make_results(make_run("sgd", novelty=[1]), more={"x": 1})) == plain


@pytest.mark.parametrize("broken", ["0.8", [], True])
def test_what_is_no_number_is_refused_with_its_place(broken):
    with pytest.raises(DataError, match=r"results.json: .* - at `\$\.runs\[0\]\.test_auc`"):
        read_results(make_results(make_run("sgd", test_auc=broken)))
    with pytest.raises(DataError, match=r"at `\$\.runs\[0\]\.epochs\[1\]\.val_auc`"):
        read_results(make_results(make_run("sgd", epochs=[point(1, 0.6), point(2, broken)])))


@pytest.mark.parametrize("broken", [math.nan, math.inf, None])
def test_what_is_not_a_finite_number_counts_as_missing(broken):
    run = make_run("sgd", test_auc=broken, epochs=[point(1, broken), point(2, 0.7)])
    (read,) = read_results(make_results(run)).runs
    assert read.test_auc is None
    assert [epoch.val_auc for epoch in read.epochs] == [None, 0.7]


@pytest.mark.parametrize(
    ("changes", "labels"),
    [
        ([{"lr": 1.0}, {"lr": 2.0}], ["CF-SGD (lr 1.0)", "CF-SGD (lr 2.0)"]),
        ([{"seed": 0}, {"seed": 1}], ["CF-SGD (seed 0)", "CF-SGD (seed 1)"]),
        ([{}, {}], ["CF-SGD (run 1)", "CF-SGD (run 2)"]),
        (
            [{"lr": 1.0, "seed": 0}, {"lr": 1.0, "seed": 1}, {"lr": 2.0, "seed": 0}],
            ["CF-SGD (lr 1.0, seed 0)", "CF-SGD (lr 1.0, seed 1)", "CF-SGD (lr 2.0)"],
        ),
    ],
)
def test_runs_of_one_optimizer_are_told_apart_by_what_differs(changes, labels):
    runs = [make_run("adam"), *(make_run("cfsgd", **change) for change in changes)]
    read = read_results(make_results(*runs))
    assert [run.label for run in read.runs] == ["Adam", *labels]
