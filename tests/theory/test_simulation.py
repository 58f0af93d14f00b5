"""Simulated algorithms, against a slow version and against what they must do on average."""

from dataclasses import replace

import numpy as np
import pytest

from freqsgd.errors import DataError
from freqsgd.rates import RateLaw
from freqsgd.theory import bounds
from freqsgd.theory.distributions import exponential, uniform
from freqsgd.theory.simulation import (
    Method,
    Problem,
    _alias_table,
    planted_problem,
    simulate,
    spread_evenly,
)
from tests.theory import slow


def one_problem(users=6, items=5, rate=0.4, radius=4.0, dim=3):
    made = planted_problem(
        exponential(users, rate), exponential(items, rate), dim, radius, seed=5, problems=1
    )
    return replace(made, positive=made.positive[0], start=made.start[0])


def methods(problem):
    steps = np.linspace(0.01, 0.05, len(problem.frequencies))
    return {
        "fasgd": (Method("fasgd", steps), {"steps": steps}),
        "sbcd": (Method("sbcd", steps), {"steps": steps, "blocks": True}),
        "cfsgd": (Method("cfsgd", RateLaw(0.01, max_lr=0.03)), {"lr": 0.01, "cap": 0.03}),
    }


@pytest.mark.parametrize("name", ["fasgd", "sbcd", "cfsgd"])
def test_iterates_are_those_of_the_slow_version(name):
    problem = one_problem()
    method, options = methods(problem)[name]
    times = np.array([[0, 1, 7, 300], [2, 2, 299, 300]])
    runs = simulate(problem, method, times, seed=11)
    seeds = np.random.SeedSequence(11).generate_state(2, np.uint64)
    alias = _alias_table(problem.pairs.ravel())
    for repetition in range(2):
        iterates, drawn = slow.run(problem, alias, 300, seeds[repetition], **options)
        for output, t in enumerate(times[repetition]):
            np.testing.assert_allclose(
                runs.iterates[output, repetition], iterates[t], rtol=1e-9, atol=1e-12
            )
        if name == "cfsgd":
            counted = np.bincount(np.ravel(drawn), minlength=len(problem.frequencies))
            assert (runs.counts[repetition] == counted).all()


def test_threads_and_calls_do_not_change_a_bit(monkeypatch):
    problem = one_problem()
    method, _ = methods(problem)["cfsgd"]
    times = np.tile([10, 500, 1000], (5, 1))
    once = simulate(problem, method, times, seed=0, threads=1)
    monkeypatch.setattr("freqsgd.theory.simulation._CALL", 5 * 130)
    told = []
    parts = simulate(problem, method, times, seed=0, threads=2, progress=told.append)
    assert (once.iterates == parts.iterates).all()
    assert told[-1] == 5 * 1000
    assert len(told) == 8


def test_pairs_are_drawn_from_the_joint_distribution():
    """A step on one pair moves its two rows alone, so single steps tell which pair was drawn."""
    problem, repetitions = one_problem(), 40_000
    still = Method("fasgd", np.full(len(problem.frequencies), 0.1))
    after = simulate(problem, still, np.ones((repetitions, 1), int), seed=2).iterates[0]
    moved = np.abs(after - problem.start).sum(2) > 0
    assert (moved.sum(1) == 2).all()
    users, items = moved[:, : problem.users].argmax(1), moved[:, problem.users :].argmax(1)
    drawn = np.zeros_like(problem.pairs)
    np.add.at(drawn, (users, items), 1)
    expected = repetitions * problem.pairs
    assert (np.abs(drawn - expected) < 5 * np.sqrt(expected) + 2).all()


def test_a_step_goes_down_the_gradient_on_average():
    """E[theta' - theta] is -eta_k grad f_k; for SBCD a token moves once in as many tokens."""
    problem, repetitions = one_problem(), 200_000
    tokens = len(problem.frequencies)
    steps = np.linspace(0.1, 0.3, tokens)
    for name, share in (("fasgd", 1), ("sbcd", 1 / tokens)):
        after = simulate(problem, Method(name, steps), np.ones((repetitions, 1), int), 3)
        moves = after.iterates[0] - problem.start
        expected = -share * steps[:, None] * problem.gradient(problem.start)
        error = moves.std(0) / np.sqrt(repetitions)
        assert (np.abs(moves.mean(0) - expected) < 5 * error + 1e-9).all()
        assert np.abs(expected / error).max() > 10  # so that the line above can fail


