from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from freqsgd.errors import DataError
from freqsgd.theory.bounds import chernoff_misestimation, misestimation, paper_misestimation


@pytest.mark.parametrize("p", [Fraction(1, 2), Fraction(1, 10), Fraction(2, 7), Fraction(1)])
@pytest.mark.parametrize("t", [1, 2, 20, 35])
def test_misestimation_is_the_sum_over_all_counts_that_are_wrong_by_half(p, t):
    slow = sum(
        math.comb(t, c) * p**c * (1 - p) ** (t - c)
        for c in range(t + 1)
        if abs(Fraction(c, t) - p) >= p / 2
    )
    assert misestimation([float(p)], t)[0] == pytest.approx(float(slow), abs=1e-14)


def test_the_papers_exponential_is_far_too_small_and_chernoffs_holds():
    p = np.array([0.3, 0.1, 0.01, 1e-4])
    for expected in (5, 10, 30, 100):
        t = np.round(expected / p)
        exact = misestimation(p, t)
        assert np.all(exact <= chernoff_misestimation(p, t))
        assert np.all(exact[1:] > 10 * paper_misestimation(p, t)[1:])


def test_formulas_of_the_two_bounds():
    for (p, t), bound in product([(0.2, 40), (0.5, 7)], [0, 1]):
        paper, chernoff = paper_misestimation([p], t), chernoff_misestimation([p], t)
        slow = (math.exp(-t * p), 2 * math.exp(-t * p / 12))
        assert (paper[0], chernoff[0])[bound] == pytest.approx(slow[bound])


@pytest.mark.parametrize("t", [0, -1, 2.5])
def test_samples_are_whole_numbers(t):
    with pytest.raises(DataError, match="t must be whole numbers >= 1"):
        misestimation([0.5], t)
