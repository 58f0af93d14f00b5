from __future__ import annotations

import math

import numpy as np
import pytest

from freqsgd.errors import DataError
from freqsgd.theory.distributions import (
    TAILS,
    exponential,
    polynomial,
    token_distribution,
    top_tokens,
    uniform,
)


def test_frequencies_are_the_definitions_divided_by_their_sum():
    for p, weight in (
        (exponential(30, 0.3), lambda n: math.exp(-0.3 * n)),
        (polynomial(30, 1.7), lambda n: n**-1.7),
        (uniform(30), lambda n: 1.0),
    ):
        weights = [weight(n) for n in range(1, 31)]
        np.testing.assert_allclose(p, [w / math.fsum(weights) for w in weights], rtol=1e-13)
        assert p.dtype == np.float64


@pytest.mark.parametrize("tail", TAILS)
def test_every_tail_sums_to_one_most_frequent_first(tail):
    p = token_distribution(tail, 400, 0.9)
    assert math.fsum(p) == pytest.approx(1.0, rel=1e-12)
    assert np.all(np.diff(p) <= 0)


@pytest.mark.parametrize("inverse", [1, 3, 10, 49, 93])
def test_top_tokens_of_an_exponential_tail_are_those_up_to_one_over_tau(inverse):
    assert top_tokens("exponential", 1000, 1 / inverse) == inverse
    assert top_tokens("exponential", 1000, 1 / (inverse - 0.01)) == inverse - 1
    assert top_tokens("exponential", 2, 1 / inverse) == min(2, inverse)


@pytest.mark.parametrize("nu", [0.5, 1.0, 2.0, 3.0, 4.0, 4.1, 60.0])
def test_top_tokens_of_a_polynomial_tail_are_within_a_sixteenth(nu):
    slow = sum(1 for n in range(1, 501) if n**-nu >= 1 / 16 * (1 - 1e-12))
    assert top_tokens("polynomial", 500, nu) == slow


def test_all_uniform_tokens_are_top_tokens():
    assert top_tokens("uniform", 7, 0.0) == 7


def test_a_rate_so_small_that_its_power_overflows_makes_all_tokens_top():
    assert top_tokens("polynomial", 9, 1e-9) == 9


@pytest.mark.parametrize("tail", ["exponential", "polynomial"])
@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan, math.inf])
def test_rates_out_of_range_are_refused(tail, rate):
    for function in (token_distribution, top_tokens):
        with pytest.raises(DataError, match="must be a finite number > 0"):
            function(tail, 10, rate)


@pytest.mark.parametrize("tokens", [0, -3, 2.5])
def test_tokens_are_counted_in_whole_numbers(tokens):
    with pytest.raises(DataError, match="tokens must be an integer >= 1"):
        uniform(tokens)


def test_a_tail_whose_rarest_token_underflows_is_refused():
    with pytest.raises(DataError, match=r"tau = 1 is too large for 2000 tokens"):
        exponential(2000, 1.0)


def test_an_unknown_tail_lists_the_known_ones():
    with pytest.raises(DataError, match="uniform, exponential, polynomial"):
        token_distribution("zipf", 10, 1.0)
