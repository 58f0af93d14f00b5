"""What a page tells of runs: its tiles, its sentences, what to read with care."""

from __future__ import annotations

import math
import re
import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freqsgd.report.comparison import comparison_page
from freqsgd.report.page import SENTENCES, Page
from freqsgd.report.results import read_results
from tests.report.made_up import make_results, make_run, plain, point


def page_of(results: dict[str, Any]) -> Page:
    return comparison_page(read_results(results))


def section(page: Page, title: str) -> Any:
    """The section whose title begins so; None if it is left out."""
    return next((one for one in page.sections if one and one.title.startswith(title)), None)


def told(results: dict[str, Any]) -> str:
    """All sentences of a page, those under "Read with care" too."""
    page = page_of(results)
    care = section(page, "Read with care")
    return plain("\n".join([*page.sentences, *(care.remarks if care else ())]))


def cells(results: dict[str, Any], title: str) -> list[list[str]]:
    """The rows of a section's first table, with its head."""
    (table, *_) = section(page_of(results), title).tables
    return [list(table.head), *([plain(cell.text) for cell in row] for row in table.rows)]


def tiles(results: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {tile.title: (plain(tile.value), plain(tile.note)) for tile in page_of(results).tiles}


def run_of(
    optimizer: str, *aucs: float | None, pace: float | None = 1.0, **more: Any
) -> dict[str, Any]:
    """A run with these validation AUCs, ``pace`` seconds an epoch, at its best where it was."""
    points = [
        point(epoch, auc, None if pace is None else pace * epoch)
        for epoch, auc in enumerate(aucs, start=1)
    ]
    known = [entry for entry in points if entry["val_auc"] is not None]
    best = max(known, key=lambda entry: entry["val_auc"])["epoch"] if known else None
    return make_run(optimizer, **{"epochs": points, "best_epoch": best, **more})


def test_the_model_is_in_the_title_and_the_size_of_the_data_with_the_settings():
    page = page_of(make_results())
    assert page.title == "FM on movielens-1m: SGD, CF-SGD, Adagrad and Adam"
    sizes = dict(cells(make_results(), "Data"))
    assert sizes["Rows"] == "1,000,209"
    assert sizes["Tokens"] == "9,748"
    assert sizes["Positive rate"] == "57%"
    assert [sizes[key] for key in ("Train", "Validation", "Test")] == [
        "800,167",
        "100,021",
        "100,021",
    ]


def test_five_optimizers_are_in_the_title_and_of_more_the_number():
    names = ["sgd", "cfsgd", "cfadam", "adagrad", "adam", "fasgd"]
    five, six = (page_of(make_results(*map(make_run, names[:most]))).title for most in (5, 6))
    assert five == "FM on movielens-1m: SGD, CF-SGD, CFAdam, Adagrad and Adam"
    assert six == "FM on movielens-1m: 6 runs"


def test_settings_have_the_shape_of_the_model_also_where_no_option_was_given():
    settings = {"dim": None, "hidden": [], "patience": 5}
    run = make_run("sgd", options={"rule": {}, "settings": settings})
    model = {"name": "deepfm", "dim": 16, "hidden": [32, 8]}
    splits = {"train": 4000.0, "validation": 500}
    page = page_of(make_results(run, model=model, splits=splits))
    data, chosen = (
        {name.text: cell.text for name, cell in table.rows}
        for table in section(page, "Data and settings").tables
    )
    assert chosen["Dimension"] == "16"
    assert chosen["Hidden"] == "32, 8"
    assert chosen["Batch size"] == "1,024"
    assert [chosen[name] for name in ("Epochs", "Patience", "Seed")] == ["27 of 60", "5", "0"]
    assert (data["Train"], data["Validation"]) == ("4,000", "500")


def test_a_page_opens_with_at_most_five_sentences_and_loses_no_caveat():
    names = ("sgd", "cfsgd", "adam", "adagrad", "rowwise-adagrad")
    runs = [make_run(name, stopped="interrupted") for name in names]
    page = page_of(make_results(*runs))
    assert len(page.sentences) == SENTENCES
    assert told(make_results(*runs)).count("was interrupted after") == 5
    assert "Each optimizer ran once (seed 0)" in told(make_results(*runs))


def test_the_best_is_named_with_epoch_and_second():
    results = make_results(
        run_of("sgd", 0.6, 0.7), run_of("adam", 0.7, 0.8, 0.75, pace=2.5), run_of("adagrad", 0.79)
    )
    assert tiles(results)["Highest validation AUC"] == ("0.8000", "Adam: epoch 2, 5.0 s")


def test_optimizers_are_compared_by_their_means_and_middle_runs_not_by_their_luckiest_seeds():
    luck = {
        "cfsgd": ((0.70, 0.75), (0.60, 0.71), (0.62, 0.65, 0.72)),
        "sgd": ((0.60, 0.61, 0.70), (0.60, 0.69), (0.60, 0.74)),
        "adam": ((0.73, 0.72), (0.729, 0.72), (0.731, 0.72)),
    }
    runs = [
        run_of(name, *aucs, seed=seed)
        for name, seeds in luck.items()
        for seed, aucs in enumerate(seeds)
    ]
    shown = tiles(make_results(*runs))
    assert shown["Highest validation AUC"] == ("0.7300", "Adam: mean of 3 seeds")
    assert shown["CF-SGD minus Adam, validation AUC"] == (
        "\N{MINUS SIGN}0.0033",
        "0.7267 against 0.7300, means over seeds",
    )
    assert shown["CF-SGD (seed 2) as good as SGD (seed 0)'s best"][0] == "epoch 3"


def test_of_several_rates_the_best_one_speaks_for_its_optimizer():
    runs = [run_of("cfsgd", auc, lr=lr) for auc, lr in ((0.6, 1.0), (0.8, 2.0), (0.7, 4.0))]
    shown = tiles(make_results(*runs, run_of("adam", 0.75), run_of("sgd", 0.5, 0.7)))
    assert shown["CF-SGD (lr 2.0) minus Adam, validation AUC"][0] == "+0.0500"
    assert shown["CF-SGD (lr 2.0) as good as SGD's best"][0] == "epoch 1"


def test_equal_bests_are_shared():
    results = make_results(
        run_of("sgd", 0.6, 0.7, 0.8), run_of("cfsgd", 0.8, 0.7), run_of("adam", 0.7)
    )
    assert tiles(results)["Highest validation AUC"] == (
        "0.8000",
        "SGD and CF-SGD; then Adam with 0.7000",
    )


@pytest.mark.parametrize(
    ("slow", "fast", "value", "note"),
    [
        (
            run_of("sgd", 0.5, 0.55, 0.6, 0.65, 0.7, 0.8),
            run_of("cfsgd", 0.7, 0.81, 0.82, pace=1.5),
            "epoch 2",
            "3.0 times fewer epochs and 2.0 times less time; SGD: epoch 6, 6.0 s",
        ),
        (
            run_of("sgd", 0.8, 0.7),
            run_of("cfsgd", 0.6, 0.7, 0.9, pace=0.5),
            "epoch 3",
            "3.0 times more epochs and 1.5 times more time; SGD: epoch 1, 1.0 s",
        ),
        (
            run_of("sgd", 0.7, 0.8),
            run_of("cfsgd", 0.6, 0.75, 0.7),
            "never",
            "0.0500 short of 0.8000",
        ),
        (
            run_of("sgd", 0.7, 0.8),
            run_of("cfsgd", 0.6, 0.8),
            "epoch 2",
            "as many epochs and as much time; SGD: epoch 2, 2.0 s",
        ),
        (
            run_of("sgd", 0.7, 0.8, pace=None),
            run_of("cfsgd", 0.8, pace=None),
            "epoch 1",
            "2.0 times fewer epochs; SGD: epoch 2",
        ),
    ],
    ids=["sooner", "later", "never", "equal", "no clock"],
)
def test_cfsgd_is_measured_by_when_it_reaches_sgds_best(slow, fast, value, note):
    found = tiles(make_results(slow, fast))["CF-SGD as good as SGD's best"]
    assert found == (value, note)


aucs = st.lists(st.integers(5000, 9000).map(lambda value: value / 10_000), min_size=1, max_size=6)


@given(aucs, aucs)
def test_the_tile_on_sgd_is_true_of_any_two_runs(slow, fast):
    runs = run_of("sgd", *slow), run_of("cfsgd", *fast)
    value, note = tiles(make_results(*runs))["CF-SGD as good as SGD's best"]
    reaching = [epoch for epoch, auc in enumerate(fast, start=1) if auc >= max(slow)]
    if not reaching:
        assert value == "never"
        assert f"{max(slow) - max(fast):.4f} short" in note
    else:
        needed, first = 1 + slow.index(max(slow)), reaching[0]
        assert value == f"epoch {first}"
        assert ("fewer epochs and" in note) == (first < needed)
        assert ("more epochs and" in note) == (first > needed)
        if first != needed:
            said = float(re.findall(r"([\d.]+) times \w+ epochs", note)[0])
            assert math.isclose(said, max(first, needed) / min(first, needed), abs_tol=0.051)


@given(aucs, aucs)
def test_the_tile_on_adam_is_true_of_any_two_runs(mine, theirs):
    runs = run_of("cfsgd", *mine), run_of("adam", *theirs)
    value, _ = tiles(make_results(*runs))["CF-SGD minus Adam, validation AUC"]
    gap = round(max(mine) - max(theirs), 4)
    sign = "+" if gap > 0 else "\N{MINUS SIGN}" if gap < 0 else ""
    assert value == f"{sign}{abs(gap):.4f}"


@pytest.mark.parametrize(
    ("mine", "theirs", "words"),
    [
        (1_000, 128_000, "128 times less: Adam keeps 128 kB"),
        (128_000, 1_000, "128 times more: Adam keeps 1.00 kB"),
        (1_000, 1_000, "as much: Adam keeps 1.00 kB"),
        (1_000, 0, "more: Adam keeps none"),
    ],
)
def test_state_is_compared_with_adams(mine, theirs, words):
    runs = make_run("cfsgd", state_bytes=mine), make_run("adam", state_bytes=theirs)
    assert tiles(make_results(*runs))["Optimizer state of CF-SGD"][1] == words


def test_one_optimizer_alone_is_compared_with_nothing():
    results = make_results(run_of("cfsgd", 0.7, 0.8))
    assert page_of(results).sentences == []
    assert section(page_of(results), "Read with care") is None
    assert set(tiles(results)) == {"Highest validation AUC", "Optimizer state of CF-SGD"}


def test_without_cfsgd_nothing_is_said_of_it():
    results = make_results(make_run("sgd"), make_run("adam"))
    assert "CF-SGD" not in told(results)
    assert set(tiles(results)) == {"Highest validation AUC"}


def test_a_run_that_diverged_at_once_is_told_and_not_compared():
    failed = run_of("sgd", stopped="diverged", error="loss is nan at step 7 with lr 1e3.")
    words = told(make_results(failed, run_of("cfsgd", 0.7)))
    assert "SGD diverged at its start: loss is nan at step 7 with lr 1e3." in words
    assert set(tiles(make_results(failed, run_of("cfsgd", 0.7)))) == {
        "Highest validation AUC",
        "Optimizer state of CF-SGD",
    }


def test_a_run_that_diverged_later_counts_up_to_there():
    failed = run_of("sgd", 0.6, 0.9, math.nan, stopped="diverged")
    results = make_results(failed, run_of("cfsgd", 0.7))
    assert tiles(results)["Highest validation AUC"] == ("0.9000", "SGD: epoch 2, 2.0 s")
    words = told(results)
    assert "SGD diverged after 3 epochs; its figures are from before." in words


def test_when_all_diverged_there_is_no_best():
    results = make_results(*(run_of(name, stopped="diverged") for name in ("sgd", "cfsgd")))
    assert "No run got as far" in told(results)
    assert set(tiles(results)) == {"Optimizer state of CF-SGD"}


def test_a_run_that_was_still_rising_when_it_ran_out_of_epochs_is_told():
    rising = run_of("sgd", 0.6, 0.7, stopped="epochs")
    fallen = run_of("adam", 0.7, 0.6, stopped="epochs")
    words = told(make_results(rising, fallen))
    assert "Best in the last epoch, so more epochs may help: SGD." in words
    assert "Adam was" not in words


def test_timings_that_something_disturbed_are_warned_of():
    def speeds(optimizer: str, *values: float) -> dict[str, Any]:
        run = run_of(optimizer, *([0.7] * len(values)))
        for entry, value in zip(run["epochs"], values, strict=True):
            entry["samples_per_second"] = value
        return run

    even, uneven = speeds("adam", 90.0, 100.0), speeds("sgd", 10.0, 100.0, 90.0)
    words = told(make_results(even, uneven))
    assert "Some epochs of SGD took over 2 times as long as others" in words
    assert "Some epochs" not in told(make_results(even, run_of("sgd", 0.7)))


def test_single_seeds_are_warned_of_and_several_have_a_mean_and_a_spread():
    assert "Each optimizer ran once (seed 0)" in told(make_results())
    scores = (0.80, 0.81, 0.83)
    seeds = [make_run("cfsgd", seed=k, test_auc=auc) for k, auc in enumerate(scores)]
    assert "ran once" not in told(make_results(*seeds))
    (head, row) = cells(make_results(*seeds, make_run("adam")), "Mean and spread")
    assert row[:2] == ["CF-SGD", "3"]
    mean, spread = statistics.fmean(scores), statistics.stdev(scores)
    assert row[head.index("Test AUC")] == f"{mean:.4f} \N{PLUS-MINUS SIGN} {spread:.4f}"
    rates = make_results(make_run("cfsgd", lr=1.0, seed=0), make_run("cfsgd", lr=2.0, seed=1))
    assert section(page_of(rates), "Mean and spread") is None


def test_without_a_split_that_is_said():
    untested = {"test_auc": None, "test_loss": None, "test_auc_by_frequency": None}
    runs = [make_run(name, **untested) for name in ("sgd", "cfsgd")]
    page = page_of(make_results(*runs, splits={"train": 90, "validation": 10, "test": 0}))
    sizes = [[cell.text for cell in row] for row in section(page, "Data").tables[0].rows]
    assert ["Test", "0"] in sizes
    runs = [run_of(name, None, None) for name in ("sgd", "adam")]
    words = told(make_results(*runs, splits={"train": 9, "validation": 0, "test": 1}))
    assert "There is no validation split" in words


def test_without_auc_the_validation_loss_decides_and_lower_is_better():
    def losses(optimizer: str, *values: float) -> dict[str, Any]:
        entries = [{"epoch": at, "val_loss": value} for at, value in enumerate(values, start=1)]
        more = {
            "best_epoch": None,
            "test_auc": None,
            "test_auc_by_frequency": {},
            "test_loss": values[-1],
        }
        return make_run(optimizer, epochs=entries, **more)

    results = make_results(losses("sgd", 6.0, 5.5, 5.2), losses("cfsgd", 5.4, 5.1))
    assert tiles(results)["Lowest validation loss"] == ("5.1000", "CF-SGD: epoch 2")
    title = "CF-SGD as good as SGD's best"
    assert tiles(results)[title] == ("epoch 2", "1.5 times fewer epochs; SGD: epoch 3")


def test_no_headline_is_built_on_a_run_that_patience_ended_while_it_learned():
    slow = run_of("sgd", 0.6, 0.7, 0.71, 0.705)
    runs = [run_of("cfsgd", 0.72, 0.73, 0.72), run_of("adam", 0.7, 0.725, 0.72)]
    title = "CF-SGD as good as SGD's best"
    fair = make_results(slow, *runs)
    assert tiles(fair)[title][0] == "epoch 1"

    marked = make_results({**slow, "still_learning": True}, *runs)
    assert title not in tiles(marked)
    words = told(marked)
    assert (
        "SGD ended by patience after epoch 4 while its training and validation losses still fell: "
        "compare it with a larger patience." in words
    )


@pytest.mark.parametrize("marked", ["cfsgd", "adam"])
def test_no_distance_is_shown_to_a_run_that_patience_ended_while_it_learned(marked):
    runs = [
        run_of(name, 0.6, 0.7, 0.69, still_learning=name == marked) for name in ("cfsgd", "adam")
    ]
    assert "Highest validation AUC" in tiles(make_results(*runs))
    assert not [title for title in tiles(make_results(*runs)) if "minus" in title]


def test_that_sgd_was_ahead_is_told_whatever_ended_it():
    runs = [run_of("cfsgd", 0.6, 0.61), run_of("sgd", 0.6, 0.7, still_learning=True)]
    assert tiles(make_results(*runs))["CF-SGD as good as SGD's best"][0] == "never"


def test_the_state_of_cfadam_is_told_beside_that_of_adam():
    names = ("cfsgd", "cfadam", "adam")
    both, alone = (tiles(make_results(*map(make_run, some))) for some in (names, names[1:]))
    assert both["Optimizer state of CF-SGD"] == (
        "39.0 kB",
        "130 times less: Adam keeps 5.07 MB; CFAdam keeps 40.0 kB",
    )
    assert alone["Optimizer state of CFAdam"] == ("40.0 kB", "127 times less: Adam keeps 5.07 MB")
