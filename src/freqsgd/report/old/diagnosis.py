"""What ``compare --diagnose`` adds to results: moments, ratios of gradients, errors left."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from freqsgd.documents.results import Relation, Scatter, TokenBucket
from freqsgd.report.old.results import Results, Run

MEASURES = {"norm2": "vectors", "linear2": "linear weights"}
ENOUGH = 10  # tokens of a bucket that is drawn or told of
PREDICTED = ("cfsgd", "fasgd")  # the theory has a bound for them


@dataclass(frozen=True)
class Moments:
    """The second moments of a run."""

    run: Run
    place: int  # of the run
    relations: tuple[Relation, ...]
    points: tuple[tuple[float, float, str], ...]  # of the last epoch: count, moment and field

    @property
    def last(self) -> Relation:
        """After the last epoch."""
        return self.relations[-1]


@dataclass(frozen=True)
class Bucket:
    """Tokens that occur between ``low`` and ``high`` times in the training rows, and a value."""

    low: int
    high: int
    tokens: int
    value: float

    @property
    def middle(self) -> float:
        """A count that stands for all."""
        return math.sqrt(self.low * self.high)

    @property
    def name(self) -> str:
        """Its range."""
        return f"{self.low:,}" if self.low == self.high else f"{self.low:,} to {self.high:,}"

    @property
    def often(self) -> str:
        """The same in words."""
        return "once" if self.high == 1 else f"{self.name} times"


@dataclass(frozen=True)
class Ratios:
    """SGD's mean squared gradients over those of a run."""

    run: Run
    place: int
    measure: str  # a key of MEASURES
    by_epoch: Mapping[int, tuple[Bucket, ...]]
    predicted: tuple[Bucket, ...]

    @property
    def last(self) -> tuple[int, tuple[Bucket, ...]]:
        """The last epoch that both runs have."""
        return max(self.by_epoch.items())


def read_moments(results: Results) -> list[Moments]:
    """The second moments of all runs that have some."""
    return [
        Moments(
            run,
            place,
            run.diagnosis.moments,
            tuple(_points(run.diagnosis.scatter, results.diagnosis.fields)),
        )
        for place, run in enumerate(results.runs)
        if run.diagnosis is not None and run.diagnosis.moments
    ]


def _points(scatter: Scatter, fields: Sequence[str]) -> Iterator[tuple[float, float, str]]:
    names = dict(enumerate(fields))
    for count, moment, field in zip(scatter.count, scatter.moment, scatter.field, strict=False):
        if count and moment and min(count, moment) > 0:
            yield count, moment, "" if field is None else names.get(field, "")


def read_ratios(results: Results, measure: str) -> list[Ratios]:
    """CF-SGD's and FA-SGD's gradients against SGD's, by epoch and bucket."""
    sgd = next((_by_epoch(run) for run in results.runs if run.optimizer == "sgd"), {})
    predicted = tuple(_with(results.diagnosis.prediction, lambda one: one.improvement))
    found = []
    for place, run in enumerate(results.runs):
        if run.optimizer in PREDICTED:
            own = _by_epoch(run)
            both = {epoch: _ratio(sgd[epoch], own[epoch], measure) for epoch in sgd if epoch in own}
            ratios = {epoch: buckets for epoch, buckets in both.items() if epoch and buckets}
            if ratios:
                found.append(Ratios(run, place, measure, ratios, predicted))
    return found


def _ratio(
    above: Iterable[TokenBucket], below: Iterable[TokenBucket], measure: str
) -> tuple[Bucket, ...]:
    others = {one.low: getattr(one, measure) or 0 for one in below}

    def over(one: TokenBucket) -> float | None:
        value, other = getattr(one, measure), others.get(one.low, 0)
        return value / other if value is not None and other > 0 else None

    return tuple(_with(above, over))


def errors_left(results: Results) -> dict[int, dict[int, tuple[Bucket, ...]]]:
    """By place of the run and by epoch, how far predictions are off for tokens of each bucket.

    The value is the root of the mean, over the tokens, of the squared mean error of the
    probabilities predicted for the training samples of a token. Only epochs that all have.
    """
    found = {
        place: {
            epoch: tuple(_with(buckets, lambda one: math.sqrt(one.linear2_per_occurrence or 0)))
            for epoch, buckets in _by_epoch(run).items()
        }
        for place, run in enumerate(results.runs)
        if run.diagnosis is not None
    }
    shared = set[int].intersection(*map(set, found.values())) if found else set()
    return {place: {epoch: errors[epoch] for epoch in shared} for place, errors in found.items()}


def _with(
    buckets: Iterable[TokenBucket], value: Callable[[TokenBucket], float | None]
) -> Iterator[Bucket]:
    """Buckets with one of their values, where that is above 0."""
    for one in buckets:
        found = value(one)
        if found is not None and found > 0:
            yield Bucket(one.low, one.high, one.tokens, found)


def with_enough(buckets: Sequence[Bucket]) -> Sequence[Bucket]:
    """Those with enough tokens for a mean; all if there are none."""
    return [one for one in buckets if one.tokens >= ENOUGH] or buckets


def ends(buckets: Sequence[Bucket]) -> tuple[Bucket, Bucket]:
    """The rarest and the most frequent of them."""
    many = with_enough(buckets)
    return many[0], many[-1]


def exponent(buckets: Iterable[Bucket]) -> float | None:
    """The power of the count that a value follows: a line on log-log scales, tokens alike."""
    points = [
        (math.log(one.middle), math.log(one.value), math.sqrt(one.tokens))
        for one in buckets
        if one.tokens > 0
    ]
    if len(points) < 2:
        return None
    x, y, weights = zip(*points, strict=True)
    return float(np.polyfit(x, y, deg=1, w=weights)[0])


def _by_epoch(run: Run) -> dict[int, tuple[TokenBucket, ...]]:
    return (
        {}
        if run.diagnosis is None
        else {each.epoch: each.buckets for each in run.diagnosis.gradients}
    )
