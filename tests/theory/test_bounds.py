from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from freqsgd.errors import DataError
from freqsgd.theory.bounds import (
    ALPHA_0,
    cfsgd_alpha,
    cfsgd_bound,
    constant_step_bound,
    fasgd_alpha,
    fasgd_bound,
    fasgd_steps,
    mended_gap,
    minimum_iterations,
    sgd_alpha,
    sgd_bound,
    sgd_steps,
    token_smoothness,
    variance_bounds,
)
from freqsgd.theory.distributions import exponential, uniform


@st.composite
def problems(draw):
    """Random p (users and items), sigma2, gap, L."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    evenness = draw(st.floats(0.2, 5))
    users, items = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    p = np.concatenate([rng.dirichlet(np.full(n, evenness)) for n in (users, items)])
    p = np.clip(p, 1e-6, 1.0)
    sigma2 = rng.lognormal(0, 2, p.size) * rng.integers(0, 2, p.size)
    return p, sigma2, draw(st.floats(1e-3, 1e3)), draw(st.floats(1e-2, 1e2))


times = st.integers(1, 10**9)


def slow_sums(p, sigma2):
    S = math.fsum(p_l * s_l for p_l, s_l in zip(p, sigma2, strict=True))
    S2 = math.fsum(p_l**2 * s_l for p_l, s_l in zip(p, sigma2, strict=True))
    return S, S2


def root(above, below):
    return math.sqrt(above / below) if below else math.inf


@settings(max_examples=100, deadline=None)
@given(problems(), times)
def test_step_sizes_are_the_theorems(problem, T):
    p, sigma2, gap, L = problem
    S, S2 = slow_sums(p, sigma2)
    M_f = gap + S / L
    assert mended_gap(p, sigma2, gap, L) == pytest.approx(M_f)
    assert sgd_alpha(*problem) == pytest.approx(root(gap, L * S2))
    assert fasgd_alpha(*problem) == pytest.approx(root(gap, L * S))
    assert cfsgd_alpha(*problem) == pytest.approx(root(M_f, L * S))
    slow = [min(1 / (4 * L), fasgd_alpha(*problem) / math.sqrt(T * p_k)) for p_k in p]
    np.testing.assert_allclose(fasgd_steps(p, fasgd_alpha(*problem), T, L), slow)
    slow = [min(1 / (4 * L), sgd_alpha(*problem) / math.sqrt(T))] * p.size
    np.testing.assert_allclose(sgd_steps(p, sgd_alpha(*problem), T, L), slow)


@settings(max_examples=100, deadline=None)
@given(problems(), times, st.integers(0, 100))
def test_the_bound_of_constant_steps_is_the_proofs(problem, T, seed):
    p, sigma2, gap, L = problem
    steps = np.random.default_rng(seed).uniform(0.01, 1, p.size) / (4 * L)
    for k, bound in enumerate(constant_step_bound(steps, p, sigma2, gap, L, T)):
        noise = sum(
            p[m] * (2 * L * p[m]) * steps[m] ** 2 * sigma2[m]  # p_l Lbar_l eta_l^2 sigma_l^2
            for m in range(p.size)
        )
        assert bound == pytest.approx(2 * gap / (T * steps[k]) + 4 * noise / steps[k])


@settings(max_examples=300, deadline=None)
@given(problems(), times)
def test_closed_forms_are_no_smaller_than_what_they_come_from(problem, T):
    p, _, _, L = problem
    for alpha, steps, bound in (
        (sgd_alpha, sgd_steps, sgd_bound),
        (fasgd_alpha, fasgd_steps, fasgd_bound),
    ):
        exact = constant_step_bound(steps(p, alpha(*problem), T, L), *problem, T)
        closed = bound(*problem, T)
        assert np.all(exact <= closed * (1 + 1e-9))
        # In gap / (T eta), the one is at least 2 and the other at most 20.
        assert np.all(closed <= 10 * exact * (1 + 1e-9))


def test_closed_forms_have_the_constants_40_and_10():
    p, sigma2, gap, L, T = [0.5, 0.5, 0.2, 0.8], [1.0, 2.0, 3.0, 0.5], 0.7, 1.3, 5000
    S, S2 = slow_sums(p, sigma2)
    for k, bound in enumerate(fasgd_bound(p, sigma2, gap, L, T)):
        slow = 40 * L * gap / T + 10 * math.sqrt(p[k] * L * S * gap / T)
        assert bound == pytest.approx(slow)
    slow = 40 * L * gap / T + 10 * math.sqrt(L * S2 * gap / T)
    assert sgd_bound(p, sigma2, gap, L, T) == pytest.approx([slow] * 4)


def test_uniform_frequencies_of_equally_many_users_and_items_reduce_to_sgd():
    """Corollary 1: the same steps and the same bound."""
    p, sigma2 = np.concatenate([uniform(8), uniform(8)]), np.linspace(0, 2, 16)
    problem, T = (p, sigma2, 0.6, 1.5), 10**5
    fasgd = fasgd_steps(p, fasgd_alpha(*problem), T, 1.5)
    np.testing.assert_allclose(fasgd, sgd_steps(p, sgd_alpha(*problem), T, 1.5), rtol=1e-14)
    assert fasgd[0] < 1 / (4 * 1.5)  # not by the cap
    np.testing.assert_allclose(fasgd_bound(*problem, T), sgd_bound(*problem, T), rtol=1e-14)


def test_uniform_frequencies_of_fewer_items_have_one_rate_per_side():
    p = np.concatenate([uniform(8), uniform(2)])
    problem = (p, np.ones(10), 0.6, 1.5)
    steps = fasgd_steps(p, fasgd_alpha(*problem), 10**6, 1.5)
    np.testing.assert_array_equal(steps, [steps[0]] * 8 + [steps[-1]] * 2)
    assert steps[0] == pytest.approx(2 * steps[-1])


@settings(max_examples=100, deadline=None)
@given(problems(), st.integers(0, 10**7), st.floats(0.1, 100))
def test_theorem_3_is_its_proof_with_c_equal_to_one(problem, more, G):
    p, sigma2, gap, L = problem
    T = math.ceil(1 / p.min()) + more
    alpha_0, alpha_1 = max(1 - math.sqrt(2 / 3), math.sqrt(2) - 1), 1 / (1 - math.exp(-1))
    alpha = cfsgd_alpha(*problem)
    A = B = C = 0.0
    for p_l, s_l in zip(p, sigma2, strict=True):
        Lbar = 2 * L * p_l
        A += Lbar * s_l / L**2
        B += (1 + alpha_0) ** 2 * p_l * Lbar * s_l * alpha**2 / p_l if s_l else 0.0
        C += alpha_1 * math.exp(-1) * Lbar * s_l / L**2
    if not sigma2.any():
        B = (1 + alpha_0) ** 2 * 2 * gap  # the limit of little noise
    for p_k, bound in zip(p, cfsgd_bound(*problem, T, G), strict=True):
        total = T * min(1 / (4 * L), alpha / math.sqrt(T * p_k))
        slow = (2 * gap + 4 * A + 4 * B + 4 * C) / total / ((1 - alpha_0) / 2)
        assert bound == pytest.approx(slow + math.exp(-T * p_k / 2) * G**2)


@pytest.mark.parametrize(("p", "T"), [(0.5, 50), (0.05, 400), (0.01, 800), (0.3, 3)])
@pytest.mark.parametrize("alpha", [0.01, 0.3, 5.0])
def test_counted_rates_are_as_large_as_the_proof_allows(p, T, alpha):
    """A' + B' + C' bound the sum of p E[eta^2], exactly: a token's counts are binomial."""
    L = 1.0
    total = 0.0
    for t in range(T):
        c = np.arange(t + 1)
        eta = np.minimum(1 / (4 * L), alpha / np.sqrt(T * (c + 1) / (t + 1)))
        total += p * float(binom.pmf(c, t, p) @ eta**2)
    eta = min(1 / (4 * L), alpha / math.sqrt(T * p))
    proof = 1 / L**2 + (1 + ALPHA_0) ** 2 * T * p * eta**2
    proof += math.exp(-1) / (1 - math.exp(-1)) / L**2
    assert total <= proof


@pytest.mark.parametrize("p", [1e-5, 1e-3, 0.05, 0.3, 0.7, 0.99])
def test_rates_much_too_small_are_as_unlikely_as_the_papers_exponential(p):
    """What Theorem 3's last term needs holds from t = 1 / (2 p) on, and not before."""
    t = np.unique(np.ceil(np.geomspace(0.5, 60, 200) / p))
    # counted rates stay above 1 - alpha_0 of the true ones while (c + 1) / (t + 1) is below this
    largest = p / (1 - ALPHA_0) ** 2
    unlucky = binom.sf(np.floor(largest * (t + 1) - 1 + 1e-9), t, p)
    assert np.all(unlucky <= np.exp(-t * p))
    if p < 0.1:
        early = math.floor(0.3 / p)
        assert binom.sf(math.floor(largest * (early + 1) - 1), early, p) > math.exp(-early * p)


