"""The problem's sums, against autograd and against enumeration one pair and label at a time."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from freqsgd.errors import DataError
from freqsgd.theory.bounds import token_smoothness, variance_bounds
from freqsgd.theory.distributions import exponential, polynomial
from freqsgd.theory.simulation import Problem, joint_distribution, planted_problem

USERS, ITEMS, DIM, RADIUS = 4, 3, 2, 3.0


@pytest.fixture(scope="module")
def problem():
    made = planted_problem(
        exponential(USERS, 0.5), polynomial(ITEMS, 1.5), DIM, RADIUS, seed=3, problems=1
    )
    return Problem(made.pairs, made.positive[0], made.start[0], RADIUS)


def torch_loss(problem, rows):
    logits = rows[: problem.users] @ rows[problem.users :].T
    positive, pairs = torch.tensor(problem.positive), torch.tensor(problem.pairs)
    softplus = torch.nn.functional.softplus
    return (pairs * (positive * softplus(-logits) + (1 - positive) * softplus(logits))).sum()


def every_gradient(problem, rows):
    """Probability and stochastic gradient of each pair and label."""
    for i in range(problem.users):
        for j in range(problem.pairs.shape[1]):
            u, v = rows[i], rows[problem.users + j]
            for label, chance in ((1, problem.positive[i, j]), (-1, 1 - problem.positive[i, j])):
                slope = -label / (1 + np.exp(label * (u @ v)))
                gradient = np.zeros_like(rows)
                gradient[i], gradient[problem.users + j] = slope * v, slope * u
                yield problem.pairs[i, j] * chance, gradient


def test_a_joint_distribution_has_the_marginals_it_was_asked_for_and_is_not_their_product():
    users, items = exponential(30, 0.3), polynomial(20, 2.0)
    table = joint_distribution(users, items, np.random.default_rng(0))
    np.testing.assert_allclose(table.sum(1), users, rtol=1e-11)
    np.testing.assert_allclose(table.sum(0), items, rtol=1e-11)
    assert np.abs(table / np.outer(users, items) - 1).max() > 0.5


def test_the_loss_and_its_gradient_are_those_of_autograd(problem):
    rows = torch.tensor(problem.start, requires_grad=True)
    loss = torch_loss(problem, rows)
    loss.backward()
    assert problem.loss(problem.start) == pytest.approx(loss.item())
    np.testing.assert_allclose(problem.gradient(problem.start), rows.grad, rtol=1e-10)


def test_the_gradient_is_the_mean_of_stochastic_gradients(problem):
    mean = sum(chance * gradient for chance, gradient in every_gradient(problem, problem.start))
    np.testing.assert_allclose(problem.gradient(problem.start), mean, rtol=1e-10)


def test_variances_are_those_of_enumeration(problem):
    rows, p = problem.start, problem.frequencies
    mean = problem.gradient(rows)
    total, conditional = 0.0, np.zeros(len(p))
    for chance, gradient in every_gradient(problem, rows):
        total += chance * ((gradient - mean) ** 2).sum()
        for k in np.flatnonzero(np.abs(gradient).sum(1)):
            conditional[k] += chance / p[k] * ((gradient[k] - mean[k] / p[k]) ** 2).sum()
    assert problem.gradient_variance(rows) == pytest.approx(total)
    np.testing.assert_allclose(problem.conditional_variance(rows), conditional, rtol=1e-9)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), scale=st.floats(0.05, 1.0))
def test_proposition_1_bounds_the_variance_whatever_the_rows(problem, seed, scale):
    rows = scale * np.random.default_rng(seed).uniform(-1, 1, problem.start.shape)
    norms2 = problem.gradient_norms2(rows)
    sigma2 = 1.5 * problem.conditional_variance(rows)
    low, high = variance_bounds(problem.frequencies, norms2, sigma2)
    assert low < problem.gradient_variance(rows) < high


def test_proposition_1_is_exact_without_noise():
    """Each user meets one item only, and labels are certain: a token's gradient is always same."""
    p = exponential(5, 0.4)
    start = np.random.default_rng(1).standard_normal((10, 2))
    labels = np.diag([1.0, 0.0, 1.0, 1.0, 0.0])
    problem = Problem(np.diag(p), labels, start, radius=10.0)
    np.testing.assert_allclose(problem.conditional_variance(start), 0, atol=1e-12)
    low, high = variance_bounds(
        problem.frequencies, problem.gradient_norms2(start), np.zeros(len(start))
    )
    assert low == high == pytest.approx(problem.gradient_variance(start))
    assert problem.lowest == 0


