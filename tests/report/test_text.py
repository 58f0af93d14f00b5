"""What a report tells of models of text."""

from __future__ import annotations

import math
import re

import pytest

from tests.report.made_up import HOSTILE, make_results, make_run
from tests.report.made_up_text import LEVELS, make_cbow_run, make_text_results, make_text_run
from tests.report.test_charts import charts_of, own_rows, rows
from tests.report.test_comparison import cells, page_of, tiles, told
from tests.report.test_page import elements

UNTESTED = {
    "test_loss": None,
    "test_loss_by_frequency": None,
    "test_loss_by_centre_frequency": None,
}


def losses(head, torso, tail):
    return {"head": head, "torso": torso, "tail": tail}


def pair(sgd, cfsgd):
    """SGD and CF-SGD with these losses by predicted word."""
    return make_text_results(
        make_text_run("sgd", test_loss_by_frequency=losses(*sgd)),
        make_text_run("cfsgd", test_loss_by_frequency=losses(*cfsgd)),
    )


def test_the_setting_is_told_in_words_of_text():
    page = page_of(make_text_results())
    assert page.title == "Skip-gram on wikitext-2: SGD, CF-SGD and Adam"
    sizes = dict(cells(make_text_results(), "Data"))
    assert sizes["Raw words"] == "2,051,910"
    assert sizes["Words"] == "1,681,243"
    assert sizes["Test"] == "195,803"


def test_no_word_on_samples_or_auc_is_left(tmp_path):
    text = elements(make_text_results(), tmp_path).text
    assert not re.search(r"AUC|[Ss]amples|[Ll]abels|tokens", text)


def test_the_headline_is_the_test_loss_against_sgd_and_adam():
    runs = [
        make_text_run(name, test_loss=loss)
        for name, loss in (("sgd", 6.1), ("cfsgd", 5.5), ("adam", 5.4), ("adagrad", 5.6))
    ]
    assert tiles(make_text_results(*runs)) == {
        "Lowest test loss": ("5.4000", "Adam; then CF-SGD with 5.5000"),
        "CF-SGD minus SGD, test loss": ("\N{MINUS SIGN}0.6000", "5.5000 against 6.1000"),
        "CF-SGD minus Adam, test loss": ("+0.1000", "5.5000 against 5.4000"),
        "Optimizer state of CF-SGD": ("34.5 kB", "601 times less: Adam keeps 20.8 MB"),
    }


def test_an_even_guess_is_a_level_of_softmax_only():
    runs = [make_text_run("sgd")]
    runs[0]["epochs"][0] |= {"val_loss": 8.3}
    guess = {"level": math.log(4_317), "words": f"an even guess: {math.log(4_317):.4f}"}
    assert guess in own_rows(charts_of(make_text_results(*runs))["validation"])
    other = make_text_results(*runs, model={"name": "skipgram", "loss": "negative"})
    assert not own_rows(charts_of(other)["validation"])


def test_skipgram_shows_centre_words_too_and_cbow_does_not():
    assert {"frequency", "centre-frequency"} <= set(charts_of(make_text_results()))
    cbow = make_text_results(make_cbow_run("sgd"), make_cbow_run("cfsgd"))
    assert "centre-frequency" not in charts_of(cbow)


def test_losses_are_shown_minus_those_of_sgd():
    chart = charts_of(pair((5, 7, 9), (4.5, 7.25, 8)))["frequency"]
    assert [row["at"] for row in rows(chart, "SGD")] == [0, 0, 0]
    found = rows(chart, "CF-SGD")
    assert [row["at"] for row in found] == [-0.5, 0.25, -1]
    assert [row["value"] for row in found] == [4.5, 7.25, 8]
    assert found[0]["words"] == "\N{MINUS SIGN}0.5000"
    assert {"level": 0.0, "words": ""} in own_rows(chart)
    assert "Below 0 is better than SGD" in chart.note


