from __future__ import annotations

import itertools
import math

import pytest

from freqsgd.errors import DataError
from freqsgd.report.diagnosis import (
    diagnosis_words,
    errors_left,
    exponent,
    read_ratios,
    some_epochs,
)
from freqsgd.report.results import read_results
from tests.report.made_up import make_results, plain
from tests.report.made_up_diagnosis import make_diagnosed
from tests.report.test_charts import charts_of, own_rows, rows
from tests.report.test_page import elements


def said(results) -> dict[str, str]:
    return {topic: plain(text) for topic, text in diagnosis_words(read_results(results))}


VECTORS = "Gradients of vectors, SGD and CF-SGD"


def test_without_diagnosis_nothing_is_said_or_shown(tmp_path):
    assert said(make_results()) == {}
    assert "Second moments" not in elements(make_results(), tmp_path).text


@pytest.mark.parametrize(
    ("relation", "words"),
    [
        ({}, "correlation with the tokens' counts is 0.951 on log scales"),
        ({"pearson_log": -0.3}, "counts is -0.300 on log scales"),
        ({}, "to the power 1.020 ± 0.004"),
        ({"slope": 0.5, "slope_error": None}, "to the power 0.500 (1:"),
        ({"slope": None}, "0.951 on log scales."),
    ],
)
def test_second_moments_are_told_whatever_they_are(relation, words):
    assert words in said(make_diagnosed(relation=relation))["Second moments of Adam"]


@pytest.mark.parametrize(
    ("cfsgd", "words"),
    [
        ((3.0, 1.5), "the bounds predict 4.0 and 0.42. It goes as count^-0.50, where count^-0.50 "),
        ((3.0, 1.0), "It goes as count^0.00, where count^-0.50 is predicted."),
        ((3.0, 0.5), "It goes as count^0.50, where count^-0.50 is predicted."),
    ],
)
def test_the_trend_of_gradients_is_told_whichever_way_it_comes_out(cfsgd, words):
    results = make_diagnosed(cfsgd=((1.0, 0.0), (2.0, 1.0), cfsgd))
    text = said(results)[VECTORS]
    assert "After epoch 2 the mean squared gradient that SGD leaves is 2.0 times CF-SGD's" in text
    assert "for tokens that occur once and" in text
    assert "for those that occur 64 to 127 times" in text
    assert words in text


def test_a_few_tokens_do_not_speak_for_the_rare_and_the_frequent():
    results = make_diagnosed()
    every = [results["diagnosis"]["prediction"]]
    every += [
        entry["buckets"] for run in results["runs"] for entry in run["diagnosis"]["gradients"]
    ]
    for buckets in every:
        buckets[0]["tokens"] = 9
    read = read_results(results)
    (ratios,) = read_ratios(read, "norm2")
    drawn = rows(charts_of(results)["gradients-norm2"], "CF-SGD")
    assert len(drawn) == 5 * len(ratios.by_epoch)
    text = said(results)[VECTORS]
    assert "for tokens that occur 2 to 3 times and" in text
    assert "the bounds predict 2.6 and 0.42" in text


def test_one_bucket_alone_is_told_once():
    results = make_diagnosed()
    every = [results["diagnosis"]["prediction"]]
    every += [
        entry["buckets"] for run in results["runs"] for entry in run["diagnosis"]["gradients"]
    ]
    for buckets in every:
        del buckets[1:]
    text = said(results)[VECTORS]
    assert text.endswith("for tokens that occur once.")


def test_gradients_are_compared_after_the_last_epoch_that_both_runs_have():
    results = make_diagnosed(cfsgd=((1.0, 0.0), (2.0, 0.5)))
    assert said(results)[VECTORS].startswith("After epoch 1 the mean")


def test_ratios_are_those_of_the_buckets_and_follow_their_power():
    read = read_results(make_diagnosed())
    for measure in ("norm2", "linear2"):
        (ratios,) = read_ratios(read, measure)
        assert sorted(ratios.by_epoch) == [1, 2]
        for epoch, level, power in ((1, 2.0, -0.5), (2, 2.0, -0.5)):
            for one in ratios.by_epoch[epoch]:
                assert one.value == pytest.approx(level * one.middle**power)
            assert exponent(ratios.by_epoch[epoch]) == pytest.approx(power)


def test_without_sgd_there_is_no_ratio_and_no_word_on_it():
    results = make_diagnosed()
    del results["runs"][0]
    assert list(said(results)) == ["Second moments of Adam"]


