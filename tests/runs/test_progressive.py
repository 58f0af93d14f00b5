"""Tallies against metrics of predictions that were kept."""

from __future__ import annotations

import math

import numpy as np
import pytest

from freqsgd.runs.metrics import Progressive, auc, cross_entropy, normalized_entropy
from freqsgd.tables.streaming_metrics import BINS, METRICS, Tally


def predictions(rows, scale=1.5, shift=-1.0, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(shift, scale, rows).astype(np.float32)
    labels = (rng.random(rows) < 1 / (1 + np.exp(-0.8 * logits))).astype(np.uint8)
    return logits, labels


def tally_of(logits, labels):
    tally = Tally()
    tally.add(logits, labels)
    return tally


@pytest.mark.parametrize(
    ("scale", "shift"), [(1.5, -1.0), (0.3, -3.0), (4.0, 0.0), (0.05, 0.5)], ids=str
)
def test_metrics_agree_with_those_of_kept_predictions(scale, shift):
    logits, labels = predictions(200_000, scale, shift)
    found = tally_of(logits, labels).metrics()
    loss = cross_entropy(logits, labels)
    assert found["loss"] == pytest.approx(loss, rel=1e-9)
    assert found["ne"] == pytest.approx(normalized_entropy(loss, labels), rel=1e-9)
    assert found["auc"] == pytest.approx(auc(logits, labels), abs=1e-5)
    probabilities = 1 / (1 + np.exp(-logits.astype(np.float64)))
    assert found["calibration"] == pytest.approx(probabilities.sum() / labels.sum(), rel=1e-9)


@pytest.mark.parametrize(
    "logits",
    [
        [0.0] * 6,
        [-1.0, -1.0, 2.0, 2.0, 2.0, -1.0],
        [-100.0, 100.0, -15.9, 15.9, 0.0, 0.0],
        [-16.0, 16.0, 15.999, -15.999, 1e-3, -1e-3],
        [3.0e38, -3.0e38, 1.0, -1.0, 0.5, 0.25],
    ],
)
def test_extreme_log_odds(logits):
    logits, labels = np.float32(logits), np.uint8([0, 1, 0, 1, 1, 0])
    found = tally_of(logits, labels).metrics()
    assert found["auc"] == pytest.approx(auc(logits, labels), abs=1e-12)
    assert found["loss"] == pytest.approx(cross_entropy(logits, labels), rel=1e-12)


def test_log_odds_beyond_the_ends_tie():
    logits, labels = np.float32([-20, -17, 17, 30]), np.uint8([1, 0, 1, 0])
    tally = tally_of(logits, labels)
    assert tally.metrics()["auc"] == 0.5 * 0.5 + 0.25  # of four pairs two tie and one is won
    assert tally.bins[:, [0, BINS - 1]].tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize("label", [0, 1])
def test_one_class_has_a_loss_but_neither_ne_nor_auc(label):
    found = tally_of(np.zeros(5, np.float32), np.full(5, label, np.uint8)).metrics()
    assert found["loss"] == pytest.approx(math.log(2))
    assert (found["ne"], found["auc"]) == (None, None)
    assert found["calibration"] == (0.5 if label else None)


@pytest.mark.parametrize("logits", [[], [math.nan, 0.0], [math.inf, -math.inf]])
def test_nothing_and_no_numbers_have_no_metrics(logits):
    found = tally_of(np.float32(logits), np.zeros(len(logits), np.uint8)).metrics()
    assert found == dict.fromkeys(METRICS)


def test_merged_tallies_are_those_of_all():
    logits, labels = predictions(5000)
    merged = tally_of(logits[:1234], labels[:1234])
    merged.merge(tally_of(logits[1234:], labels[1234:]))
    whole = tally_of(logits, labels)
    assert np.array_equal(merged.bins, whole.bins)
    assert merged.sums == pytest.approx(whole.sums, rel=1e-12)
    merged.clear()
    assert merged.metrics() == dict.fromkeys(METRICS)


def feed(progressive, logits, labels, days, size, batches=None):
    """Batches of a size, cut where a day ends."""
    for number, first in enumerate(range(0, len(labels), size)):
        if batches is not None and number not in batches:
            continue
        for day in np.unique(days[first : first + size]):
            rows = first + np.flatnonzero(days[first : first + size] == day)
            progressive.add(logits[rows], labels[rows], int(day))
        progressive.end_batch(float(number))


@pytest.mark.parametrize(
    ("size", "window", "ends"),
    [
        (100, 250, [300, 500, 800, 1000]),
        (300, 250, [300, 600, 900, 1000]),
        (600, 250, [600, 1000]),
        (100, 5000, [1000]),
        (100, 1000, [1000]),
        (1, 499, [499, 998, 1000]),
    ],
)
def test_windows_end_with_the_batch_that_reaches_a_multiple(size, window, ends):
    logits, labels = predictions(1000)
    days = np.repeat([0, 2, 3], [123, 500, 377])  # a day without examples
    progressive = Progressive(window, ("a", "b", "c", "d"))
    feed(progressive, logits, labels, days, size)
    progressive.end(9.0)
    assert [found["examples"] for found in progressive.windows] == ends
    for first, found in zip([0, *ends[:-1]], progressive.windows, strict=True):
        last = found["examples"]
        part, whole = (tally_of(logits[k:last], labels[k:last]).metrics() for k in (first, 0))
        for name in METRICS:
            assert found[name] == pytest.approx(part[name], rel=1e-12)
            if name != "loss":
                assert found[f"lifetime_{name}"] == pytest.approx(whole[name], rel=1e-12)
    assert [found["day"] for found in progressive.of_days] == ["a", "c", "d"]
    for day, found in zip((0, 2, 3), progressive.of_days, strict=True):
        chosen = tally_of(logits[days == day], labels[days == day])
        expected = {"examples": int((days == day).sum()), **chosen.metrics()}
        for name, value in expected.items():
            assert found[name] == pytest.approx(value, rel=1e-12)
    assert progressive.ne == pytest.approx(progressive.lifetime()["ne"], rel=1e-12)


def test_what_is_saved_goes_on_to_the_same_bits():
    logits, labels = predictions(1000)
    days = np.repeat([0, 1], [430, 570])
    whole = Progressive(150, ("a", "b"))
    feed(whole, logits, labels, days, 64)
    for stop in range(16):
        first, second = Progressive(150, ("a", "b")), Progressive(150, ("a", "b"))
        feed(first, logits, labels, days, 64, range(stop))
        for name, array in second.sums.items():
            array[:] = first.sums[name]
        second.load(first.state, first.windows, first.of_days)
        feed(second, logits, labels, days, 64, range(stop, 16))
        assert second.state == whole.state
        assert (second.windows, second.of_days) == (whole.windows, whole.of_days)
        assert second.lifetime() == whole.lifetime()
