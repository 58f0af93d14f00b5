from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from freqsgd import RateLaw, paper_rates, token_frequencies
from freqsgd.rates import scalar_decay, scalar_rate

frequency = st.floats(1e-9, 1.0)
lr = st.floats(1e-6, 1e3)
power = st.floats(0.0, 1.0)


@given(frequency, frequency, lr, power)
def test_rarer_tokens_never_have_a_smaller_rate(p, q, lr, power):
    law = RateLaw(lr, power)
    assert law.rate(min(p, q)) >= law.rate(max(p, q))


@given(frequency, lr, power, st.floats(1e-6, 1e3))
def test_no_rate_exceeds_the_cap_and_only_capped_rates_change(p, lr, power, cap):
    capped, free = RateLaw(lr, power, cap).rate(p), RateLaw(lr, power).rate(p)
    assert capped == min(cap, free)


@given(lr, power)
def test_a_token_of_every_sample_has_rate_lr(lr, power):
    assert RateLaw(lr, power).rate(1.0) == lr


@given(st.integers(1, 10**9), lr)
def test_uniform_frequencies_over_n_tokens_equal_sgd_with_lr_times_root_n(N, lr):
    assert RateLaw(lr).rate(1 / N) == pytest.approx(lr * math.sqrt(N), rel=1e-12)


@given(
    st.lists(frequency, min_size=1, max_size=5), lr, power, st.floats(1e-3, 1e3), st.floats(0, 10)
)
def test_floats_numpy_and_torch_share_one_law(ps, lr, power, cap, decay):
    law = RateLaw(lr, power, cap, decay, 0.5)
    q = [p / 2 for p in ps]
    rates = [scalar_rate(p, lr, power, cap) for p in ps]
    parts = [scalar_decay(p, p / 2, e, decay, 0.5) for p, e in zip(ps, rates, strict=True)]
    for make in (np.array, lambda x: torch.tensor(x, dtype=torch.float64)):
        np.testing.assert_allclose(np.asarray(law.rate(make(ps))), rates, rtol=1e-12)
        np.testing.assert_allclose(np.asarray(law.decay(make(ps), make(q))), parts, rtol=1e-12)
    assert [law.rate(p) for p in ps] == rates


@given(frequency, frequency, lr, st.floats(0, 1e6), power)
def test_one_step_of_decay_takes_at_most_half(p, q, lr, decay, power):
    assert 0 <= RateLaw(lr, weight_decay=decay, weight_decay_power=power).decay(p, q) <= 0.5


def test_decay_of_power_one_is_ordinary_l2_in_expectation():
    # E[q] = p: the expected pull eta * wd * q / p equals eta * wd.
    law = RateLaw(0.1, weight_decay=0.01)
    for p in (1.0, 0.1, 0.001):
        assert law.decay(p, p) == pytest.approx(law.rate(p) * 0.01)


def test_the_papers_constants():
    assert paper_rates(alpha=3.0, T=900, L=2.0) == (0.1, 0.125)
    lr, max_lr = paper_rates(alpha=3.0, T=900, L=2.0)
    p = 0.36
    assert RateLaw(lr, max_lr=max_lr).rate(p) == min(1 / (4 * 2.0), 3.0 / math.sqrt(900 * p))


@pytest.mark.parametrize("bad", [{"alpha": 0.0}, {"T": 0}, {"L": -1.0}, {"L": math.nan}])
def test_the_papers_constants_must_be_positive(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        paper_rates(**{"alpha": 1.0, "T": 10, "L": 1.0, **bad})


@pytest.mark.parametrize(
    "options",
    [
        {"lr": math.nan},
        {"lr": -0.1},
        {"lr": math.inf},
        {"power": -0.1},
        {"power": 1.1},
        {"power": math.nan},
        {"max_lr": 0.0},
        {"max_lr": math.nan},
        {"weight_decay": -1.0},
        {"weight_decay_power": 2.0},
    ],
)
def test_senseless_constants_are_refused_by_name(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        RateLaw(**{"lr": 0.1, **options})


def test_frequencies_are_counts_per_sample_with_at_least_one_occurrence():
    ids = torch.tensor([[0, 3], [0, 4], [1, 4], [0, 3]])
    expected = torch.tensor([3, 1, 1, 2, 2, 1]) / 4
    assert torch.equal(token_frequencies(ids, 6), expected)
    assert torch.equal(token_frequencies(ids, 6, samples=8), expected / 2)


def test_frequencies_refuse_ids_beyond_the_table():
    with pytest.raises(IndexError, match="id 6 is out of range for 6 rows"):
        token_frequencies(torch.tensor([[0], [6]]), 6)
    with pytest.raises(TypeError, match="integers"):
        token_frequencies(torch.tensor([0.5]), 6)
