"""Comparisons in one pass: the best of each optimizer's rates, kept over interruptions."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

from freqsgd.compare import compare as compare_runs
from freqsgd.errors import DataError
from freqsgd.optimizers import OPTIMIZERS, Rule
from freqsgd.recommender.folder import load_model
from freqsgd.recommender.one_pass import fit_stream
from freqsgd.recommender.rate_grid import RateStore
from freqsgd.recommender.settings import Pass, Settings
from freqsgd.tables import ClickLog, ClickStream
from tests.recommender.streams import MemoryStream

SETTINGS = Settings(dim=4, batch_size=50)
TIMES = ("seconds", "samples_per_second", "peak_memory_bytes")


def compare(*rules, **options):
    return compare_runs(MemoryStream(), rules, SETTINGS, threads=1, **options)


def with_grid(monkeypatch, name, rates):
    monkeypatch.setitem(OPTIMIZERS, name, replace(OPTIMIZERS[name], grid=rates))


def timeless(results):
    """Results without what differs from run to run."""
    runs = [
        {
            **{key: value for key, value in run.items() if key not in TIMES},
            "windows": [{**window, "seconds": None} for window in run["windows"]],
        }
        for run in results["runs"]
    ]
    return {**results, "runs": runs, "created": None}


def test_the_best_rate_is_that_of_the_lowest_progressive_ne():
    (run,) = compare(Rule("cfsgd"))["runs"]
    grid = OPTIMIZERS["cfsgd"].grid
    alone = [fit_stream(MemoryStream(), Rule("cfsgd", lr), SETTINGS)[1] for lr in grid]
    finite = [record for record in alone if "error" not in record]
    best = min(finite, key=lambda record: record["train_ne"])
    assert run["lr"] == best["lr"]
    assert run["test_ne"] == best["test_ne"]
    assert [tried["lr"] for tried in run["search"]] == list(grid)
    assert [tried["train_ne"] for tried in run["search"]] == [r["train_ne"] for r in alone]
    assert [tried["error"] for tried in run["search"]] == [r.get("error") for r in alone]
    assert run["search_edge"] is (best["lr"] in (grid[0], grid[-1]))


@pytest.mark.parametrize(("rates", "edge"), [((1e-6, 1e-5, 1.0), True), ((1e-6, 1.0, 1e9), False)])
def test_a_best_rate_at_the_end_of_the_grid_is_told(rates, edge, monkeypatch):
    with_grid(monkeypatch, "sgd", rates)
    (run,) = compare(Rule("sgd"))["runs"]
    assert run["lr"] == 1.0
    assert run["search_edge"] is edge


def test_a_rate_that_is_given_is_the_only_one():
    given, found = compare(Rule("adagrad", 0.05), Rule("sgd"))["runs"]
    assert [tried["lr"] for tried in given["search"]] == [0.05]
    assert given["search_edge"] is False
    assert len(found["search"]) == 5


def test_rates_that_diverge_are_listed_and_never_best(monkeypatch, tmp_path):
    with_grid(monkeypatch, "sgd", (1e12, 0.5, 40.0))
    with_grid(monkeypatch, "cfsgd", (1e12, 1e13))
    sgd, cfsgd = compare(Rule("sgd"), Rule("cfsgd"), out=tmp_path)["runs"]
    assert sgd["lr"] == 0.5
    assert "not a finite number" in sgd["search"][0]["error"]
    assert sgd["search"][1]["error"] is None
    assert "more than 10 times" in sgd["search"][2]["error"]
    assert cfsgd["stopped"] == "diverged"
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["sgd"]
    assert not [path for path in (tmp_path / "rates").iterdir() if path.is_dir()]
    json.loads((tmp_path / "results.json").read_text(), parse_constant=pytest.fail)


def test_the_model_that_is_kept_is_the_best_rates(monkeypatch, tmp_path):
    with_grid(monkeypatch, "adagrad", (0.001, 0.2, 5.0))
    (run,) = compare(Rule("adagrad"), out=tmp_path)["runs"]
    assert run["lr"] == 0.2
    model, description = load_model(tmp_path / "models" / "adagrad")
    expected, _ = fit_stream(MemoryStream(), Rule("adagrad", run["lr"]), SETTINGS)
    assert description["record"]["lr"] == run["lr"]
    assert torch.equal(model.tokens.weight, expected.tokens.weight)


def test_examples_are_counted_and_described():
    results = compare(Rule("sgd", 0.5))
    stream = MemoryStream()
    assert results["one_pass"] is True
    assert results["dataset"] == stream.summary()
    assert results["splits"] == {
        "train": len(stream.whole(0, 2)[1]),
        "test": len(stream.whole(2, 3)[1]),
    }
    assert "best_possible" not in results


def test_generated_clicks_tell_the_best_possible():
    stream = ClickStream(ClickLog((30, 20), (1.0, 1.0), days=3, rows=500))
    results = compare_runs(stream, [Rule("sgd", 0.5)], SETTINGS, threads=1)
    train, test = stream.truth(0, 2), stream.truth(2, 3)
    assert results["best_possible"] == {
        "train_ne": train.ne,
        "test_ne": test.ne,
        "test_auc": test.auc,
    }


@pytest.mark.parametrize(("days", "plan"), [(1, Pass()), (2, Pass(evaluation_days=0))])
def test_without_evaluation_days_nothing_is_told_of_them(days, plan, tmp_path):
    stream = ClickStream(ClickLog((50, 20), (1.0, 1.0), days=days, rows=500))
    results = compare_runs(
        stream, [Rule("adagrad", 0.03)], SETTINGS, plan=plan, threads=1, out=tmp_path
    )
    best = {"train_ne": stream.truth(0, days).ne, "test_ne": None, "test_auc": None}
    assert results["best_possible"] == best
    assert results["splits"] == {"train": days * 500, "test": 0}
    assert json.loads((tmp_path / "results.json").read_text())["best_possible"] == best


class KilledError(Exception):
    pass


@pytest.mark.parametrize("moment", ["keep", "settle", "record"])
def test_a_comparison_that_is_cut_off_goes_on_to_the_same_results(moment, tmp_path, monkeypatch):
    whole = compare(Rule("sgd"), Rule("adagrad"), out=tmp_path / "whole")
    original, calls = getattr(RateStore, moment), []

    def cut(self, *arguments):
        calls.append(arguments)
        if len(calls) in (4, 8):
            raise KilledError
        return original(self, *arguments)

    ends = []
    options = {"out": tmp_path / "cut", "finished": lambda record: ends.append(record["lr"])}
    with monkeypatch.context() as patch:
        patch.setattr(RateStore, moment, cut)
        with pytest.raises(KilledError):
            compare(Rule("sgd"), Rule("adagrad"), **options)
        with pytest.raises(KilledError):
            compare(Rule("sgd"), Rule("adagrad"), resume=True, **options)
    resumed = compare(Rule("sgd"), Rule("adagrad"), resume=True, **options)
    assert timeless(resumed) == timeless(whole)
    assert len(ends) <= len(OPTIMIZERS["sgd"].grid) + len(OPTIMIZERS["adagrad"].grid) + 2
    for name in ("sgd", "adagrad"):
        ours, theirs = (
            load_model(tmp_path / which / "models" / name)[0] for which in ("cut", "whole")
        )
        assert torch.equal(ours.tokens.weight, theirs.tokens.weight)
    assert not [path for path in (tmp_path / "cut" / "rates").iterdir() if path.is_dir()]


def test_a_folder_with_rates_is_not_taken_twice_and_not_for_other_options(tmp_path):
    compare(Rule("sgd", 0.5), out=tmp_path)
    (tmp_path / "results.json").unlink()
    with pytest.raises(DataError, match="holds results already"):
        compare(Rule("sgd", 0.5), out=tmp_path)
    longer = Settings(dim=4, batch_size=50, epochs=7, patience=None)  # which means nothing here
    compare_runs(MemoryStream(), [Rule("sgd", 0.5)], longer, out=tmp_path, resume=True)
    other = Settings(dim=4, batch_size=51)
    with pytest.raises(DataError, match="written with batch_size 50, now batch_size is 51"):
        compare_runs(MemoryStream(), [Rule("sgd", 0.5)], other, out=tmp_path, resume=True)
    with pytest.raises(DataError, match="written with data"):
        compare_runs(MemoryStream(seed=1), [Rule("sgd", 0.5)], SETTINGS, out=tmp_path, resume=True)
    with pytest.raises(DataError, match=r"weight_decay 0\.0, now weight_decay is 0\.1"):
        compare(Rule("sgd", 0.5, weight_decay=0.1), out=tmp_path, resume=True)
    (tmp_path / "rates" / "sgd-0.5.safetensors").write_text("{")
    with pytest.raises(DataError, match=r"is damaged .*: remove it to run this rate again"):
        compare(Rule("sgd", 0.5), out=tmp_path, resume=True)


def test_records_with_other_ways_of_counting_are_refused(tmp_path):
    first = compare(Rule("cfsgd", 0.5), out=tmp_path)
    assert compare(Rule("cfsgd", 0.5), out=tmp_path, resume=True)["runs"] == first["runs"]
    with pytest.raises(DataError, match="written with count occurrence, now count is batch"):
        compare(Rule("cfsgd", 0.5, count="batch"), out=tmp_path, resume=True)


def test_a_comparison_is_not_gone_on_with_at_other_rates(monkeypatch, tmp_path):
    with_grid(monkeypatch, "sgd", (0.1, 0.5))
    compare(Rule("sgd"), out=tmp_path / "grid")
    compare(Rule("sgd", 0.5), out=tmp_path / "second")
    compare(Rule("sgd", 0.1), out=tmp_path / "first")
    for rule, name in (
        (Rule("sgd", 0.01), "grid"),
        (Rule("sgd", 0.5), "grid"),
        (Rule("sgd"), "second"),
    ):
        with pytest.raises(DataError, match=r"holds a comparison of other rates \(sgd-0"):
            compare(rule, out=tmp_path / name, resume=True)
    (run,) = compare(Rule("sgd"), out=tmp_path / "first", resume=True)["runs"]
    assert load_model(tmp_path / "first" / "models" / "sgd")[1]["record"]["lr"] == run["lr"]


def test_a_folder_of_a_single_run_is_not_taken_for_a_comparison(tmp_path):
    fit_stream(MemoryStream(), Rule("sgd", 0.5), SETTINGS, folder=tmp_path)
    with pytest.raises(DataError, match="holds a single run"):
        compare(Rule("sgd", 0.5), out=tmp_path, resume=True)


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ([], "no optimizer"),
        ([Rule("sgd", 1.0), Rule("sgd", 2.0)], "named once"),
        ([Rule("sgd", 1.0), Rule("fasgd", 1.0)], "fasgd must know beforehand .* use cfsgd"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_the_first_run(rules, words, tmp_path):
    with pytest.raises(DataError, match=words):
        compare(*rules, out=tmp_path / "out", finished=pytest.fail)
    assert not (tmp_path / "out").exists()