def test_losses_are_shown_minus_the_mean_of_several_seeds_of_sgd():
    runs = [
        make_text_run("sgd", seed=seed, test_loss_by_frequency=losses(4, 6, tail))
        for seed, tail in enumerate((8, 10))
    ]
    cfsgd = make_text_run("cfsgd", test_loss_by_frequency=losses(4, 6, 8.5))
    chart = charts_of(make_text_results(*runs, cfsgd))["frequency"]
    assert [row["at"] for row in rows(chart, "CF-SGD")] == [0, 0, -0.5]


@pytest.mark.parametrize("names", [("cfsgd", "adam"), ("sgd",)])
def test_losses_are_plain_where_there_is_nothing_to_see_them_against(names):
    runs = [make_text_run(name) for name in names]
    chart = charts_of(make_text_results(*runs))["frequency"]
    found = [row["at"] for row in chart.spec["data"]["values"]]
    assert sorted(found) == sorted(
        loss for run in runs for loss in run["test_loss_by_frequency"].values()
    )
    assert "SGD" not in chart.title


def test_the_table_has_losses_speed_state_and_similarity(tmp_path):
    text = elements(make_text_results(), tmp_path).text
    assert (
        "OptimizerLearning rateTraining lossValidation lossTest lossTail loss"
        "WordSim-353, 203 of 353 pairsSimLex-999, 482 of 999 pairs"
        "Epoch keptSeconds until thenState, MBWords/s" in text
    )
    assert "Batch size" in text


def test_similarity_is_told_with_its_coverage_and_its_error():
    runs = [
        make_text_run(
            name, similarity={"simlex999": {"spearman": rho, "pairs": 999, "covered": 65}}
        )
        for name, rho in (("sgd", -0.02), ("cfsgd", 0.31))
    ]
    head, *body = cells(make_text_results(*runs), "All runs")
    place = head.index("SimLex\N{NON-BREAKING HYPHEN}999, 65 of 999 pairs")
    assert [row[place] for row in body] == ["\N{MINUS SIGN}0.020", "0.310"]
    assert (
        "SimLex-999: Spearman's correlations of the vectors' cosines with people's judgement; "
        "by the choice of pairs alone they vary by about 0.12." in told(make_text_results(*runs))
    )  # 1 / sqrt(64) = 0.125


@pytest.mark.parametrize(
    "similarity",
    [None, {}, {"wordsim353": {"spearman": None, "pairs": 353, "covered": 2}}, {"wordsim353": {}}],
)
def test_without_a_correlation_there_is_no_word_on_similarity(similarity, tmp_path):
    results = make_text_results(make_text_run("sgd", similarity=similarity))
    assert "Spearman" not in told(results)
    assert "353" not in elements(results, tmp_path).text


def test_without_test_text_the_validation_loss_decides():
    runs = [make_text_run(name, **UNTESTED) for name in ("sgd", "cfsgd")]
    results = make_text_results(*runs, splits={"train": 9, "validation": 1, "test": 0})
    assert {"Lowest validation loss", "CF-SGD as good as SGD's best"} <= set(tiles(results))
    assert "frequency" not in charts_of(results)


def test_without_any_held_out_text_the_training_loss_is_told():
    runs = []
    for name in ("sgd", "cfsgd"):
        run = make_text_run(name, **UNTESTED)
        runs.append({**run, "epochs": [{**one, "val_loss": None} for one in run["epochs"]]})
    results = make_text_results(*runs, splits={"train": 9, "validation": 0, "test": 0})
    assert "Lowest training loss" in tiles(results)
    assert dict(cells(results, "Data"))["Validation"] == "0"
    assert tiles(results)["Lowest training loss"][1].startswith("CF-SGD: epoch")
    assert {"training-loss", "validation"} & set(charts_of(results)) == {"training-loss"}


def with_validation(optimizer, *values, **changes):
    entries = make_text_run(optimizer)["epochs"][: len(values)]
    epochs = [{**entry, "val_loss": one} for entry, one in zip(entries, values, strict=True)]
    return make_text_run(optimizer, epochs=epochs, best_epoch=len(values), **changes)


