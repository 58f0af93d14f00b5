from __future__ import annotations

import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freqsgd.report.old.headline import headline
from freqsgd.report.old.kinds import kind_of
from freqsgd.report.old.results import read_results
from freqsgd.report.old.sections import curves_title
from freqsgd.report.old.summary import summarize
from tests.report.made_up import make_results, make_run, plain, point


def statements(results: dict[str, Any]) -> dict[str, str]:
    read = read_results(results)
    return {each.topic: plain(each.text) for each in summarize(read, kind_of(read))}


def tiles(results: dict[str, Any]) -> dict[str, tuple[str, str]]:
    read = read_results(results)
    return {
        tile.title: (plain(tile.value), plain(tile.note)) for tile in headline(read, kind_of(read))
    }


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


def test_the_setting_is_told_first():
    topic, text = next(iter(statements(make_results()).items()))
    assert topic == "Compared"
    assert text == (
        "Four optimizers trained FM (64 dimensions) on movielens-1m: "
        "SGD, CF-SGD, Adagrad and Adam. "
        "The data hold 1,000,209 samples, 2 fields and 9,748 tokens; "
        "57.5% of the labels are positive. "
        "Of the samples there are 800,167 for training, 100,021 for validation "
        "and 100,021 for the test."
    )


def test_hidden_layers_are_told():
    results = make_results(model={"name": "deepfm", "dim": 16, "hidden": [16, 8]})
    assert "DeepFM (16 dimensions, hidden layers of 16 and 8)" in statements(results)["Compared"]