@settings(max_examples=100, deadline=None)
@given(problems(), st.floats(0.01, 1e4))
def test_from_the_minimum_on_the_unlucky_part_no_longer_counts(problem, G):
    p, _, _, L = problem
    alpha, M_f = cfsgd_alpha(*problem), mended_gap(*problem)
    enough = minimum_iterations(*problem, G)
    assert np.all(enough >= 1 / p.min())

    def excess(T):  # log of the unlucky part over the rest
        progress = np.minimum(T / (4 * L), alpha * np.sqrt(T / p))
        return -T * p / 2 + 2 * math.log(G) - math.log(M_f) + np.log(progress)

    for later in (1, 1.001, 1.5, 3, 100):
        assert np.all(excess(enough * later) <= 1e-6)
    earlier = enough - 2  # not one too many
    tight = earlier > 1 / p.min()
    assert np.all(excess(np.maximum(earlier, 1))[tight] > -1e-6)


def test_the_papers_minimum_is_not_enough():
    p, sigma2, gap, L = np.array([0.999, 0.001, 1.0]), 1.0, 1.0, 1.0
    alpha, M_f = cfsgd_alpha(p, sigma2, gap, L), mended_gap(p, sigma2, gap, L)

    def printed(G):
        return (2 * math.log(G) - math.log(M_f * (1 / (2 * L) + alpha / np.sqrt(p[1])))) / p[1]

    assert printed(10.0) < 0
    T, G = round(printed(100.0)), 100.0
    rest = M_f / (T * fasgd_steps(p, alpha, T, L)[1])
    assert math.exp(-T * p[1] / 2) * G**2 > 100 * rest
    assert minimum_iterations(p, sigma2, gap, L, G)[1] > 5 * T