def test_the_scatter_plot_has_the_tokens_and_the_fitted_line():
    chart = charts_of(make_diagnosed())["moments-2"]
    found = [(row["count"], row["field"]) for row in rows(chart, "Adam")]
    assert found == [(2000, "user"), (90, "<b>film"), (4, "<b>film")]
    line = own_rows(chart)
    assert [row["count"] for row in line] == [4, 2000]
    for row in line:
        assert math.log(row["moment"]) == pytest.approx(-20 + 1.02 * math.log(row["count"]))


def test_the_chart_of_ratios_has_what_was_measured_and_predicted():
    (found,) = read_ratios(read_results(make_diagnosed()), "norm2")
    chart = charts_of(make_diagnosed())["gradients-norm2"]
    measured = [(row["epoch"], row["value"]) for row in rows(chart, "CF-SGD")]
    assert measured == [
        (epoch, one.value) for epoch, buckets in found.by_epoch.items() for one in buckets
    ]
    predicted = {row["value"] for row in own_rows(chart) if "often" in row and "run" not in row}
    assert predicted == {one.value for one in found.predicted}


def test_errors_are_roots_of_what_the_buckets_say_at_epochs_that_all_runs_have():
    errors = errors_left(read_results(make_diagnosed()))
    assert sorted(errors) == [0, 1, 2]
    assert all(sorted(by_epoch) == [0, 1] for by_epoch in errors.values())
    first = errors[0][1][0]
    assert first.value == pytest.approx(math.sqrt(3 * 4.0))


def test_the_page_shows_the_diagnosis(tmp_path):
    page = elements(make_diagnosed(), tmp_path)
    for words in (
        "Second moments against counts",
        "Second moments of Adam after epoch 2",
        "Squared gradients of vectors: SGD over CF-SGD",
        "Squared gradients of linear weights: SGD over CF-SGD",
        "Error left after epoch 1 (dotted: before training)",
    ):
        assert words in page.text
    charts = [entry for entry in page.of("div") if entry.get("class") == "chart"]
    names = [entry["data-chart"] for entry in charts]
    assert names[-4:] == ["moments-2", "gradients-norm2", "gradients-linear2", "errors-left"]
    assert all(entry["aria-label"] for entry in charts)


@pytest.mark.parametrize("epochs", [[1], [1, 2], list(range(1, 13))])
def test_some_epochs_hold_the_first_and_the_last(epochs):
    found = some_epochs(epochs)
    assert (found[0], found[-1]) == (epochs[0], epochs[-1])
    assert len(found) <= 3


def changed(key, value):
    results = make_diagnosed()
    for run in results["runs"]:
        if key in run["diagnosis"]:
            run["diagnosis"][key] = value
    return results


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *itertools.product(["gradients", "moments"], [None, [], [{"epoch": 1}]]),
        *itertools.product(["scatter"], [None, {}, {"count": [1.0]}]),
    ],
)
def test_whatever_is_missing_there_is_a_page(key, value, tmp_path):
    assert "Data and settings" in elements(changed(key, value), tmp_path).text


@pytest.mark.parametrize("broken", [7, "x", [None], [3], [{"epoch": 1, "buckets": [{}]}]])
@pytest.mark.parametrize("key", ["gradients", "scatter"])
def test_a_damaged_diagnosis_is_refused_with_its_place(key, broken):
    with pytest.raises(DataError, match=rf"at `\$\.runs\[\d\]\.diagnosis\.{key}"):
        read_results(changed(key, broken))


@pytest.mark.parametrize("broken", [None, {}, {"fields": None, "prediction": []}])
def test_without_prediction_ratios_are_told_alone(broken, tmp_path):
    results = {**make_diagnosed(), "diagnosis": broken}
    assert said(results)[VECTORS].endswith("for those that occur 64 to 127 times.")
    assert "Squared gradients of vectors" in elements(results, tmp_path).text


def test_gradients_that_were_not_finite_are_left_out(tmp_path):
    results = make_diagnosed()
    for bucket in results["runs"][1]["diagnosis"]["gradients"][2]["buckets"]:
        bucket |= {"norm2": None, "linear2_per_occurrence": None}
    assert said(results)[VECTORS].startswith("After epoch 1 ")
    elements(results, tmp_path)


def test_names_of_fields_stay_text(tmp_path):
    page = elements(make_diagnosed(), tmp_path)
    assert "<b>film" in page.text
