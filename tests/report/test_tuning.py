"""What a report tells of a search."""

from __future__ import annotations

import pytest

from freqsgd.errors import DataError
from freqsgd.report.results import read_results
from freqsgd.report.tuning import good_range, searches_of
from tests.report.made_up import HOSTILE, make_results, make_run, make_study, make_tuned
from tests.report.test_charts import charts_of, colours_of, own_rows, rows
from tests.report.test_comparison import cells, page_of, section
from tests.report.test_page import elements


def sweep(*values):
    return [(2.0**k, value) for k, value in enumerate(values)]


@pytest.mark.parametrize(
    ("values", "low", "high", "is_open"),
    [
        ((0.7, 0.799, 0.8, 0.7981, 0.7), 2, 8, False),
        ((0.8, 0.79), 1, 1, True),
        ((0.79, 0.799, 0.8), 2, 4, True),
        ((0.8, 0.8, 0.8), 1, 4, True),
        ((0.799, 0.7, 0.8, 0.7), 4, 4, False),  # what is beyond a gap does not count
        ((None, 0.799, 0.8, None), 2, 4, False),  # diverged
        ((None, None, 0.8), 4, 4, True),
    ],
)
def test_the_good_range_goes_from_the_best_to_the_first_that_is_worse(values, low, high, is_open):
    found = good_range(sweep(*values))
    assert (found.low, found.high) == (low, high)
    assert found.is_open == is_open
    assert found.best == 0.8


def test_without_a_score_there_is_no_good_range():
    assert good_range([]) is None
    assert good_range(sweep(None, None)) is None


def test_the_widths_are_told_and_where_the_sweep_ends():
    wide = make_study("cfsgd", lr_sweep=[{"lr": 0.5 * 2**k, "val_auc": 0.8} for k in range(5)])
    narrow = make_study(
        "adam",
        lr_sweep=[
            {"lr": lr, "val_auc": auc} for lr, auc in ((1, None), (2, 0.78), (4, 0.8), (8, 0.7))
        ],
    )
    table = {row[0]: row[1:] for row in cells(make_tuned(narrow, wide), "Best settings")}
    assert table["Good learning rates"] == [
        "4 to 4 (a factor of 1.0)",
        "0.5 to 8 (a factor of at least 16)",
    ]


def notes(results) -> str:
    return " ".join(section(page_of(results), "Tuning").remarks)


@pytest.mark.parametrize(("above", "told"), [(0.001, False), (0.003, True)])
def test_a_sweep_that_surpasses_the_trials_is_told(above, told):
    study = make_study("cfsgd")
    best = study["best"]["value"]
    study["lr_sweep"] = [{"lr": 1.0, "val_auc": best}, {"lr": 2.0, "val_auc": best + above}]
    words = "The sweep found a learning rate for CF-SGD that does clearly better than any trial"
    assert (words in notes(make_tuned(study))) == told
    study["best"] = {**study["best"], "value": best + above, "from": "sweep"}
    assert (words in notes(make_tuned(study))) == told


def test_settings_of_the_sweep_are_told_and_marked():
    study = make_study("cfsgd")
    trial = study["best"]
    study["lr_sweep"][7]["val_auc"] = 0.9
    lr = study["lr_sweep"][7]["lr"]
    better = {"value": 0.9, "from": "sweep", "params": {**trial["params"], "lr": lr}}
    study["best"] = {**trial, **better}
    found = rows(charts_of(make_tuned(study))["learning-rates"], "CF-SGD")
    assert [row["x"] for row in found] == [2.0**k for k in range(-4, 4)]
    assert max(found, key=lambda row: row["size"])["x"] == 2.0**3
    table = dict(cells(make_tuned(study), "Best settings"))
    assert table["Validation AUC"] == "0.9000"
    assert table["Learning rate"] == f"{lr:.4g}"


def test_what_is_left_out_is_told_from_what_does_not_apply():
    with_none = make_study("cfsgd", best={"number": 0, "params": {"lr": 1.0, "max_lr_ratio": None}})
    without = make_study("adam", best={"number": 0, "params": {"lr": 1.0}})
    table = {row[0]: row[1:] for row in cells(make_tuned(with_none, without), "Best settings")}
    assert table["Max learning rate ratio"] == ["none", "\N{EN DASH}"]


