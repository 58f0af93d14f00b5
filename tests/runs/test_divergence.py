"""When a finite loss counts as diverged."""

from __future__ import annotations

import math

import numpy as np
import pytest

from freqsgd.errors import DivergedError
from freqsgd.runs.metrics import cross_entropy
from freqsgd.runs.run import check_loss, constant_loss


@pytest.mark.parametrize(("rate", "share"), [(0.5, 0.5), (0.2, 0.3), (0.001, 0.6), (0.9, 0.05)])
def test_a_constant_has_the_loss_of_its_log_odds(rate, share):
    labels = (np.arange(1000) < 1000 * share).astype(np.uint8)
    logits = np.full(1000, math.log(rate / (1 - rate)))
    found = constant_loss(rate, int(labels.sum()), 1000)
    assert found == pytest.approx(cross_entropy(logits, labels))


@pytest.mark.parametrize("rate", [0.0, 1e-9, 0.001, 1.0])
def test_where_labels_are_rare_a_model_that_knows_nothing_has_not_diverged(rate):
    positives = round(1000 * rate)
    check_loss(math.log(2), constant_loss(rate, positives, 1000), step=3)
    with pytest.raises(DivergedError):
        check_loss(2.01 * math.log(2), constant_loss(rate, positives, 1000), step=3)


@pytest.mark.parametrize("loss", [math.nan, math.inf, 7.0, 1.7e7])
def test_ten_times_the_loss_of_a_constant_is_divergence(loss):
    constant = constant_loss(0.5, 50, 100)
    check_loss(6.9, constant, step=3)
    with pytest.raises(DivergedError, match=r"in step 3$"):
        check_loss(loss, constant, step=3)
