from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freqsgd.errors import DataError
from freqsgd.theory.bounds import cfsgd_alpha, fasgd_bound, sgd_bound
from freqsgd.theory.distributions import exponential, polynomial, uniform
from freqsgd.theory.improvement import (
    corollary,
    counting_condition,
    counting_factor,
    error_improvement,
    error_ratio,
    iterations_improvement,
    iterations_ratio,
)

C = 2 / (1 - 1 / math.e)


def both_sides(users, items):
    return np.concatenate([users, items])


def test_the_error_ratio_is_that_of_the_bounds_once_t_is_large():
    rng = np.random.default_rng(0)
    p = both_sides(rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(9)))
    sigma2 = rng.uniform(0.1, 3, 14)
    bounds = fasgd_bound(p, sigma2, 0.7, 2.0, 10**18) / sgd_bound(p, sigma2, 0.7, 2.0, 10**18)
    np.testing.assert_allclose(error_ratio(p, sigma2), bounds, rtol=1e-6)


def test_iterations_to_equal_error_have_the_square_of_the_error_ratio():
    p, sigma2 = polynomial(20, 1.3), np.linspace(1, 2, 20)
    needed = 10**16 * iterations_ratio(p, sigma2)
    reached = [fasgd_bound(p, sigma2, 1.0, 1.0, t)[k] for k, t in enumerate(needed)]
    np.testing.assert_allclose(reached, sgd_bound(p, sigma2, 1.0, 1.0, 10**16), rtol=1e-4)
    np.testing.assert_allclose(iterations_ratio(p, sigma2), error_ratio(p, sigma2) ** 2)


def test_an_improvement_is_one_over_a_ratio():
    p = exponential(9, 0.4)
    np.testing.assert_allclose(error_improvement(p) * error_ratio(p), 1.0)
    np.testing.assert_allclose(iterations_improvement(p) * iterations_ratio(p), 1.0)
    assert error_improvement(p)[-1] > 1 > error_improvement(p)[0]


def test_the_papers_gamma_f_is_too_small_by_the_square_root_of_two():
    p = both_sides(exponential(30, 0.2), exponential(30, 0.2))
    np.testing.assert_allclose(error_ratio(p), math.sqrt(2) * np.sqrt(p / (p @ p)))


def test_uniform_tokens_and_noiseless_ones_gain_nothing():
    np.testing.assert_allclose(error_ratio(both_sides(uniform(6), uniform(6))), 1.0)
    np.testing.assert_array_equal(error_ratio(exponential(6, 1.0), np.zeros(6)), 1.0)


def test_counting_costs_what_theorem_3_adds():
    p, sigma2, gap, L = both_sides(exponential(8, 0.5), exponential(5, 0.5)), 0.3, 0.9, 1.7
    noise = sum(p_k * sigma2 for p_k in p)
    slow_fasgd = math.sqrt(noise * L * gap)
    slow_cfsgd = slow_fasgd + noise  # the slow terms of Theorem 3 over sqrt(p_k / T)
    assert counting_factor(p, sigma2, gap, L) == pytest.approx(slow_cfsgd / slow_fasgd)
    # sqrt(S L M_f), which the paper splits by sqrt(a + b) <= sqrt(a) + sqrt(b), is no larger.
    together = cfsgd_alpha(p, sigma2, gap, L) * noise * L
    assert together <= slow_cfsgd <= math.sqrt(2) * together * (1 + 1e-12)


def test_the_condition_of_cfsgds_corollaries():
    assert counting_condition([0.2, 1.0], gap=0.5, L=2.0)
    assert not counting_condition([0.2, 1.01], gap=0.5, L=2.0)


more = st.integers(0, 300)  # tokens than a corollary asks for


@settings(max_examples=300, deadline=None)
@given(st.floats(0.005, 1.2), more, more)
def test_an_exponential_tail_improves_at_least_by_its_corollary(tau, more_users, more_items):
    users, items = (math.ceil(1 / tau) + more for more in (more_users, more_items))
    claim = corollary("exponential", users, tau)
    assert claim.applies
    p = both_sides(exponential(users, tau), exponential(items, tau))
    ranks = both_sides(np.arange(1, users + 1), np.arange(1, items + 1))
    assert np.all(iterations_improvement(p) >= claim.iterations_improvement(ranks) * 0.999999)


@settings(max_examples=300, deadline=None)
@given(st.floats(2, 8), more, more)
def test_a_polynomial_tail_improves_at_least_by_its_corollary(nu, more_users, more_items):
    users, items = (math.ceil(16 ** (1 / nu)) + more for more in (more_users, more_items))
    claim = corollary("polynomial", users, nu)
    assert claim.applies
    p = both_sides(polynomial(users, nu), polynomial(items, nu))
    ranks = both_sides(np.arange(1, users + 1), np.arange(1, items + 1))
    assert np.all(iterations_improvement(p) >= claim.iterations_improvement(ranks))
    # The true constant is zeta(2) at most, ten times better than 16.
    assert np.all(iterations_improvement(p) >= ranks**nu / (math.pi**2 / 6) * 0.999999)


@pytest.mark.parametrize(("tau", "true"), [(0.75, True), (0.79, False), (1.0, False), (2.0, False)])
def test_the_papers_exponential_constant_holds_below_tau_077_only(tau, true):
    p = both_sides(exponential(100, tau), exponential(100, tau))
    ranks = both_sides(np.arange(1, 101), np.arange(1, 101))
    assert bool(np.all(iterations_ratio(p) <= C * np.exp(-tau * ranks))) is true


def test_conditions_are_told():
    assert corollary("polynomial", 100, 1.5).reason == "nu = 1.5 is below 2"
    assert corollary("polynomial", 3, 2.0).reason == "|U| = 3 is below 16^(1/nu) = 4"
    assert corollary("exponential", 9, 0.1).reason == "|U| = 9 is below 1 / tau = 10"
    for good in (("polynomial", 4, 2.0), ("exponential", 10, 0.1), ("uniform", 1, 0.0)):
        claim = corollary(*good)
        assert (claim.applies, claim.reason) == (True, None)
    assert corollary("exponential", 10, 0.1).top == 10


def test_what_is_not_a_frequency_is_refused():
    for p in ([0.5, 0.0], [1.5], [[0.1]], [], [math.nan]):
        with pytest.raises(DataError, match="p must"):
            error_ratio(p)
    with pytest.raises(DataError, match="sigma2 must hold 2 numbers"):
        error_ratio([0.5, 0.5], [1.0])
    with pytest.raises(DataError, match=r"sigma2 must be finite numbers >= 0"):
        error_ratio([0.5, 0.5], [1.0, -1.0])
