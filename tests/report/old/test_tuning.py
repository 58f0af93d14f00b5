"""What a report tells of a search."""

from __future__ import annotations

import statistics

import pytest

pytest.importorskip("plotly", reason='needs plotly: pip install "freqsgd[cli]"')

from freqsgd.errors import DataError
from freqsgd.report.old import tuning_figures
from freqsgd.report.old.results import read_results
from freqsgd.report.old.style import styles
from freqsgd.report.old.tuning import good_range, read_studies
from freqsgd.report.old.tuning_sections import tuning_sections
from tests.report.made_up import HOSTILE, make_results, make_run, make_study, make_tuned
from tests.report.old.test_page import elements
from tests.report.old.test_summary import statements


def sweep(*values):
    return [(2.0**k, value) for k, value in enumerate(values)]


@pytest.mark.parametrize(
    ("values", "low", "high", "below", "above"),
    [
        ((0.7, 0.799, 0.8, 0.7981, 0.7), 2, 8, False, False),
        ((0.8, 0.79), 1, 1, True, False),
        ((0.79, 0.799, 0.8), 2, 4, False, True),
        ((0.8, 0.8, 0.8), 1, 4, True, True),
        ((0.799, 0.7, 0.8, 0.7), 4, 4, False, False),  # what is beyond a gap does not count
        ((None, 0.799, 0.8, None), 2, 4, False, False),  # diverged
        ((None, None, 0.8), 4, 4, False, True),
    ],
)
def test_the_good_range_goes_from_the_best_to_the_first_that_is_worse(
    values, low, high, below, above
):
    found = good_range(sweep(*values))
    assert (found.low, found.high) == (low, high)
    assert (found.open_below, found.open_above) == (below, above)
    assert found.factor == high / low
    assert found.best == 0.8


def test_without_a_score_there_is_no_good_range():
    assert good_range([]) is None
    assert good_range(sweep(None, None)) is None


def test_the_widths_are_told_widest_first_and_where_the_sweep_ends():
    wide = make_study("cfsgd", lr_sweep=[{"lr": 0.5 * 2**k, "val_auc": 0.8} for k in range(5)])
    narrow = make_study(
        "adam",
        lr_sweep=[
            {"lr": lr, "val_auc": auc} for lr, auc in ((1, None), (2, 0.78), (4, 0.8), (8, 0.7))
        ],
    )
    told = statements(make_tuned(narrow, wide))
    assert told["Good learning rates"] == (
        "With all else at its best, the validation AUC stays within 0.002 of the best: "
        "CF-SGD over a factor of at least 16, 0.5 to 8, and may go on below and above; "
        "Adam only at 4."
    )


@pytest.mark.parametrize(("above", "told"), [(0.001, False), (0.003, True)])
def test_a_sweep_that_surpasses_the_trials_is_told(above, told):
    study = make_study("cfsgd")
    best = study["best"]["value"]
    study["lr_sweep"] = [{"lr": 1.0, "val_auc": best}, {"lr": 2.0, "val_auc": best + above}]
    words = "The sweep found a learning rate for CF-SGD that does clearly better than any trial"
    assert (words in statements(make_tuned(study))["Tuned"]) == told
    study["best"] = {**study["best"], "value": best + above, "from": "sweep"}
    assert (words in statements(make_tuned(study))["Tuned"]) == told


def test_settings_of_the_sweep_are_told_and_marked():
    study = make_study("cfsgd")
    trial = study["best"]
    study["lr_sweep"][7]["val_auc"] = 0.9
    lr = study["lr_sweep"][7]["lr"]
    better = {"value": 0.9, "from": "sweep", "params": {**trial["params"], "lr": lr}}
    study["best"] = {**trial, **better}
    read = read_results(make_tuned(study))
    _, line = tuning_figures.rate_sensitivity(read, read_studies(read)).data
    assert list(line.x) == [2.0**k for k in range(-4, 4)]
    assert max(line.marker.size) == line.marker.size[7]
    table = next(part.html for part in tuning_sections(read) if part.title == "Best settings")
    assert f"0.9000 in the sweep around trial {trial['number'] + 1}" in table
    assert f"{lr:.4g}" in table


