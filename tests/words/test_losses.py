from __future__ import annotations

import numpy as np
import pytest

from freqsgd.words.engine import WordLosses

COUNTS = np.array([3, 80, 2, 12, 3])  # tail, head, tail, torso, torso then tail


def test_the_mean_is_over_samples_not_words():
    losses = WordLosses(np.array([[1.0, 6.0, 0.0]]), np.array([[1, 3, 0]]))
    assert losses.mean == pytest.approx(7 / 4)


def test_without_samples_there_is_no_mean():
    losses = WordLosses(np.zeros((2, 5)), np.zeros((2, 5), np.int64))
    assert losses.mean is None
    nothing = {"head": None, "torso": None, "tail": None}
    assert losses.by_frequency(COUNTS) == nothing
    assert losses.by_centre_frequency(COUNTS) == nothing


def test_classes_are_those_of_the_training_counts():
    # the word of 80 is the head; 12 + 3 reach 95 of 100: the torso; the rest is the tail
    loss, samples = np.array([6.0, 5.0, 4.0, 3.0, 2.0]), np.array([1, 10, 1, 2, 4])
    losses = WordLosses(np.stack([loss, loss[::-1]]), np.stack([samples, samples[::-1]]))
    assert losses.by_frequency(COUNTS) == {
        "head": pytest.approx(5 / 10),
        "torso": pytest.approx((6 + 3) / 3),
        "tail": pytest.approx((4 + 2) / 5),
    }
    assert losses.by_centre_frequency(COUNTS)["head"] == pytest.approx(3 / 2)


def test_a_class_that_is_never_predicted_has_no_loss():
    losses = WordLosses(np.array([[0.0, 5.0, 0.0, 3.0, 0.0]]), np.array([[0, 10, 0, 2, 0]]))
    assert losses.by_frequency(COUNTS)["tail"] is None
    assert losses.by_centre_frequency(COUNTS) is None