def test_the_lowest_loss_is_that_of_the_hidden_rows(problem):
    """Labels follow hidden rows, so the gradient vanishes there and the loss is the entropy."""
    logits = np.log(problem.positive / (1 - problem.positive))
    left, values, right = np.linalg.svd(logits)
    assert values[DIM:].max() < 1e-9  # the logits are products of vectors of that size
    hidden = np.concatenate([left[:, :DIM] * values[:DIM], right[:DIM].T])
    assert problem.loss(hidden) == pytest.approx(problem.lowest)
    np.testing.assert_allclose(problem.gradient(hidden), 0, atol=1e-12)
    assert problem.gap == pytest.approx(problem.loss(problem.start) - problem.loss(hidden))


def in_the_ball(generator, shape):
    vectors = generator.standard_normal(shape)
    length = RADIUS * generator.random((shape[0], 1)) ** 0.3
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True) * length


def test_second_derivatives_of_the_loss_stay_below_l_in_the_ball(problem):
    generator, largest = np.random.default_rng(0), 0.0
    for _ in range(200):
        pair = torch.tensor(in_the_ball(generator, (2, DIM))).reshape(-1)

        def loss(x):
            return torch.nn.functional.softplus(-(x[:DIM] @ x[DIM:]))

        hessian = torch.autograd.functional.hessian(loss, pair)
        for block in (hessian[:DIM, :DIM], hessian[:DIM, DIM:]):
            largest = max(largest, torch.linalg.matrix_norm(block, 2).item())
    assert 0.3 * problem.smoothness < largest <= problem.smoothness


def test_the_gradient_stays_below_its_bound_in_the_ball(problem):
    generator = np.random.default_rng(0)
    norms = [
        np.linalg.norm(problem.gradient(in_the_ball(generator, problem.start.shape)))
        for _ in range(200)
    ]
    assert 0.1 * problem.gradient_bound < max(norms) <= problem.gradient_bound


def test_the_smoothness_proposition_holds_for_moves_of_a_pair(problem):
    generator, smoothness = (
        np.random.default_rng(0),
        token_smoothness(problem.frequencies, problem.smoothness),
    )
    for _ in range(300):
        rows, moved = (in_the_ball(generator, problem.start.shape) for _ in range(2))
        pair = [generator.integers(USERS), USERS + generator.integers(ITEMS)]
        after = rows.copy()
        after[pair] = moved[pair]
        change, slope = (after - rows)[pair], problem.gradient(rows)[pair]
        quadratic = (smoothness[pair] / 2) @ (change**2).sum(1)
        allowed = problem.loss(rows) + (slope * change).sum() + quadratic
        assert problem.loss(after) <= allowed + 1e-12


def test_several_problems_are_computed_like_each_alone():
    many = planted_problem(exponential(5, 0.3), exponential(4, 0.3), 3, 2.0, seed=0, problems=3)
    rows = np.random.default_rng(0).standard_normal((2, 3, 9, 3))
    for name in ("loss", "gradient", "conditional_variance", "gradient_variance"):
        together = getattr(many, name)(rows)
        for k in range(3):
            alone = replace(many, positive=many.positive[k], start=many.start[k])
            np.testing.assert_allclose(together[1, k], getattr(alone, name)(rows[1, k]))


def test_a_start_outside_the_ball_is_refused():
    with pytest.raises(DataError, match="outside the ball of radius 1"):
        Problem(np.full((1, 1), 1.0), np.full((1, 1), 0.5), np.full((2, 2), 3.0), radius=1.0)
