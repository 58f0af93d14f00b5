"""Clicks of many days, drawn from a known model: see :class:`ClickLog`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freqsgd.checks import real_number, whole_number
from freqsgd.errors import DataError
from freqsgd.kernels.compiled import compiled, inlined

BLOCK_ROWS = 1 << 16
_GENERATION = 1 << 32  # the unit in which phases are counted
_MOST_TOKENS = 2**31 - 1
_MOST_FEATURES = 4096  # of which a block takes a gigabyte
_MOST_DAYS = 100_000
_NEAR = 1e-6  # exponents that differ by less from 1 count as 1
_ROWS, _SAMPLE, _PHASE, _FACTOR, _SHIFT, _HIDDEN = range(6)  # what keys are for
_MASK = 2**64 - 1


class ClickBlock(NamedTuple):
    """Consecutive rows of a day."""

    tokens: NDArray[np.int32]  # (rows, features); tokens of each feature start at 0
    labels: NDArray[np.uint8]  # (rows,), 0 or 1
    log_odds: NDArray[np.float32]  # (rows,): the true ones, which no model can beat


@dataclass(frozen=True)
class ClickLog:
    """A click log of any length, none of which is stored.

    A row has a token of each feature. The rank n = 0, 1, ... of the token is drawn from a power law
    with the feature's exponent a: P(n) is proportional to the integral of x^-a over [n + 1, n + 2).

    Tokens come and go: on day d the token that holds rank n is that of generation
    floor(phase_n + new_tokens * d), with phases spread evenly over [0, 1). So every day a part
    ``new_tokens`` of all ranks passes to tokens that were never seen before. Tokens are numbered
    permuted(rank) + size * generation.

    A token has a hidden weight and a hidden vector of ``dim`` numbers, each of mean 0 and variance
    1. They turn: on day d a number is u cos(drift d) + v sin(drift d) of two independent draws u
    and v, so that its correlation between the days s and t is cos(drift (s - t)). The log odds of a
    click are

        bias_d + linear_std * (sum of the weights) / sqrt(F)
               + interaction_std * (sum over pairs of the products of vectors) / sqrt(dim * pairs)

    for F features, so that the two parts have these standard deviations over draws of the hidden
    numbers, however many features there are. The bias of a day makes the mean probability
    ``base_rate`` on a sample of 65,536 rows of that day which are not given out.

    All randomness is hashing of the seed and of what it is for. So a block of rows can be made
    without those before it, in any thread, and always has the same bits. The defaults were fixed
    before any optimizer ran on such data.

    Args:
        sizes: tokens of each feature on any one day, up to 10^8 and more
        exponents: of each feature; 0 makes all tokens equally frequent
        days: how many
        rows: of a day
        base_rate: mean probability of a click
        drift: how far hidden numbers turn in a day, in radians
        new_tokens: the part of the ranks that pass to new tokens in a day
        linear_std: standard deviation of the linear part of the log odds
        interaction_std: standard deviation of the part of the pairs
        dim: size of the hidden vectors
        seed: the same seed gives the same log

    Example:
        >>> log = ClickLog(sizes=(1000, 50), exponents=(1.1, 0.8), days=2, rows=100_000)
        >>> log.block(day=1, number=1).tokens.shape
        (34464, 2)
    """

    sizes: tuple[int, ...]
    exponents: tuple[float, ...]
    days: int = 10
    rows: int = 200_000
    base_rate: float = 0.1
    drift: float = 0.1
    new_tokens: float = 0.02
    linear_std: float = 1.0
    interaction_std: float = 1.0
    dim: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("sizes", "exponents"):  # lists would not be hashable
            object.__setattr__(self, name, tuple(getattr(self, name)))
        self._check()

    @classmethod
    def of(
        cls, features: int = 16, smallest: int = 100, largest: int = 200_000, **others: Any
    ) -> ClickLog:
        """Return a log of so many features, whose sizes and exponents are spread.

        The sizes rise from the smallest to the largest by a constant factor. The exponents lie
        between 0.8 and 1.3, spread evenly and unrelated to the sizes.

        Example:
            >>> ClickLog.of(3, 100, 10_000).sizes
            (100, 1000, 10000)
        """
        whole_number("the number of features", features, least=1, most=_MOST_FEATURES)
        whole_number("the smallest size", smallest, least=1)
        whole_number("the largest size", largest, least=smallest)
        golden = (math.sqrt(5) - 1) / 2
        steps = max(features - 1, 1)
        sizes = [round(smallest * (largest / smallest) ** (n / steps)) for n in range(features)]
        exponents = [0.8 + 0.5 * (n * golden % 1) for n in range(features)]
        return cls(tuple(sizes), tuple(exponents), **others)

    @property
    def tokens(self) -> tuple[int, ...]:
        """Tokens of each feature over all days: they lie in [0, this)."""
        generations = (_GENERATION - 1 + self._advance(self.days - 1)) // _GENERATION + 1
        return tuple(size * generations for size in self.sizes)

    @property
    def day_names(self) -> tuple[str, ...]:
        """Names of the days, and of their folders."""
        digits = max(2, len(str(self.days - 1)))
        return tuple(f"day-{day:0{digits}}" for day in range(self.days))

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, and of their columns."""
        digits = max(2, len(str(len(self.sizes))))
        return tuple(f"f{n:0{digits}}" for n in range(1, len(self.sizes) + 1))

    @property
    def blocks(self) -> int:
        """Blocks of a day."""
        return -(-self.rows // BLOCK_ROWS)

    def block(self, day: int, number: int) -> ClickBlock:
        """Draw ``BLOCK_ROWS`` rows of a day from ``number * BLOCK_ROWS`` on; the last has fewer."""
        if not (0 <= day < self.days and 0 <= number < self.blocks):
            raise IndexError(f"there is no block {number} of day {day}")
        rows = min(BLOCK_ROWS, self.rows - number * BLOCK_ROWS)
        key = _key(self.seed, _ROWS, day, number)
        tokens, score = self._draw(key, day, rows)
        odds, labels = _bias(self, day) + score, np.empty(rows, np.uint8)
        click_rows(key, len(self.sizes), odds, labels)
        return ClickBlock(tokens, labels, odds.astype(np.float32))

    def _draw(
        self, key: np.uint64, day: int, rows: int
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Draw tokens of rows, and their log odds without the bias."""
        tokens, score = np.empty((rows, len(self.sizes)), np.int32), np.empty(rows)
        angle = self.drift * day
        turn = math.cos(angle), math.sin(angle)
        draw_rows(key, self._features, self._advance(day), *turn, self._scales, tokens, score)
        return tokens, score

    def _advance(self, day: int) -> int:
        """Count the generations that have passed, times 2^32, exactly."""
        return round(self.new_tokens * day * _GENERATION)

    @cached_property
    def _features(self) -> NDArray[Any]:
        """What the kernel knows of each feature."""
        table = np.zeros(len(self.sizes), FEATURE)
        for n, (size, exponent) in enumerate(zip(self.sizes, self.exponents, strict=True)):
            power = 0.0 if abs(1 - exponent) < _NEAR else 1 - exponent
            span = math.expm1(power * math.log(size + 1)) if power else math.log(size + 1)
            factor = 1 + int(_key(self.seed, _FACTOR, n)) % size
            while math.gcd(factor, size) > 1:
                factor += 1
            shift = int(_key(self.seed, _SHIFT, n)) % size
            phase, hidden = (_key(self.seed, purpose, n) for purpose in (_PHASE, _HIDDEN))
            table[n] = (size, 1 / power if power else 0.0, span, phase, factor, shift, hidden)
        return table

    @cached_property
    def _scales(self) -> NDArray[np.float64]:
        """What sums of hidden numbers, drawn as 32 bits, and their pairs are multiplied with."""
        count = len(self.sizes)
        unit = math.sqrt(12) / 2**32
        pairs = max(count * (count - 1) // 2, 1)
        product = self.interaction_std * unit**2 / math.sqrt(self.dim * pairs) / 2
        return np.array([self.linear_std * unit / math.sqrt(count), *[product] * self.dim])

    def _check(self) -> None:
        if not self.sizes or len(self.sizes) != len(self.exponents):
            raise DataError(
                f"a click log needs a size and an exponent for each feature, not {len(self.sizes)} "
                f"sizes and {len(self.exponents)} exponents"
            )
        whole_number("the number of features", len(self.sizes), least=1, most=_MOST_FEATURES)
        for size in self.sizes:
            whole_number("the size of a feature", size, least=1)
        for name, most in (("days", _MOST_DAYS), ("rows", 2**62), ("dim", 1024)):
            whole_number(name, getattr(self, name), least=1, most=most)
        whole_number("seed", self.seed, least=0, most=_MASK)
        _check_range("exponent", self.exponents, 0, 10)
        _check_range("base rate", [self.base_rate], 1e-6, 1 - 1e-6)
        _check_range("drift", [self.drift], 0, math.pi)
        _check_range("part of new tokens", [self.new_tokens], 0, 1)
        _check_range("standard deviation", [self.linear_std, self.interaction_std], 0, 100)
        if max(self.tokens) > _MOST_TOKENS:
            raise DataError(
                f"a feature of {max(self.sizes):,} tokens has {max(self.tokens):,} over "
                f"{self.days} days, more than the {_MOST_TOKENS:,} that can be numbered: make it "
                "smaller, or have fewer days or new tokens"
            )


def _check_range(name: str, values: Sequence[float], least: float, most: float) -> None:
    for value in values:
        if not least <= real_number(name, value) <= most:
            raise DataError(f"{name} must be between {least:g} and {most:g}, not {value:g}")


def _key(seed: int, *parts: int) -> np.uint64:
    """Starts a sequence of random numbers that has nothing to do with those of other keys."""
    key = _mixed(seed + GOLDEN)
    for part in parts:
        key = _mixed((key ^ (part + 1)) * GOLDEN)
    return np.uint64(key)


def _mixed(value: int) -> int:
    value &= _MASK
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & _MASK
    return value ^ (value >> 31)


@lru_cache(maxsize=256)
def _bias(log: ClickLog, day: int) -> float:
    """Return what makes the mean probability of a sample of the day the base rate."""
    _, score = log._draw(_key(log.seed, _SAMPLE, day), day, BLOCK_ROWS)
    low, high = -1000.0, 1000.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        with np.errstate(over="ignore"):
            mean = float((1 / (1 + np.exp(-(middle + score)))).mean())
        low, high = (middle, high) if mean < log.base_rate else (low, middle)
    return low


CLICKS_SMALL = ClickLog.of(16, 100, 200_000, days=10, rows=200_000)
"""The preset: ten days of 200,000 rows, 16 features of 100 to 200,000 tokens."""


# Rows of a click log, compiled; :mod:`freqsgd.tables.generated.click_log` says what they are.
#
# All that is random is a hash of a key and a counter (SplitMix64): nothing depends on what was made
# before, so rows can be made in any order and by any number of threads.

FEATURE = np.dtype(
    [
        ("size", np.int64),  # ranks
        ("stretch", np.float64),  # 1 / (1 - exponent), 0 where the exponent is 1
        ("span", np.float64),  # (size + 1) ** (1 - exponent) - 1, or log(size + 1)
        ("phase_key", np.uint64),  # of the ranks' phases
        ("factor", np.int64),  # rank -> (factor * rank + shift) mod size is the permutation
        ("shift", np.int64),
        ("hidden_key", np.uint64),  # of the tokens' hidden numbers
    ]
)
GOLDEN = 0x9E3779B97F4A7C15

_STEP, _FIRST, _SECOND = map(np.uint64, (GOLDEN, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_30, _27, _31, _32, _11 = map(np.uint64, (30, 27, 31, 32, 11))
_LOW = np.uint64(0xFFFFFFFF)
_UNIT = 2.0**-53
_HALF = np.int64(32)


@inlined
def _bits(key: Any, counter: Any) -> Any:
    """Return 64 random bits: number ``counter`` of the sequence that the key starts."""
    value = key + np.uint64(counter) * _STEP
    value = (value ^ (value >> _30)) * _FIRST
    value = (value ^ (value >> _27)) * _SECOND
    return value ^ (value >> _31)


@inlined
def _uniform(key: Any, counter: Any) -> Any:
    """Return a random number in [0, 1)."""
    return (_bits(key, counter) >> _11) * _UNIT


@inlined
def _rank(uniform: Any, feature: Any) -> Any:
    """Return the rank whose part of the distribution function holds a number in [0, 1)."""
    log = feature.span * uniform
    if feature.stretch != 0.0:
        log = math.log(1.0 + log) * feature.stretch
    return min(np.int64(math.exp(log)) - 1, feature.size - 1)


@compiled
def draw_rows(
    key: Any,
    features: Any,
    advance: Any,
    cosine: Any,
    sine: Any,
    scales: Any,
    tokens: Any,
    score: Any,
) -> None:
    """Draw the tokens of rows and what they add to the log odds.

    Args:
        key: of the rows
        features: (F,) FEATURE
        advance: generations that have passed, times 2^32
        cosine: of the day's angle
        sine: of the day's angle
        scales: (1 + dim,) of the hidden weight, then of the coordinates of the hidden vector
        tokens: (rows, F) int32, filled
        score: (rows,) float64, filled
    """
    rows, count = tokens.shape
    starts = np.empty(count, np.uint64)
    for row in range(rows):
        for column in range(count):
            feature = features[column]
            rank = _rank(_uniform(key, row * (count + 1) + column), feature)
            phase = np.int64(_bits(feature.phase_key, rank) >> _32)
            generation = (phase + advance) >> _HALF
            token = (feature.factor * rank + feature.shift) % feature.size
            token += feature.size * generation
            tokens[row, column] = token
            starts[column] = feature.hidden_key + np.uint64(token * len(scales)) * _STEP
        odds = 0.0
        for number in range(len(scales)):
            total = squares = 0.0
            for column in range(count):
                bits = _bits(starts[column], number)
                first, second = np.int32(bits >> _32), np.int32(bits)
                value = cosine * first + sine * second
                total += value
                squares += value * value
            odds += scales[number] * (total if number == 0 else total * total - squares)
        score[row] = odds


@compiled
def click_rows(key: Any, count: Any, odds: Any, labels: Any) -> None:
    """Draw the labels of rows of ``count`` tokens from their log odds."""
    for row in range(len(odds)):
        probability = 1.0 / (1.0 + math.exp(-odds[row]))
        labels[row] = _uniform(key, row * (count + 1) + count) < probability
