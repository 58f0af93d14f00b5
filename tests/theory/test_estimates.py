"""Intervals hold what they say they hold."""

import numpy as np
import pytest
from scipy import stats

from freqsgd.theory.measured import mean, ratio, slope


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
    (value, _, high), peer = slope(x, y, np.zeros(12, int)), stats.linregress(x, y)
    assert value == pytest.approx(peer.slope)
    assert high - value == pytest.approx(stats.t.ppf(0.975, 10) * peer.stderr)


def test_groups_have_levels_of_their_own():
    x, group = np.tile(np.arange(6.0), 2), np.repeat([0, 1], 6)
    x[6:] += 10
    noise = 0.1 * np.random.default_rng(3).standard_normal(12)
    value, _, high = slope(x, 0.5 * x + 7 * group + noise, group)
    design = np.stack([x, group == 0, group == 1], axis=1)
    values, (rss,), *_ = np.linalg.lstsq(design, 0.5 * x + 7 * group + noise)
    error = np.sqrt(rss / 9 * np.linalg.inv(design.T @ design)[0, 0])
    assert value == pytest.approx(values[0])
    assert high - value == pytest.approx(stats.t.ppf(0.975, 9) * error)


def test_too_few_points_have_no_slope():
    x, group = np.array([1.0, 2.0, 3.0]), np.array([0, 0, 1])
    assert slope(x[:2], x[:2], group[:2]) is None
    assert slope(x, x, group) is None
    assert slope(np.ones(5), np.arange(5.0), np.zeros(5, int)) is None