def test_what_is_left_out_is_told_from_what_does_not_apply(tmp_path):
    with_none = make_study("cfsgd", best={"number": 0, "params": {"lr": 1.0, "max_lr_ratio": None}})
    without = make_study("adam", best={"number": 0, "params": {"lr": 1.0}})
    (table,) = [
        section.html
        for section in tuning_sections(read_results(make_tuned(with_none, without)))
        if section.title == "Best settings"
    ]
    (row,) = [row for row in table.split("<tr>") if "Cap on" in row]
    assert row.count("none") == 1
    assert row.index("none") < row.index("\N{EN DASH}")


def test_the_best_so_far_never_falls_and_counts_what_came_to_its_end():
    values = [("diverged", None), ("complete", 0.7), ("pruned", 0.9), ("complete", 0.6)]
    trials = [
        {"number": k, "state": state, "value": value, "params": {"lr": 1.0}}
        for k, (state, value) in enumerate([*values, ("complete", 0.8)])
    ]
    (study,) = read_studies(read_results(make_tuned(make_study("cfsgd", trials=trials))))
    assert tuning_figures.so_far(study) == [(2, 0.7), (3, 0.7), (4, 0.7), (5, 0.8)]


def test_lines_have_the_looks_of_the_optimizers_first_run():
    runs = [make_run(name, seed=seed) for name in ("cfsgd", "adam") for seed in (0, 1)]
    results = make_tuned(make_study("adam"), make_study("cfsgd"), runs=runs)
    read = read_results(results)
    looks = styles(read.runs)
    for figure in (
        tuning_figures.best_so_far(read, read_studies(read)),
        tuning_figures.rate_sensitivity(read, read_studies(read)),
    ):
        assert {trace.meta["run"] for trace in figure.data} == {0, 2}
        for trace in figure.data:
            assert trace.marker.color == looks[trace.meta["run"]].light


def test_rates_are_drawn_over_that_of_the_best_trial():
    read = read_results(make_tuned(make_study("cfsgd")))
    (study,) = read_studies(read)
    trials, line = tuning_figures.rate_sensitivity(read, [study]).data
    assert list(line.x) == [2.0**k for k in range(-4, 4)]  # the last one diverged
    assert list(line.customdata) == [lr for lr, value in study.sweep if value is not None]
    assert max(line.marker.size) == line.marker.size[4]
    assert len(trials.x) == sum(trial.value is not None for trial in study.trials)


def test_an_optimizer_without_runs_is_in_the_tables_and_not_in_the_charts(tmp_path):
    failed = make_study("sgd", best=None, lr_sweep=[])
    results = make_tuned(make_study("adam"), failed)
    results["runs"] = results["runs"][:1]
    read = read_results(results)
    figure = tuning_figures.rate_sensitivity(read, read_studies(read))
    assert {trace.meta["run"] for trace in figure.data} == {0}
    text = elements(results, tmp_path).text
    assert "No trial of SGD came to its end." in text


def test_the_page_shows_the_search(tmp_path):
    page = elements(make_tuned(make_study("cfsgd"), make_study("adam")), tmp_path)
    charts = [entry for entry in page.of("div") if entry.get("class") == "chart"]
    names = [entry["data-figure"] for entry in charts]
    assert {"search", "learning-rates"} <= set(names)
    assert all("CF-SGD" in entry["aria-label"] for entry in charts)
    for words in (
        "CF-SGD and Adam, tuned on movielens-1m",
        "10 trials of CF-SGD and Adam",
        "Learning rates that do well",
        "Best settings",
        "It falls to 0 over epochs",
        "8 to the end, 1 stopped early and 1 diverged",
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


def test_several_seeds_have_a_mean_and_a_spread(tmp_path):
    scores = (0.80, 0.81, 0.83)
    runs = [make_run("cfsgd", seed=k, test_auc=auc) for k, auc in enumerate(scores)]
    results = make_results(*runs, make_run("adam"))
    mean, spread = statistics.fmean(scores), statistics.stdev(scores)
    expected = f"{mean:.4f} ± {spread:.4f}"
    adam = make_run("adam")["test_auc"]
    assert statements(results)["Test"] == (
        "AUC on the test samples, mean and standard deviation over seeds: "
        f"Adam {adam:.4f} (1 seed) and CF-SGD {expected} (3 seeds)."
    )
    assert expected in elements(results, tmp_path).text
    assert "over three seeds: CF-SGD" in statements(make_results(*runs))["Test"]
    rates = make_results(make_run("cfsgd", lr=1.0, seed=0), make_run("cfsgd", lr=2.0, seed=1))
    assert "seeds" not in statements(rates)["Test"]
