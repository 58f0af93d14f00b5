"""The model of generated click logs."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from freqsgd.errors import DataError
from freqsgd.tables.generated.click_log import BLOCK_ROWS, CLICKS_SMALL, ClickBlock, ClickLog
from tests.tables import slow_clicks as slow

LOG = ClickLog(
    (1000, 1, 37, 1_000_000, 100_000_000),
    (1.1, 1.0, 0.0, 1.0, 0.9),
    days=8,
    rows=BLOCK_ROWS + 300,
    new_tokens=0.3,
    drift=0.4,
    seed=11,
)


def chances(block: ClickBlock) -> np.ndarray:
    return 1 / (1 + np.exp(-block.log_odds.astype(np.float64)))


@pytest.mark.parametrize("log", [LOG, replace(LOG, seed=2**64 - 1, dim=7), CLICKS_SMALL])
@pytest.mark.parametrize("day", [0, 7])
def test_rows_are_those_of_the_slow_version(log: ClickLog, day: int) -> None:
    block, number = log.block(day, 1), 1
    biases = []
    for n in [0, 1, 2, 100, 101, 299]:
        tokens, odds, chance = slow.row(log, day, number, n)
        assert block.tokens[n].tolist() == tokens
        assert block.labels[n] == (chance < chances(block)[n])
        biases.append(float(block.log_odds[n]) - odds)
    np.testing.assert_allclose(biases, biases[0], atol=1e-5)


def test_one_feature_has_no_pairs() -> None:
    log = ClickLog((50,), (1.0,), rows=500, linear_std=0.0)
    np.testing.assert_allclose(chances(log.block(0, 0)), 0.1, atol=1e-6)


@pytest.mark.parametrize(
    ("size", "exponent"),
    [(1000, 1.2), (1000, 1.0), (1000, 1 - 1e-5), (500, 0.0), (10**8, 0.8), (10**8, 1.0), (5, 3.0)],
)
def test_ranks_follow_the_power_law(size: int, exponent: float) -> None:
    log = ClickLog((size,), (exponent,), days=1, rows=BLOCK_ROWS, seed=3)
    edges = np.unique(np.geomspace(1, size + 1, 60).astype(np.int64))
    x = edges.astype(float)
    mass = np.log(x) if exponent == 1 else (x ** (1 - exponent) - 1) / (1 - exponent)
    expected = np.diff(mass / mass[-1]) * BLOCK_ROWS
    inverse = pow(slow.factor(log, 0), -1, size)
    shift = slow.token_of(log, 0, 0, 0)
    ranks = (log.block(0, 0).tokens[:, 0].astype(object) - shift) * inverse % size
    counts = np.histogram(ranks.astype(np.int64) + 1, edges)[0]
    counts[-1] += BLOCK_ROWS - counts.sum()  # numpy's last bin is closed
    enough = expected > 5
    observed = np.append(counts[enough], counts[~enough].sum() + 1e-9)
    predicted = np.append(expected[enough], expected[~enough].sum() + 1e-9)
    assert stats.chisquare(observed, predicted).pvalue > 1e-4


def test_hidden_numbers_have_unit_variance_and_turn_with_the_days() -> None:
    log = ClickLog((1,), (1.0,), drift=0.3, seed=5)
    first, later = (
        np.array([slow.hidden(log, 0, token, day) for token in range(20_000)]) for day in (1, 5)
    )
    for numbers in (first, later):
        np.testing.assert_allclose(numbers.mean(0), 0, atol=0.03)
        np.testing.assert_allclose(np.cov(numbers.T), np.eye(5), atol=0.05)
    for place in range(5):
        correlation = np.corrcoef(first[:, place], later[:, place])[0, 1]
        assert correlation == pytest.approx(math.cos(0.3 * 4), abs=0.03)


@pytest.mark.parametrize("features", [2, 30])
@pytest.mark.parametrize(("linear", "interaction"), [(0.8, 0.0), (0.0, 0.8)])
def test_the_parts_of_the_log_odds_have_their_deviations(
    features: int, linear: float, interaction: float
) -> None:
    log = ClickLog(
        (10**7,) * features, (0.0,) * features, linear_std=linear, interaction_std=interaction
    )
    assert log.block(0, 0).log_odds.std() == pytest.approx(0.8, rel=0.02)


def test_a_part_of_the_ranks_passes_to_new_tokens_every_day() -> None:
    log = ClickLog((2000,), (0.0,), days=9, rows=BLOCK_ROWS, new_tokens=0.3)
    assert log.tokens == (2000 * 4,)
    seen: set[int] = set()
    for day in range(9):
        today = set(log.block(day, 0).tokens[:, 0].tolist())
        assert len(today) == 2000  # each rank is held by one token
        assert max(today) < log.tokens[0]
        if day:
            assert len(today - seen) / 2000 == pytest.approx(0.3, abs=0.04)
        seen |= today


def test_without_new_tokens_all_days_have_the_same() -> None:
    log = ClickLog((100,), (0.0,), rows=10_000, new_tokens=0.0)
    assert log.tokens == (100,)
    assert np.unique(log.block(9, 0).tokens).tolist() == list(range(100))


def test_whole_generations_are_counted_exactly() -> None:
    assert ClickLog((10,), (1.0,), days=11, new_tokens=0.1).tokens == (20,)
    assert ClickLog((10,), (1.0,), days=31, new_tokens=0.1).tokens == (40,)


FEW_TOKENS = ClickLog((2, 3), (1.0, 0.5), linear_std=3.0, drift=0.5)  # their odds turn a lot


@pytest.mark.parametrize("rate", [0.003, 0.1, 0.7])
@pytest.mark.parametrize("log", [CLICKS_SMALL, FEW_TOKENS])
def test_every_day_has_the_base_rate(log: ClickLog, rate: float) -> None:
    log = replace(log, base_rate=rate, rows=2 * BLOCK_ROWS)
    for day in (0, 4, 9):
        blocks = [log.block(day, number) for number in (0, 1)]
        p = np.concatenate([chances(block) for block in blocks])
        labels = np.concatenate([block.labels for block in blocks])
        # Sample and blocks both vary; labels vary around the probabilities.
        assert abs(p.mean() - rate) < 4 * p.std() * math.sqrt(1 / BLOCK_ROWS + 1 / len(p))
        assert abs(labels.mean() - p.mean()) < 4 * math.sqrt((p * (1 - p)).mean() / len(p))


def test_probabilities_are_those_of_clicks() -> None:
    block = CLICKS_SMALL.block(2, 0)
    order = np.argsort(block.log_odds)
    for some in np.array_split(order, 10):
        p = chances(block)[some]
        error = math.sqrt((p * (1 - p)).sum()) / len(p)
        assert abs(block.labels[some].mean() - p.mean()) < 4 * error


def test_features_and_blocks_are_independent() -> None:
    log = ClickLog((4, 4), (0.5, 0.5), days=2, rows=2 * BLOCK_ROWS, new_tokens=0.0)
    columns = [log.block(day, n).tokens.T for day in (0, 1) for n in (0, 1)]
    drawn = [column for block in columns for column in block]
    for later in range(len(drawn)):
        for earlier in range(later):
            table = np.histogram2d(drawn[earlier], drawn[later], 4)[0]
            assert stats.chi2_contingency(table).pvalue > 1e-4


def test_a_block_is_the_same_whoever_makes_it() -> None:
    log = replace(CLICKS_SMALL, seed=7)
    places = [(day, number) for day in (3, 0) for number in (3, 0, 1)]
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda place: log.block(*place), places))
    again = replace(CLICKS_SMALL, seed=7)
    for place, block in zip(reversed(places), reversed(found), strict=True):
        for one, other in zip(again.block(*place), block, strict=True):
            np.testing.assert_array_equal(one, other)
    assert len(again.block(0, 3).labels) == 200_000 - 3 * BLOCK_ROWS


def test_other_seeds_and_days_give_other_rows() -> None:
    blocks = [
        replace(CLICKS_SMALL, seed=seed).block(day, number).tokens[:1000]
        for seed in (0, 1)
        for day in (0, 1)
        for number in (0, 1)
    ]
    for later in range(len(blocks)):
        for earlier in range(later):
            assert (blocks[earlier] == blocks[later]).mean() < 0.2


def test_the_small_preset() -> None:
    log = CLICKS_SMALL
    assert (len(log.sizes), log.days, log.rows) == (16, 10, 200_000)
    assert (log.sizes[0], log.sizes[-1]) == (100, 200_000)
    ratios = np.array(log.sizes[1:]) / np.array(log.sizes[:-1])
    np.testing.assert_allclose(ratios, ratios.mean(), rtol=0.01)
    assert min(log.exponents) >= 0.8
    assert max(log.exponents) <= 1.3
    assert np.diff(np.sort(log.exponents)).max() < 0.06
    assert abs(stats.spearmanr(log.sizes, log.exponents)[0]) < 0.3


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"sizes": ()}, "a size and an exponent for each feature"),
        ({"sizes": (10,)}, "not 1 sizes and 2 exponents"),
        ({"sizes": (10, 0)}, "the size of a feature must be at least 1, got 0"),
        ({"exponents": (1.0, -0.1)}, "exponent must be between 0 and 10, not -0.1"),
        ({"exponents": (1.0, math.nan)}, "exponent must be between 0 and 10, not nan"),
        ({"days": 0}, "days must be at least 1"),
        ({"rows": 0}, "rows must be at least 1"),
        ({"base_rate": 0.0}, "base rate must be between"),
        ({"new_tokens": 1.5}, "part of new tokens must be between 0 and 1"),
        ({"drift": -1.0}, "drift must be between"),
        ({"linear_std": math.inf}, "standard deviation must be between"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"sizes": (10, 1_500_000_000)}, "more than the 2,147,483,647 that can be numbered"),
    ],
)
def test_what_makes_no_sense_is_refused(change: dict[str, object], says: str) -> None:
    log = ClickLog((10, 20), (1.0, 1.0))
    with pytest.raises(DataError, match=says):
        replace(log, **change)


def test_there_are_no_other_blocks() -> None:
    for day, number in ((10, 0), (-1, 0), (0, 4), (0, -1)):
        with pytest.raises(IndexError):
            CLICKS_SMALL.block(day, number)