def test_uniform_frequencies_reduce_fasgd_to_sgd():
    """Corollary 1, with the step sizes that the theorems give to either."""
    made = planted_problem(uniform(7), uniform(7), 2, 4.0, seed=0, problems=1)
    problem = replace(made, positive=made.positive[0], start=made.start[0])
    p, L, T = problem.frequencies, problem.smoothness, 20_000
    known = p, problem.conditional_variance(problem.start).mean(), problem.gap, L
    sgd = bounds.sgd_steps(p, bounds.sgd_alpha(*known), T, L)
    fasgd = bounds.fasgd_steps(p, bounds.fasgd_alpha(*known), T, L)
    times = np.tile([T // 2, T], (3, 1))
    plain = simulate(problem, Method("sgd", sgd), times, seed=1).iterates
    aware = simulate(problem, Method("fasgd", fasgd), times, seed=1).iterates
    assert np.abs(plain[-1] - problem.start).max() > 0.1
    np.testing.assert_allclose(aware, plain, rtol=1e-7, atol=1e-9)


def test_uniform_sides_of_other_sizes_get_one_rate_each():
    p = np.concatenate([uniform(8), uniform(2)])
    known = p, np.ones(10), 0.5, 2.0
    steps = bounds.fasgd_steps(p, bounds.fasgd_alpha(*known), 10_000, 2.0)
    assert len(set(steps[:8])) == len(set(steps[8:])) == 1
    assert steps[0] == pytest.approx(2 * steps[-1])


def test_block_coordinate_descent_is_slower_by_the_number_of_tokens():
    """For uniform frequencies: as many times the iterations of SGD give the same errors."""
    made = planted_problem(uniform(4), uniform(4), 2, 4.0, seed=0, problems=1)
    problem = replace(made, positive=made.positive[0], start=made.start[0])
    tokens, T, repetitions = 8, 4000, 200
    steps = np.full(tokens, 0.01)

    def errors(name, iterations):
        times = np.full((repetitions, 1), iterations)
        rows = simulate(problem, Method(name, steps), times, seed=4).iterates[0]
        norms2 = problem.gradient_norms2(rows)
        return norms2.mean(), norms2.mean(1).std() / np.sqrt(repetitions)

    (plain, spread), (blocks, other) = errors("sgd", T), errors("sbcd", T * tokens)
    equally_long, _ = errors("sbcd", T)
    assert blocks == pytest.approx(plain, abs=4 * (spread + other))
    assert equally_long > 2 * plain


def test_counted_rates_approach_those_of_the_true_frequencies():
    problem, law = one_problem(), RateLaw(0.001, max_lr=1.0)
    deviations = []
    for iterations in (200, 20_000):
        times = np.full((200, 1), iterations)
        counts = simulate(problem, Method("cfsgd", law), times, seed=0).counts
        rates = law.rate(np.maximum(counts, 1) / iterations)
        deviations.append(np.sqrt(((rates / law.rate(problem.frequencies) - 1) ** 2).mean(0)))
    noise = np.sqrt((1 - problem.frequencies) / problem.frequencies / 20_000) / 2
    np.testing.assert_allclose(deviations[1], noise, rtol=0.3)
    assert (deviations[1] < deviations[0] / 5).all()


def test_rows_that_leave_the_ball_are_reported_with_the_iteration():
    problem = Problem(np.full((1, 1), 1.0), np.full((1, 1), 1.0), np.ones((2, 1)), radius=1.05)
    runs = simulate(problem, Method("sgd", np.full(2, 0.1)), np.full((2, 1), 20), seed=0)
    alias = _alias_table(problem.pairs.ravel())
    iterates, _ = slow.run(problem, alias, 20, 0, steps=np.full(2, 0.1))
    first = next(t for t, rows in enumerate(iterates) if np.abs(rows).max() > 1.05)
    assert list(runs.left) == [first - 1] * 2
    inside = simulate(problem, Method("sgd", np.full(2, 1e-5)), np.full((2, 1), 20), seed=0)
    assert list(inside.left) == [-1, -1]


def test_powers_of_the_law_are_those_of_the_slow_version():
    problem = one_problem()
    counted = simulate(problem, Method("cfsgd", RateLaw(0.02, power=0.0)), np.array([[50]]), 1)
    plain = simulate(problem, Method("sgd", np.full(11, 0.02)), np.array([[50]]), 1)
    np.testing.assert_allclose(counted.iterates, plain.iterates, rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Method("SBCD", np.ones(11)), "unknown optimizer 'SBCD'"),
        (lambda: Method("fasgd", RateLaw(1.0)), "fasgd takes no law, but steps"),
        (lambda: Method("cfsgd", np.ones(11)), "cfsgd takes a law, no steps"),
    ],
)
def test_methods_that_make_no_sense_are_refused(make, words):
    with pytest.raises(DataError, match=words):
        make()


def test_steps_and_times_that_do_not_fit_are_refused():
    problem, steps = one_problem(), np.full(11, 0.1)
    for times in ([[50, 10]], [[-1, 10]]):
        with pytest.raises(DataError, match="ascending order"):
            simulate(problem, Method("sgd", steps), np.array(times), 0)
    with pytest.raises(DataError, match="steps must hold 11 numbers"):
        simulate(problem, Method("sgd", steps[:1]), np.array([[10]]), 0)


def test_random_outputs_are_spread_evenly_over_the_range():
    times = spread_evenly(np.random.default_rng(0), 500, 1000, 50)
    assert times.min() >= 500
    assert times.max() <= 1000
    parts = np.sort((times - 500) * 50 // 501)
    assert (np.abs(parts - np.arange(50)) <= 1).all()
    many = [spread_evenly(np.random.default_rng(seed), 0, 9, 2)[0] for seed in range(4000)]
    assert (np.abs(np.bincount(many, minlength=10) - 400) < 5 * 20).all()
