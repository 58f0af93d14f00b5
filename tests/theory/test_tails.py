from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from freqsgd.errors import DataError
from freqsgd.theory.distributions import exponential, polynomial, uniform
from freqsgd.theory.tails import FAMILIES, TailFit, fit_tail, split_occurrences

NAMES = ("exponential", "polynomial")


def sampled(p, samples, seed=0):
    counts = np.sort(np.random.default_rng(seed).multinomial(samples, p))[::-1]
    return counts[counts > 0]


def position(name, ranks):
    return ranks if name == "exponential" else np.log(ranks)


def slow_shares(name, rate, first, last):
    """p_n of a tail, rank by rank."""
    t = position(name, np.arange(first, last + 1.0))
    weights = np.exp(-rate * (t - t[0]))
    return weights / math.fsum(weights)


def slow_fit(name, counts, first):
    """Rate, log likelihood and distance of a tail, by sums over every rank.

    The likeliest rate gives t(n) the mean that it has among the samples.
    """
    tail, t = counts[first - 1 :], position(name, np.arange(first, counts.size + 1.0))
    mean = tail @ t / tail.sum()
    rate = brentq(
        lambda rate: slow_shares(name, rate, first, counts.size) @ t - mean, 0, 20, xtol=1e-14
    )
    shares = slow_shares(name, rate, first, counts.size)
    distance = np.abs(np.cumsum(tail) / tail.sum() - np.cumsum(shares)).max()
    return rate, tail @ np.log(shares), distance