def test_a_kept_epoch_that_is_not_the_best_is_told():
    results = make_text_results(
        with_validation("sgd", 6.0, 5.5, 5.8), with_validation("cfsgd", 6.5, 6.0, 5.9)
    )
    words = told(results)
    assert (
        "SGD had a better validation loss, 5.5000, in epoch 2 than in epoch 3, whose weights were "
        "kept" in words
    )
    runs = [{**run, **UNTESTED} for run in results["runs"]]
    shown = tiles(make_text_results(*runs))
    assert shown["CF-SGD as good as SGD's best"] == ("never", "0.1000 short of 5.8000")


def test_a_rate_that_falls_to_its_end_has_finished():
    falling = with_validation("sgd", 6.0, 5.5)
    level = with_validation("adam", 6.0, 5.5)
    for entry in level["epochs"]:
        entry["lr"] = 0.025
    care = told(make_text_results(falling, level))
    assert "Best in the last epoch, so more epochs may help: Adam." in care
    assert "SGD was" not in care


def test_a_run_that_is_not_done_is_told():
    epochs = make_text_run("adam")["epochs"][:6]
    going = make_text_run("adam", epochs=epochs, stopped=None, best_epoch=None, **UNTESTED)
    words = told(make_text_results(make_text_run("cfsgd"), going))
    assert "Adam is not done: 6 of 20 epochs." in words


def test_a_run_that_diverged_leaves_the_others(tmp_path):
    failed = make_text_run(
        "sgd", epochs=[], best_epoch=None, stopped="diverged", error="the loss is nan", **UNTESTED
    )
    results = make_text_results(failed, make_text_run("cfsgd"))
    assert "SGD diverged at its start: the loss is nan." in elements(results, tmp_path).text
    assert "minus that of SGD" not in charts_of(results)["frequency"].title


def test_seeds_are_told_once_with_mean_and_spread():
    runs = [
        make_text_run(name, seed=seed, test_loss=LEVELS[name][0] + 0.1 * seed)
        for name in ("sgd", "cfsgd")
        for seed in range(3)
    ]
    head, *body = cells(make_text_results(*runs), "Mean and spread")
    place = head.index("Test loss")
    assert [row[place] for row in body] == ["6.1200 ± 0.1000", "5.7100 ± 0.1000"]


@pytest.mark.parametrize("key", sorted(set(make_text_run("sgd")) - {"optimizer"}))
def test_any_key_of_a_run_may_be_missing(key, tmp_path):
    runs = [make_text_run(name) for name in ("sgd", "cfsgd")]
    del runs[0][key]
    runs[1][key] = None
    assert elements(make_text_results(*runs), tmp_path).of("table")


@pytest.mark.parametrize("key", ["dataset", "splits", "model", "machine", "command"])
def test_any_key_of_the_results_may_be_missing(key, tmp_path):
    results = make_text_results(**{key: {"kind": "text"} if key == "dataset" else None})
    assert elements(results, tmp_path).of("table")


def test_strings_from_outside_stay_text(tmp_path):
    hostile = make_text_results(
        make_text_run("sgd", similarity={HOSTILE: {"spearman": 0.5, "pairs": 9, "covered": 5}}),
        model={"name": HOSTILE, "loss": HOSTILE},
        dataset={"name": HOSTILE, "kind": "text"},
    )
    page = elements(hostile, tmp_path)
    assert not page.of("img")
    assert len(page.of("script")) == 3
    assert HOSTILE in page.text


def test_options_of_recommenders_are_not_among_the_settings(tmp_path):
    options = {
        "rule": {"linear_lr_scale": 1.0, "linear_decay_scale": 1.0},
        "settings": {"windows": "full", "subsample": 0.0, "lr_decay": "epochs"},
    }
    text = elements(make_text_results(make_text_run("sgd", options=options)), tmp_path).text
    assert "Linear decay scale" not in text
    assert "WindowsfullSubsample0Learning rate decayepochs" in text
    others = make_results(make_run("sgd", options=options))
    assert "Linear decay scale" in elements(others, tmp_path).text