def test_the_best_is_named_with_epoch_second_and_the_next():
    results = make_results(
        run_of("sgd", 0.6, 0.7), run_of("adam", 0.7, 0.8, 0.75, pace=2.5), run_of("adagrad", 0.79)
    )
    assert statements(results)["Best validation AUC"] == (
        "Adam reached 0.8000 in epoch 2 after 5.0 s. Next is Adagrad with 0.7900, 0.0100 lower."
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
    assert shown["CF-SGD less Adam, validation AUC"] == (
        "\N{MINUS SIGN}0.0033",
        "0.7267 against 0.7300, means over seeds",
    )
    assert shown["CF-SGD (seed 2) as good as SGD (seed 0)'s best"][0] == "epoch 3"
    told = statements(make_results(*runs))
    assert told["Best validation AUC"] == (
        "Adam reached 0.7300 on average over three seeds. Next is CF-SGD with 0.7267, 0.0033 lower."
    )
    assert told["CF-SGD and Adam"].startswith(
        "The mean best validation AUC of CF-SGD, 0.7267, is 0.0033 lower than that of Adam, 0.7300."
    )


def test_of_several_rates_the_best_one_speaks_for_its_optimizer():
    runs = [run_of("cfsgd", auc, lr=lr) for auc, lr in ((0.6, 1.0), (0.8, 2.0), (0.7, 4.0))]
    told = statements(make_results(*runs, run_of("adam", 0.75)))
    assert "CF-SGD (lr 2.0), 0.8000, is 0.0500 higher" in told["CF-SGD and Adam"]


def test_equal_bests_are_shared():
    results = make_results(
        run_of("sgd", 0.6, 0.7, 0.8), run_of("cfsgd", 0.8, 0.7), run_of("adam", 0.7)
    )
    assert statements(results)["Best validation AUC"] == (
        "SGD and CF-SGD share the highest value, 0.8000: "
        "SGD in epoch 3 after 3.0 s and CF-SGD in epoch 1 after 1.0 s."
    )


def test_a_lead_that_rounding_hides_is_called_small():
    results = make_results(run_of("sgd", 0.80001), run_of("adam", 0.80003))
    assert (
        "Next is SGD with 0.8000, less than 0.0001 lower."
        in statements(results)["Best validation AUC"]
    )


def test_cfsgd_that_learns_sooner_is_measured_by_epochs_and_seconds():
    results = make_results(
        run_of("sgd", 0.5, 0.55, 0.6, 0.65, 0.7, 0.8), run_of("cfsgd", 0.7, 0.81, 0.82, pace=1.5)
    )
    assert statements(results)["CF-SGD and SGD"] == (
        "SGD reached its best validation AUC, 0.8000, in epoch 6 after 6.0 s. "
        "CF-SGD got there in epoch 2 after 3.0 s: 3.0 times fewer epochs and 2.0 times less time."
    )
    assert tiles(results)["CF-SGD as good as SGD's best"] == (
        "epoch 2",
        "after 3.0 s; SGD: epoch 6, 6.0 s",
    )


def test_cfsgd_that_learns_later_is_said_to():
    results = make_results(run_of("sgd", 0.8, 0.7), run_of("cfsgd", 0.6, 0.7, 0.9, pace=0.5))
    assert statements(results)["CF-SGD and SGD"].endswith(
        "CF-SGD got there in epoch 3 after 1.5 s: 3.0 times more epochs and 1.5 times more time."
    )


def test_cfsgd_that_never_gets_there_is_said_to():
    results = make_results(run_of("sgd", 0.7, 0.8), run_of("cfsgd", 0.6, 0.75, 0.7))
    assert statements(results)["CF-SGD and SGD"].endswith(
        "CF-SGD did not get there in 3 epochs: "
        "its best is 0.7500, 0.0500 lower, in epoch 2 after 2.0 s."
    )
    assert tiles(results)["CF-SGD as good as SGD's best"] == ("never", "0.0500 short of 0.8000")


def test_equal_runs_take_as_many_epochs_and_as_much_time():
    results = make_results(run_of("sgd", 0.7, 0.8), run_of("cfsgd", 0.6, 0.8))
    assert statements(results)["CF-SGD and SGD"].endswith(": as many epochs and as much time.")


def test_without_clock_only_epochs_are_compared():
    results = make_results(run_of("sgd", 0.7, 0.8, pace=None), run_of("cfsgd", 0.8, pace=None))
    assert statements(results)["CF-SGD and SGD"] == (
        "SGD reached its best validation AUC, 0.8000, in epoch 2. "
        "CF-SGD got there in epoch 1: 2.0 times fewer epochs."
    )


aucs = st.lists(st.integers(5000, 9000).map(lambda value: value / 10_000), min_size=1, max_size=6)


@given(aucs, aucs)
def test_words_on_sgd_are_true_of_any_two_runs(slow, fast):
    text = statements(make_results(run_of("sgd", *slow), run_of("cfsgd", *fast)))["CF-SGD and SGD"]
    reaching = [epoch for epoch, auc in enumerate(fast, start=1) if auc >= max(slow)]
    if not reaching:
        assert "did not get there" in text
        assert f"{max(slow) - max(fast):.4f} lower" in text
    else:
        needed, first = 1 + slow.index(max(slow)), reaching[0]
        assert f"CF-SGD got there in epoch {first} after {first}.0 s" in text
        assert ("fewer epochs and" in text) == (first < needed)
        assert ("more epochs and" in text) == (first > needed)
        if first != needed:
            said = float(re.findall(r"([\d.]+) times \w+ epochs", text)[0])
            assert math.isclose(said, max(first, needed) / min(first, needed), abs_tol=0.051)


@given(aucs, aucs)
def test_words_on_adam_are_true_of_any_two_runs(mine, theirs):
    text = statements(make_results(run_of("cfsgd", *mine), run_of("adam", *theirs)))[
        "CF-SGD and Adam"
    ]
    gap = round(max(mine) - max(theirs), 4)
    assert ("is the same as" in text) == (gap == 0)
    assert (f"is {gap:.4f} higher than" in text) == (gap > 0)
    assert (f"is {-gap:.4f} lower than" in text) == (gap < 0)


@pytest.mark.parametrize(
    ("mine", "theirs", "words"),
    [
        (1_000, 128_000, "CF-SGD 1.00 kB, Adam 128 kB, so CF-SGD keeps 128 times less."),
        (128_000, 1_000, "CF-SGD 128 kB, Adam 1.00 kB, so CF-SGD keeps 128 times more."),
        (1_000, 1_000, "CF-SGD 1.00 kB, Adam 1.00 kB, so CF-SGD keeps as much."),
        (1_000, 0, "CF-SGD 1.00 kB, Adam none, so CF-SGD keeps more."),
    ],
)
def test_state_is_compared_with_adams(mine, theirs, words):
    runs = make_run("cfsgd", state_bytes=mine), make_run("adam", state_bytes=theirs)
    assert statements(make_results(*runs))["CF-SGD and Adam"].endswith(words)


def test_one_optimizer_alone_is_compared_with_nothing():
    results = make_results(run_of("cfsgd", 0.7, 0.8))
    found = statements(results)
    assert found["Trained"].startswith("CF-SGD trained FM (64 dimensions) on movielens-1m.")
    assert found["Best validation AUC"] == "CF-SGD reached 0.8000 in epoch 2 after 2.0 s."
    assert not {"Compared", "CF-SGD and SGD", "CF-SGD and Adam", "Read with care"} & set(found)
    assert set(tiles(results)) == {"Highest validation AUC", "Optimizer state of CF-SGD"}


def test_without_cfsgd_nothing_is_said_of_it():
    results = make_results(make_run("sgd"), make_run("adam"))
    assert "CF-SGD" not in " ".join(statements(results).values())
    assert set(tiles(results)) == {"Highest validation AUC"}


def test_a_run_that_diverged_at_once_is_told_and_not_compared():
    failed = run_of("sgd", stopped="diverged", error="loss is nan at step 7 with lr 1e3.")
    found = statements(make_results(failed, run_of("cfsgd", 0.7)))
    assert (
        "SGD diverged in its first epoch: loss is nan at step 7 with lr 1e3."
        in found["Read with care"]
    )
    assert "No other run got as far as a validation AUC." in found["Best validation AUC"]
    assert "CF-SGD and SGD" not in found


def test_a_run_that_diverged_later_counts_up_to_there():
    failed = run_of("sgd", 0.6, 0.9, math.nan, stopped="diverged")
    found = statements(make_results(failed, run_of("cfsgd", 0.7)))
    assert found["Best validation AUC"].startswith("SGD reached 0.9000 in epoch 2")
    assert (
        "SGD diverged after 3 epochs. Its figures are from the time before."
        in found["Read with care"]
    )


def test_when_all_diverged_there_is_no_best():
    runs = [run_of(name, stopped="diverged") for name in ("sgd", "cfsgd")]
    results = make_results(*runs)
    assert statements(results)["Best validation AUC"].startswith("No run got as far")
    assert set(tiles(results)) == {"Optimizer state of CF-SGD"}


def test_an_interrupted_run_is_told():
    found = statements(make_results(run_of("sgd", 0.6, stopped="interrupted"), run_of("adam", 0.7)))
    assert "SGD was interrupted after 1 epoch (60 were planned)." in found["Read with care"]


def test_a_run_that_was_still_rising_when_it_ran_out_of_epochs_is_told():
    rising = run_of("sgd", 0.6, 0.7, stopped="epochs")
    fallen = run_of("adam", 0.7, 0.6, stopped="epochs")
    care = statements(make_results(rising, fallen))["Read with care"]
    assert "SGD was at its best in its last epoch, 2" in care
    assert "Adam" not in care


def test_timings_that_something_disturbed_are_warned_of():
    def speeds(optimizer: str, *values: float) -> dict[str, Any]:
        run = run_of(optimizer, *([0.7] * len(values)))
        for entry, value in zip(run["epochs"], values, strict=True):
            entry["samples_per_second"] = value
        return run

    even, uneven = speeds("adam", 90.0, 100.0), speeds("sgd", 10.0, 100.0, 90.0)
    care = statements(make_results(even, uneven))["Read with care"]
    assert "Some epochs of SGD took over 2 times as long as others" in care
    assert "Some epochs" not in statements(make_results(even, run_of("sgd", 0.7)))["Read with care"]


def test_single_seeds_are_warned_of_and_several_are_not():
    warning = "Each optimizer ran once (seed 0)"
    assert warning in statements(make_results())["Read with care"]
    seeds = [make_run("sgd", seed=seed) for seed in range(3)]
    assert "Read with care" not in statements(make_results(*seeds))


def test_test_scores_are_ranked_and_missing_ones_named():
    runs = [
        make_run("sgd", test_auc=0.7),
        make_run("cfsgd", test_auc=None),
        make_run("adam", test_auc=0.8),
    ]
    found = statements(make_results(*runs))
    assert (
        found["Test"]
        == "AUC on the test samples: Adam 0.8000 and SGD 0.7000. There is none for CF-SGD."
    )


def test_without_test_split_that_is_said():
    untested = {"test_auc": None, "test_loss": None, "test_auc_by_frequency": None}
    runs = [make_run(name, **untested) for name in ("sgd", "cfsgd")]
    splits = {"train": 90, "validation": 10, "test": 0}
    found = statements(make_results(*runs, splits=splits))
    assert found["Test"] == "There is no test split, so there are no test scores."
    assert "90 for training, 10 for validation and none for the test." in found["Compared"]
    assert "Rare tokens" not in found
    assert statements(make_results(*runs))["Test"] == "In these results there are no test scores."


def test_without_validation_split_that_is_said():
    runs = [run_of(name, None, None) for name in ("sgd", "adam")]
    found = statements(make_results(*runs, splits={"train": 9, "validation": 0, "test": 1}))
    assert found["Best validation AUC"].startswith("There is no validation split")


def test_rare_tokens_are_ranked_also_where_cfsgd_is_last():
    text = statements(make_results())["Rare tokens"]
    assert text.endswith("Adam 0.7224, SGD 0.7211, Adagrad 0.7203 and CF-SGD 0.7104.")


@pytest.mark.parametrize(
    ("auc", "words"),
    [
        (0.79, "The best, SGD, is 0.0100 below that."),
        (0.81, "The best, SGD, is 0.0100 above that."),
        (0.8, "The best, SGD, is exactly there."),
    ],
)
def test_generated_data_know_the_best_possible_score(auc, words):
    results = make_results(run_of("sgd", auc), best_possible={"val_auc": 0.8, "test_auc": 0.8})
    assert statements(results)["Best possible"].endswith(f"is 0.8000. {words}")


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

    found = statements(make_results(losses("sgd", 6.0, 5.5, 5.2), losses("cfsgd", 5.4, 5.1)))
    assert found["Best validation loss"] == (
        "CF-SGD reached 5.1000 in epoch 2. Next is SGD with 5.2000, 0.1000 higher."
    )
    assert found["CF-SGD and SGD"].endswith("CF-SGD got there in epoch 2: 1.5 times fewer epochs.")
    assert found["Test"] == "Loss on the test samples: CF-SGD 5.1000 and SGD 5.2000."


def test_the_best_of_several_runs_speaks_for_an_optimizer():
    runs = [run_of("cfsgd", 0.6, lr=1.0), run_of("cfsgd", 0.8, lr=2.0), run_of("sgd", 0.5, 0.7)]
    assert (
        "CF-SGD (lr 2.0) got there in epoch 1" in statements(make_results(*runs))["CF-SGD and SGD"]
    )


def test_no_headline_is_built_on_a_run_that_patience_ended_while_it_learned():
    slow = run_of("sgd", 0.6, 0.7, 0.71, 0.705)
    runs = [run_of("cfsgd", 0.72, 0.73, 0.72), run_of("adam", 0.7, 0.725, 0.72)]
    title = "CF-SGD as good as SGD's best"
    told, fair = statements(make_results(slow, *runs)), tiles(make_results(slow, *runs))
    assert fair[title][0] == "epoch 1"
    assert "3.0 times fewer epochs" in told["CF-SGD and SGD"]
    assert curves_of(slow, *runs) == "Learning curves: what takes SGD 3 epochs takes CF-SGD 1"

    marked = make_results({**slow, "still_learning": True}, *runs)
    assert title not in tiles(marked)
    told = statements(marked)
    assert told["CF-SGD and SGD"].endswith("CF-SGD got there in epoch 1 after 1.0 s.")
    assert told["Read with care"].startswith(
        "SGD ended by patience after epoch 4 while its training and validation losses still fell: "
        "it might have become better. Compare it with a larger patience."
    )
    assert curves_of({**slow, "still_learning": True}, *runs) == "Learning curves"


@pytest.mark.parametrize("marked", ["cfsgd", "adam"])
def test_no_distance_is_shown_to_a_run_that_patience_ended_while_it_learned(marked):
    runs = [
        run_of(name, 0.6, 0.7, 0.69, still_learning=name == marked) for name in ("cfsgd", "adam")
    ]
    assert "Highest validation AUC" in tiles(make_results(*runs))
    assert not [title for title in tiles(make_results(*runs)) if "less" in title]


def test_that_sgd_was_ahead_is_told_whatever_ended_it():
    runs = [run_of("cfsgd", 0.6, 0.61), run_of("sgd", 0.6, 0.7, still_learning=True)]
    assert tiles(make_results(*runs))["CF-SGD as good as SGD's best"][0] == "never"


def curves_of(*runs: dict[str, Any]) -> str:
    read = read_results(make_results(*runs))
    return plain(curves_title(read, kind_of(read)))