def test_the_best_so_far_never_falls_and_counts_what_came_to_its_end():
    values = [("diverged", None), ("complete", 0.7), ("pruned", 0.9), ("complete", 0.6)]
    trials = [
        {"number": k, "state": state, "value": value, "params": {"lr": 1.0}}
        for k, (state, value) in enumerate([*values, ("complete", 0.8)])
    ]
    chart = charts_of(make_tuned(make_study("cfsgd", trials=trials)))["search"]
    assert [(row["trials"], row["best"]) for row in rows(chart, "CF-SGD")] == [
        (1, None),
        (2, 0.7),
        (3, 0.7),
        (4, 0.7),
        (5, 0.8),
    ]
    assert [cell.text for cell in chart.table.rows[2]] == ["3", "0.7000", "0.9000 (pruned)"]


def test_lines_have_the_looks_of_the_optimizers_first_run():
    runs = [make_run(name, seed=seed) for name in ("cfsgd", "adam") for seed in (0, 1)]
    results = make_tuned(make_study("adam"), make_study("cfsgd"), runs=runs)
    for name in ("search", "learning-rates"):
        chart = charts_of(results)[name]
        found = colours_of(chart)
        assert set(found) == {"CF-SGD (seed 0)", "Adam (seed 0)"}
        assert len(set(found.values())) == 2


def test_rates_are_drawn_over_that_of_the_best_trial():
    results = make_tuned(make_study("cfsgd"))
    (study,) = searches_of(read_results(results))
    chart = charts_of(results)["learning-rates"]
    found = rows(chart, "CF-SGD")
    assert [row["x"] for row in found] == [2.0**k for k in range(-4, 4)]  # the last one diverged
    assert [row["lr"] for row in found] == [lr for lr, value in study.sweep if value is not None]
    assert max(found, key=lambda row: row["size"])["x"] == 1
    assert len(own_rows(chart)) == sum(trial.value is not None for trial in study.study.trials)


def test_an_optimizer_without_runs_is_in_the_tables_and_not_in_the_charts(tmp_path):
    failed = make_study("sgd", best=None, lr_sweep=[])
    results = make_tuned(make_study("adam"), failed)
    results["runs"] = results["runs"][:1]
    assert set(colours_of(charts_of(results)["learning-rates"])) == {"Adam"}
    text = elements(results, tmp_path).text
    assert "No trial of SGD came to its end." in text


def test_the_page_shows_the_search(tmp_path):
    page = elements(make_tuned(make_study("cfsgd"), make_study("adam")), tmp_path)
    charts = [entry for entry in page.of("div") if entry.get("class") == "chart"]
    names = [entry["data-chart"] for entry in charts]
    assert {"search", "learning-rates"} <= set(names)
    assert all("CF-SGD" in entry["aria-label"] for entry in charts)
    for words in (
        "FM tuned on movielens-1m: CF-SGD and Adam",
        "Best settings",
        "Decay epochs",
        "8 complete, 1 diverged and 1 pruned",
    ):
        assert words in page.text


@pytest.mark.parametrize(
    "tuning",
    [
        {},
        {"studies": None},
        {"studies": [{"optimizer": "cfsgd"}]},
        {"studies": [{"optimizer": "cfsgd", "lr_sweep": [{"lr": 0}], "best": None}]},
        {"studies": [{"optimizer": "cfsgd", "trials": [{"number": 0}], "best": {"number": 0}}]},
        {"studies": [{"optimizer": HOSTILE, "trials": None, "best": None}]},
    ],
)
def test_whatever_is_missing_there_is_a_page(tuning, tmp_path):
    page = elements(make_results(tuning=tuning), tmp_path)
    assert not page.of("img")
    assert page.of("table")


@pytest.mark.parametrize(
    ("studies", "place"),
    [
        ([None], r"studies\[0\]"),
        ([{"optimizer": "cfsgd", "trials": [{}]}], r"studies\[0\].trials\[0\]"),
        ([{"optimizer": "cfsgd", "trials": 3}], r"studies\[0\].trials"),
        ([{"optimizer": "cfsgd", "best": {"number": 0, "params": {"lr": HOSTILE}}}], "best.params"),
    ],
)
def test_a_damaged_search_is_refused_with_its_place(studies, place):
    with pytest.raises(DataError, match=rf"results.json: .* - at `\$\.tuning\..*{place}"):
        read_results(make_results(tuning={"studies": studies}))
