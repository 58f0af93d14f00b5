"""What a diagnosis shows, in sentences that hold whatever the numbers are."""

from __future__ import annotations

from freqsgd.report.old.diagnosis import (
    MEASURES,
    Moments,
    Ratios,
    ends,
    exponent,
    read_moments,
    read_ratios,
)
from freqsgd.report.old.page import Statement
from freqsgd.report.old.results import Results
from freqsgd.report.old.wording import factor

LEVEL = 0.1  # exponents that differ by less count as the same


def diagnosis_words(results: Results) -> list[Statement]:
    """All that can be said; nothing without ``--diagnose``."""
    statements = [
        Statement(f"Second moments of {moments.run.label}", _moments_words(moments))
        for moments in read_moments(results)
        if moments.last.pearson_log is not None
    ]
    for measure, of in MEASURES.items():
        for ratios in read_ratios(results, measure):
            topic = f"Gradients of {of}, SGD and {ratios.run.label}"
            statements.append(Statement(topic, _ratio_words(ratios)))
    return statements


def _moments_words(moments: Moments) -> str:
    last = moments.last
    assert last.pearson_log is not None
    closeness = next(
        word
        for least, word in ((0.9, "closely"), (0.7, "roughly"), (0.4, "loosely"), (-1.1, "hardly"))
        if last.pearson_log >= least
    )
    words = (
        f"After epoch {last.epoch} they follow the tokens' counts {closeness}: correlation "
        f"{_shown(last.pearson_log)} on log scales, {_shown(last.pearson)} on plain ones, "
        f"{_shown(last.spearman)} of ranks."
    )
    if last.slope is None:
        return words
    error = "" if last.slope_error is None else f" \N{PLUS-MINUS SIGN} {last.slope_error:.3f}"
    return f"{words} They grow as count^{last.slope:.3f}{error}: {_in_proportion(last.slope)}."


def _in_proportion(slope: float) -> str:
    if abs(slope - 1) <= LEVEL:
        return "in proportion, nearly, so that its steps fall with frequency as CF-SGD's do"
    speed = "faster" if slope > 1 else "more slowly"
    effect = "more" if slope > 1 else "less"
    return f"{speed} than in proportion, so that frequency lowers its steps {effect} than CF-SGD's"


def _ratio_words(ratios: Ratios) -> str:
    epoch, buckets = ratios.last
    rare, frequent = ends(buckets)
    power, predicted = exponent(buckets), exponent(ratios.predicted)
    words = (
        f"After epoch {epoch} the mean squared gradient that SGD leaves is "
        f"{factor(rare.value)} times {ratios.run.label}'s for tokens that occur "
        f"{rare.often}"
    )
    if rare is frequent or power is None:
        return f"{words}."
    words += f" and {factor(frequent.value)} times for those that occur {frequent.often}"
    words += f"; it goes as count^{power:z.2f}"
    if predicted is None:
        return f"{words}."
    low, high = (factor(one.value) for one in ends(ratios.predicted))
    return (
        f"{words}. The bounds predict {low} and {high}, as count^{predicted:z.2f}: "
        f"{_verdict(power, predicted)}{_but(power, exponent((rare, frequent)))}."
    )


def _but(power: float, between_ends: float | None) -> str:
    """A line through all tokens can hide that the rarest and the most frequent ones differ."""
    if between_ends is None or abs(between_ends - power) <= 2 * LEVEL:
        return ""
    return f" over all tokens, but from end to end it is count^{between_ends:z.2f}"


def _verdict(power: float, predicted: float) -> str:
    if abs(power - predicted) <= LEVEL:
        return "the trend is the predicted one"
    if abs(power) <= LEVEL:
        return "there is no trend where one is predicted"
    if power * predicted < 0:
        return "the trend is opposite to the predicted one"
    return f"the trend is {'steeper' if abs(power) > abs(predicted) else 'weaker'} than predicted"


def _shown(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3f}"