def gradients(users=3, items=4, dim=2, seed=5):
    """D(i, j) and made-up gradients of pairs: by i, j, side (of u_i, of v_j)."""
    rng = np.random.default_rng(seed)
    D = rng.dirichlet(np.full(users * items, 0.5)).reshape(users, items)
    return D, rng.normal(size=(users, items, 2, dim))


def enumerated(D, g):
    """p, squared norms of the population gradient, sigma2 and Var(g), pair by pair."""
    users, items, _, dim = g.shape
    p = np.concatenate([D.sum(1), D.sum(0)])
    population = np.zeros((users + items, dim))
    for i in range(users):
        for j in range(items):
            population[i] += D[i, j] * g[i, j, 0]
            population[users + j] += D[i, j] * g[i, j, 1]
    sigma2, variance = np.zeros(users + items), 0.0
    for i in range(users):
        for j in range(items):
            sample = np.zeros_like(population)
            sample[i], sample[users + j] = g[i, j]
            variance += D[i, j] * ((sample - population) ** 2).sum()
            for k in (i, users + j):
                sigma2[k] += D[i, j] / p[k] * ((sample[k] - population[k] / p[k]) ** 2).sum()
    return p, (population**2).sum(1), sigma2, variance


@pytest.mark.parametrize("seed", range(5))
def test_proposition_1_holds_the_enumerated_variance(seed):
    p, norms2, sigma2, variance = enumerated(*gradients(seed=seed))
    low, high = variance_bounds(p, norms2, sigma2)
    assert low < variance
    assert variance == pytest.approx(high)  # sigma2 is exact here
    assert variance < variance_bounds(p, norms2, 1.1 * sigma2)[1]


def test_proposition_1_is_an_equality_without_conditional_variance():
    D, g = gradients()
    g[:, :, 0] = g[:, :1, 0]  # a user's gradient does not depend on the item
    g[:, :, 1] = g[:1, :, 1]
    p, norms2, sigma2, variance = enumerated(D, g)
    np.testing.assert_allclose(sigma2, 0, atol=1e-25)
    low, high = variance_bounds(p, norms2, 0.0)
    assert low == high == pytest.approx(variance)


def test_rows_are_as_smooth_as_their_frequency_says():
    """The Hessian of f in one row or in a pair of rows, for quadratic losses, by enumeration."""
    rng = np.random.default_rng(2)
    D = rng.dirichlet(np.full(12, 0.5)).reshape(3, 4)
    L, dim = 1.7, 3
    p = np.concatenate([D.sum(1), D.sum(0)])
    smoothness = token_smoothness(p, L)

    def block():  # symmetric, spectral norm L
        A = rng.normal(size=(dim, dim))
        A = A + A.T
        return A * L / np.linalg.norm(A, 2)

    for i in range(3):
        for j in range(4):
            H = sum(D[i, m] * block() for m in range(4))
            F = sum(D[m, j] * block() for m in range(3))
            E = D[i, j] * block()
            hessian = np.block([[H, E], [E.T, F]])
            allowed = np.diag(np.repeat(smoothness[[i, 3 + j]], dim))
            assert np.linalg.eigvalsh(allowed - hessian).min() >= -1e-12


def test_values_out_of_range_are_refused():
    p, good = exponential(5, 0.5), (1.0, 0.5, 2.0)
    for problem in ((1.0, 0.0, 2.0), (1.0, math.nan, 2.0), (1.0, 0.5, -1.0), (-1.0, 0.5, 2.0)):
        for alpha in (sgd_alpha, fasgd_alpha, cfsgd_alpha):
            with pytest.raises(DataError, match="must be"):
                alpha(p, *problem)
    with pytest.raises(DataError, match="T must be a finite number > 0"):
        sgd_bound(p, *good, 0)
    with pytest.raises(
        DataError, match=r"step sizes must lie in \(0, 1 / \(4 L\)\] = \(0, 0.125\]"
    ):
        constant_step_bound(0.13, p, *good, 10)


def test_too_few_iterations_for_theorem_3_say_how_many_it_takes():
    with pytest.raises(DataError, match=r"T >= 1 / p of the rarest token: 20 iterations, got 19"):
        cfsgd_bound([0.95, 0.05, 1.0], 1.0, 1.0, 1.0, 19, 1.0)
    assert np.all(np.isfinite(cfsgd_bound([0.95, 0.05, 1.0], 1.0, 1.0, 1.0, 20, 1.0)))
