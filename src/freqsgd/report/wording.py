"""Numbers as words: how the report writes scores, times, sizes and ratios."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import mean, stdev

SPACE = "\N{NO-BREAK SPACE}"  # between a number and its unit
MOST_NAMES = 5  # that a sentence lists
LONGEST_NAME = 32  # in a sentence


def score(value: float) -> str:
    """Return an AUC or a loss."""
    return f"{value:.4f}"


def difference(one: float, other: float) -> str:
    """Return how far two scores are apart: the difference of what ``score`` shows of them."""
    apart = abs(round(one, 4) - round(other, 4))
    return "less than 0.0001" if apart < 0.00005 and one != other else score(apart)


def spread(values: Sequence[float], show: Callable[[float], str] = score) -> str:
    """Return mean and standard deviation; of a single value, that."""
    if len(values) == 1:
        return show(values[0])
    return f"{show(mean(values))} \N{PLUS-MINUS SIGN} {show(stdev(values))}"


def thousands(value: float) -> str:
    """Return a count."""
    return f"{value:,.0f}"


def count_of(count: float, word: str) -> str:
    """Return a number of things.

    Example:
        >>> count_of(1, "day"), count_of(2500, "row")
        ('1 day', '2,500 rows')
    """
    return f"{thousands(count)} {word if count == 1 else word + 's'}"


def often(count: float) -> str:
    """Return how many times something was seen."""
    return "once" if count == 1 else f"{thousands(count)} times"


def percent(share: float) -> str:
    """Return a share; what is not 0 does not look like it."""
    digits = 0 if share >= 0.0995 or share == 0 else 1 if share >= 0.001 else 3
    return f"{100 * share:.{digits}f}%"


def duration(seconds: float) -> str:
    """Return a time, to the precision that timings have."""
    if seconds < 119.5:
        digits = 2 if seconds < 0.095 else 1 if seconds < 9.95 else 0
        return f"{seconds:.{digits}f}{SPACE}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 10:
        return f"{minutes}{SPACE}min {rest}{SPACE}s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours}{SPACE}h {minutes}{SPACE}min" if hours else f"{minutes}{SPACE}min"


def size(count: float) -> str:
    """Return a number of bytes."""
    if count == 0:
        return "none"
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{three_digits(count / factor)}{SPACE}{unit}"
    return f"{count:.0f}{SPACE}bytes"


def megabytes(count: float) -> str:
    """Return a number of bytes as a number of MB, to three digits."""
    return "0" if count == 0 else three_digits(count / 1e6)


def three_digits(value: float) -> str:
    """Return three significant digits, without an exponent."""
    places = max(0, 2 - math.floor(math.log10(value)))
    return f"{value:,.{places}f}"


def ratio(value: float) -> str:
    """Return how many times one number holds another."""
    return f"{value:.1f}" if value < 9.95 else f"{value:,.0f}"


def factor(value: float) -> str:
    """Return how many times one number is another, also where it is less than once."""
    return ratio(value) if value >= 0.95 else f"{value:.2g}"


def times(mine: float, other: float, less: str, more: str, same: str) -> str:
    """Return what ``mine`` is of ``other``, in words.

    >>> times(6, 25, "fewer epochs", "more epochs", "as many epochs")
    '4.2 times fewer epochs'
    """
    if mine == other:
        return same
    low, high, words = (mine, other, less) if mine < other else (other, mine, more)
    if low <= 0:
        return words
    return f"slightly {words}" if high / low < 1.05 else f"{ratio(high / low)} times {words}"


def enumerate_words(words: Iterable[str]) -> str:
    """Return words as a sentence lists them: "SGD, CF-SGD and Adam"."""
    listed: Sequence[str] = list(words)
    if len(listed) < 2:
        return "".join(listed)
    return f"{', '.join(listed[:-1])} and {listed[-1]}"


def shortened(name: str, most: int = LONGEST_NAME) -> str:
    """Return a name of at most so many characters, with its start and its end.

    >>> shortened("a_name_that_goes_on_and_on", 12)
    'a_name_…d_on'
    """
    if len(name) <= most:
        return name
    end = most // 3
    return f"{name[: most - end - 1]}…{name[-end:]}"


def named(names: Sequence[str]) -> str:
    """Return the first of many names as a sentence lists them: "a, b, c, d, e and 15 more"."""
    listed = list(map(shortened, names[:MOST_NAMES]))
    more = len(names) - len(listed)
    return enumerate_words([*listed, f"{thousands(more)} more"] if more else listed)


def capitalized(words: str) -> str:
    """Return words at the start of a sentence: AUC stays AUC."""
    return words[:1].upper() + words[1:]
