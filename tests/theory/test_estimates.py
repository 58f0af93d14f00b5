"""Intervals hold what they say they hold."""

import numpy as np
import pytest
from scipy import stats

from freqsgd.theory.estimates import mean, ratio, slope


def test_an_interval_of_a_mean_is_that_of_the_normal_approximation():
    samples = np.random.default_rng(0).exponential(size=(400, 3))
    found = mean(samples)
    half = 1.96 * samples.std(0) / 20
    np.testing.assert_allclose(found.value, samples.mean(0))
    np.testing.assert_allclose(found.low, samples.mean(0) - half, rtol=0.03)
    np.testing.assert_allclose(found.high, samples.mean(0) + half, rtol=0.03)


def test_intervals_of_ratios_hold_the_true_ratio_about_95_times_of_100():
    generator, held = np.random.default_rng(1), 0
    for _ in range(200):
        shared = generator.exponential(size=(60, 1))
        above, below = (2 * shared * generator.uniform(0.5, 1.5, (60, 1)), shared)
        found = ratio(above, below)
        held += bool(found.low[0] <= 2 <= found.high[0])
    assert 178 <= held <= 199


def test_a_slope_is_that_of_least_squares_with_students_interval():
    x = np.arange(12.0)
    y = 0.3 * x + np.random.default_rng(2).standard_normal(12)
    found = slope(x, y)
    value, intercept = np.polyfit(x, y, 1)
    residuals = y - value * x - intercept
    error = np.sqrt(residuals @ residuals / 10 / ((x - x.mean()) ** 2).sum())
    assert found.value == pytest.approx(value)
    assert found.high - found.value == pytest.approx(stats.t.ppf(0.975, 10) * error)
    assert found.points == 12


def test_two_points_have_no_slope():
    assert slope(np.array([1.0, 2.0]), np.array([0.0, 1.0])) is None
