"""A row of a click log, computed number by number in Python's own arithmetic."""

from __future__ import annotations

import math

from freqsgd.tables import ClickLog

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
ROWS, SAMPLE, PHASE, FACTOR, SHIFT, HIDDEN = range(6)


def mixed(value: int) -> int:
    value &= MASK
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & MASK
    return value ^ (value >> 31)


def key(seed: int, *parts: int) -> int:
    start = mixed(seed + GOLDEN)
    for part in parts:
        start = mixed((start ^ (part + 1)) * GOLDEN)
    return start


def bits(start: int, counter: int) -> int:
    return mixed(start + counter * GOLDEN)


def uniform(start: int, counter: int) -> float:
    return (bits(start, counter) >> 11) / 2**53


def rank(u: float, size: int, exponent: float) -> int:
    """Invert the distribution function ((x^p - 1) / ((size + 1)^p - 1)), p = 1 - exponent."""
    if exponent == 1:
        x = (size + 1) ** u
    else:
        p = 1 - exponent
        x = (1 + u * ((size + 1) ** p - 1)) ** (1 / p)
    return min(math.floor(x) - 1, size - 1)


def factor(log: ClickLog, feature: int) -> int:
    """The first number from a random one on that has no divisor in common with the size."""
    size = log.sizes[feature]
    number = 1 + key(log.seed, FACTOR, feature) % size
    while math.gcd(number, size) > 1:
        number += 1
    return number


def token_of(log: ClickLog, feature: int, n: int, day: int) -> int:
    """The token that holds a rank on a day."""
    size = log.sizes[feature]
    phase = (bits(key(log.seed, PHASE, feature), n) >> 32) / 2**32
    generation = math.floor(phase + log.new_tokens * day)
    shift = key(log.seed, SHIFT, feature) % size
    return (factor(log, feature) * n + shift) % size + size * generation


def hidden(log: ClickLog, feature: int, token: int, day: int) -> list[float]:
    """The weight, then the vector of a token on a day: of mean 0 and variance 1."""
    numbers = []
    for place in range(log.dim + 1):
        drawn = bits(key(log.seed, HIDDEN, feature), token * (log.dim + 1) + place)
        halves = (drawn >> 32, drawn & 0xFFFFFFFF)
        u, v = ((half - 2**32 if half >= 2**31 else half) for half in halves)
        turned = u * math.cos(log.drift * day) + v * math.sin(log.drift * day)
        numbers.append(turned / 2**32 * math.sqrt(12))
    return numbers


def log_odds(log: ClickLog, tokens: list[int], day: int) -> float:
    """Without the bias."""
    count = len(tokens)
    pairs = count * (count - 1) / 2
    known = [hidden(log, feature, token, day) for feature, token in enumerate(tokens)]
    linear = sum(numbers[0] for numbers in known) / math.sqrt(count)
    products = sum(
        a * b
        for second in range(count)
        for first in range(second)
        for a, b in zip(known[first][1:], known[second][1:], strict=True)
    )
    return log.linear_std * linear + (
        log.interaction_std * products / math.sqrt(log.dim * max(pairs, 1))
    )


def row(log: ClickLog, day: int, block: int, number: int) -> tuple[list[int], float, float]:
    """Tokens, log odds without the bias, and the number that is a click if below the chance."""
    start, count = key(log.seed, ROWS, day, block), len(log.sizes)
    tokens = []
    for feature, (size, exponent) in enumerate(zip(log.sizes, log.exponents, strict=True)):
        n = rank(uniform(start, number * (count + 1) + feature), size, exponent)
        tokens.append(token_of(log, feature, n, day))
    chance = uniform(start, number * (count + 1) + count)
    return tokens, log_odds(log, tokens, day), chance