@pytest.mark.parametrize(
    ("p", "family", "rate"),
    [
        (exponential(60, 0.1), "exponential", 0.1),
        (exponential(2000, 0.002), "exponential", 0.002),
        (polynomial(500, 2.0), "polynomial", 2.0),
        (polynomial(300, 0.7), "polynomial", 0.7),
        (polynomial(300, 1.0), "polynomial", 1.0),
    ],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_tail_that_samples_come_from_is_recovered(p, family, rate, seed):
    counts = sampled(p, 10**7, seed)
    fit = fit_tail(counts)
    assert (fit.family, fit.reason) == (family, None)
    second = split_occurrences(counts).counts
    last, fitted_samples = second.size, second[fit.from_rank - 1 :].sum()
    ranks = np.arange(fit.from_rank, last + 1.0)
    shares = slow_shares(family, rate, fit.from_rank, last)
    t = position(family, ranks)
    variance = shares @ t**2 - (shares @ t) ** 2
    standard_error = 1 / math.sqrt(fitted_samples * variance)
    fitted = fit.tau if family == "exponential" else fit.nu
    assert abs(fitted - rate) < 4 * standard_error
    assert fit.p_value < 1e-6
    assert (fit.statistic > 0) == (family == "polynomial")


@pytest.mark.parametrize("nu", [0.3, 0.5, 0.7, 1.0, 1.3])
@pytest.mark.parametrize(("tokens", "samples"), [(1000, 10**4), (10**5, 3 * 10**5)])
def test_flat_power_laws_are_no_exponential_tails(nu, tokens, samples):
    fit = fit_tail(sampled(polynomial(tokens, nu), samples))
    assert fit.family == "polynomial"
    assert 0.55 * nu < fit.nu < 1.1 * nu  # where tokens are few, luck blurs their order


@pytest.mark.parametrize(("tau", "samples"), [(1e-3, 60_000), (0.01, 6000), (0.1, 1000)])
def test_exponential_tails_of_few_samples(tau, samples):
    for seed in range(3):
        fit = fit_tail(sampled(exponential(round(20 / tau), tau), samples, seed))
        assert fit.family == "exponential"
        assert fit.tau == pytest.approx(tau, rel=0.15)


@pytest.mark.parametrize(
    ("tokens", "samples"), [(1000, 3000), (1000, 10_000), (1000, 10**6), (10**5, 10**5)]
)
def test_equally_frequent_tokens_have_no_tail_however_unequal_their_counts(tokens, samples):
    for seed in range(5):
        fit = fit_tail(sampled(uniform(tokens), samples, seed))
        assert fit.family is fit.nu is None
        assert "by chance" in fit.reason


def test_unevenness_is_a_standard_normal_for_equally_frequent_tokens():
    scores = [
        split_occurrences(sampled(uniform(300), 2000, seed), seed + 1000).unevenness
        for seed in range(400)
    ]
    assert abs(np.mean(scores)) < 3 / math.sqrt(400)
    assert 0.9 < np.std(scores) < 1.1
    assert split_occurrences(sampled(polynomial(300, 0.5), 2000)).unevenness > 5


def test_the_halves_hold_every_occurrence_of_the_tokens_ranked():
    counts = np.array([500, 400, 300, 2, 2, 2, 2, 1, 1, 1])
    first = np.random.default_rng(4).binomial(counts, 0.5)
    split = split_occurrences(counts, seed=4)
    assert split.ranking.tolist() == sorted(first[first > 0].tolist(), reverse=True)
    for times in set(split.ranking.tolist()):
        others = (counts - first)[first == times]
        assert split.counts[split.ranking == times].tolist() == [others.mean()] * len(others)
    assert split.ends.tolist() == [
        rank + 1
        for rank, times in enumerate(split.ranking)
        if rank + 1 == len(split.ranking) or split.ranking[rank + 1] < times
    ]


def test_a_token_that_is_most_of_all_is_no_part_of_the_tail():
    counts = sampled(polynomial(20_000, 1.0), 400_000)
    fit = fit_tail(np.concatenate([[600_000], counts]))
    assert fit.family == "polynomial"
    assert 2 <= fit.from_rank <= 20
    assert fit.nu == pytest.approx(1.0, abs=0.05)


# Blocks of equal counts, within which the distance is largest.
STAIRS = np.repeat([900, 300, 40, 11, 2], [1, 30, 200, 700, 69])


@pytest.mark.parametrize(
    "counts",
    [
        sampled(polynomial(3000, 1.2), 50_000),
        sampled(exponential(80, 0.05), 3000),
        np.arange(400, 0, -1),
        STAIRS,
    ],
)
def test_a_fit_is_what_sums_over_every_rank_give(counts):
    fit = fit_tail(counts)
    second = split_occurrences(counts).counts
    slow = {name: slow_fit(name, second, fit.from_rank) for name in NAMES}
    assert fit.nu == pytest.approx(slow["polynomial"][0], rel=1e-5)
    assert fit.tau == pytest.approx(slow["exponential"][0], rel=1e-5)
    samples, shares = second[fit.from_rank - 1 :].sum(), {}
    for name in NAMES:
        rate, likelihood, distance = slow[name]
        assert fit.log_likelihoods[name] == pytest.approx(likelihood, rel=1e-10)
        assert fit.distances[name] == pytest.approx(distance, rel=1e-4)
        shares[name] = slow_shares(name, rate, fit.from_rank, second.size)
        assert fit.first_count[name] == pytest.approx(2 * shares[name][0] * samples, rel=1e-5)

    # Vuong's test; a block's samples are spread evenly over its ranks.
    per_rank = np.log(shares["polynomial"] / shares["exponential"])
    weights = second[fit.from_rank - 1 :]
    assert fit.samples == counts[fit.from_rank - 1 :].sum()
    mean = np.average(per_rank, weights=weights)
    deviation = math.sqrt(np.average((per_rank - mean) ** 2, weights=weights))
    assert fit.statistic == pytest.approx(mean / deviation * math.sqrt(samples), rel=1e-3)
    assert fit.p_value == pytest.approx(2 * norm.sf(abs(fit.statistic)))


def test_the_cut_off_is_the_earliest_whose_fit_leaves_little_unexplained():
    # 30 tokens equally often, then a polynomial tail.
    counts = np.concatenate([np.full(30, 50_000), sampled(polynomial(1000, 1.5), 500_000)])
    counts = np.sort(counts)[::-1]
    fit = fit_tail(counts)
    assert 15 <= fit.from_rank <= 501
    second = split_occurrences(counts).counts

    def unexplained(first):
        tail = second[first - 1 :]
        even = np.arange(1, tail.size + 1) / tail.size
        likelier = max((slow_fit(name, second, first) for name in NAMES), key=lambda fit: fit[1])
        return likelier[2] / np.abs(np.cumsum(tail) / tail.sum() - even).max()

    furthest = second.size - math.ceil(second.size / 2) + 1
    tried = np.unique(np.geomspace(1, furthest, 12).astype(int)).tolist()
    left = {first: unexplained(first) for first in tried}
    near = [first for first in tried if left[first] <= 2 * min(left.values())]
    assert fit.from_rank == near[0]


def test_tails_begin_in_the_first_half_and_not_among_the_rarest():
    counts = sampled(polynomial(10**6, 1.0), 10**6)  # two thirds of its tokens are seen once
    fit = fit_tail(counts)
    ranking = split_occurrences(counts).ranking
    assert ranking[fit.from_rank - 1] >= 5
    assert ranking.size - fit.from_rank + 1 >= ranking.size / 2
    assert fit.nu == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rate", [1e-9, 0.3, 1.0, 1.0 + 1e-9, 2.5, 30.0])
@pytest.mark.parametrize("first", [1, 7, 5000])
def test_masses_are_sums_over_ranks(name, rate, first):
    family = FAMILIES[name]
    last = np.array([first, first + 1, first + 999, first + 1000, first + 20_000])
    t = position(name, np.arange(first, last[-1] + 1.0))
    slow = np.cumsum(np.exp(-rate * (t - t[0])))[last - first]
    np.testing.assert_allclose(family.masses(first, last.astype(float), rate), slow, rtol=1e-9)


def test_a_tail_that_could_be_either_has_no_family():
    fit = fit_tail(sampled(exponential(30, 0.03), 1500, seed=3))
    assert fit.family is None
    assert fit.reason.startswith("the test cannot tell the two families apart (p = 0.")
    assert fit.p_value > 0.05
    assert fit.nu > 0
    assert fit.tau > 0


@pytest.mark.parametrize(
    ("counts", "reason"),
    [
        ([12], "there is one token only"),
        (np.ones(50, int), "every token occurs once: there is no tail"),
        ([7] * 30, "every token occurs 7 times: there is no tail"),
        ([9, 4, 1], "3 tokens are too few: a tail takes 20"),
        ([2] + [1] * 19, "too few tokens occur more than once"),
    ],
)
def test_where_there_is_no_tail_the_reason_is_told(counts, reason):
    fit = fit_tail(counts)
    assert (fit.family, fit.reason, fit.tokens) == (None, reason, len(counts))
    assert fit.nu is fit.tau is fit.from_rank is fit.p_value is None


@pytest.mark.parametrize(
    "counts",
    [
        [10**9] + [1] * 19,
        [10**9] + [1] * 90,
        [10**9] * 20 + [1],
        [50] * 10 + [4] * 30,
        [10**12, *[3] * 40],
    ],
)
def test_odd_counts_are_fitted_or_explained(counts):
    fit = fit_tail(counts)
    if fit.nu is None:
        assert fit.reason
        return
    assert fit.nu > 0
    assert fit.tau > 0
    assert 0 <= fit.p_value <= 1
    assert all(0 <= distance <= 1 for distance in fit.distances.values())


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([], "no tokens"),
        ([3, 1, 0], "at least 1"),
        ([1, 2, 3], "sorted, largest first"),
        ([1.5, 1.0], "must be integers"),
        ([[2, 1]], "no tokens"),
    ],
)
def test_what_is_no_list_of_counts_is_refused(counts, message):
    with pytest.raises(DataError, match=message):
        fit_tail(counts)


def test_a_fit_is_json():
    for fit in (fit_tail([1]), fit_tail(np.arange(100, 0, -1))):
        again = msgspec.json.decode(msgspec.json.encode(fit), type=TailFit)
        assert again == fit
