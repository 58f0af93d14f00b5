"""Reads what ``compare --diagnose`` adds to results (docs/results.md)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from freqsgd.report.results import Results, Run, integer, mapping, number, numbers

__all__ = [
    "ENOUGH",
    "MEASURES",
    "Bucket",
    "Moments",
    "Ratios",
    "Relation",
    "ends",
    "errors_left",
    "exponent",
    "read_moments",
    "read_ratios",
    "with_enough",
]

MEASURES = {"norm2": "vectors", "linear2": "linear weights"}
ENOUGH = 10  # tokens of a bucket that is drawn or told of
PREDICTED = ("cfsgd", "fasgd")  # the theory has a bound for them


@dataclass(frozen=True)
class Relation:
    """How second moments relate to counts after an epoch."""

    epoch: int
    pearson: float | None
    pearson_log: float | None
    spearman: float | None
    slope: float | None
    intercept: float | None
    slope_error: float | None


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
    """Tokens that occur between ``low`` and ``high`` times in the training rows."""

    low: int
    high: int
    tokens: int
    values: Mapping[str, float]

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
    """SGD's mean squared gradients over those of a run, in the values of buckets as ``ratio``."""

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
    fields = results.diagnosis.get("fields")
    names = [str(name) for name in fields] if isinstance(fields, list) else []
    found = []
    for place, run in enumerate(results.runs):
        relations = tuple(_relations(run.diagnosis.get("moments")))
        if relations:
            points = tuple(_points(mapping(run.diagnosis.get("scatter")), names))
            found.append(Moments(run, place, relations, points))
    return found


def _relations(entries: Any) -> Iterator[Relation]:
    keys = ("pearson", "pearson_log", "spearman", "slope", "intercept", "slope_error")
    for entry in _objects(entries):
        epoch = integer(entry.get("epoch"))
        if epoch is not None:
            yield Relation(epoch, **{key: number(entry.get(key)) for key in keys})


def _points(scatter: Mapping[str, Any], fields: list[str]) -> Iterator[tuple[float, float, str]]:
    names = dict(enumerate(fields))
    columns = [scatter.get(key) for key in ("count", "moment", "field")]
    if not all(isinstance(column, list) for column in columns):
        return
    for entry in zip(*columns, strict=False):
        count, moment, field = number(entry[0]), number(entry[1]), integer(entry[2])
        if count and moment and min(count, moment) > 0:
            yield count, moment, "" if field is None else names.get(field, "")


def read_ratios(results: Results, measure: str) -> list[Ratios]:
    """CF-SGD's and FA-SGD's gradients against SGD's, by epoch and bucket."""
    sgd = next((_by_epoch(run) for run in results.runs if run.optimizer == "sgd"), {})
    predicted = tuple(
        Bucket(one.low, one.high, one.tokens, {"ratio": one.values["improvement"]})
        for one in _buckets(results.diagnosis.get("prediction"))
        if one.values.get("improvement", 0) > 0
    )
    found = []
    for place, run in enumerate(results.runs):
        if run.optimizer in PREDICTED:
            own = _by_epoch(run)
            both = {epoch: _ratio(sgd[epoch], own[epoch], measure) for epoch in sgd if epoch in own}
            ratios = {epoch: buckets for epoch, buckets in both.items() if epoch and buckets}
            if ratios:
                found.append(Ratios(run, place, measure, ratios, predicted))
    return found


def _ratio(above: Iterable[Bucket], below: Iterable[Bucket], measure: str) -> tuple[Bucket, ...]:
    others = {one.low: one.values.get(measure, 0) for one in below}
    return tuple(
        Bucket(one.low, one.high, one.tokens, {"ratio": one.values[measure] / others[one.low]})
        for one in above
        if others.get(one.low, 0) > 0 and one.values.get(measure, 0) > 0
    )


def errors_left(results: Results) -> dict[int, dict[int, tuple[Bucket, ...]]]:
    """By place of the run and by epoch, how far predictions are off for tokens of each bucket.

    The value ``error`` is the root of the mean, over the tokens, of the squared mean error of the
    probabilities predicted for the training samples of a token. Only epochs that all have.
    """
    found = {
        place: {epoch: tuple(_errors(buckets)) for epoch, buckets in _by_epoch(run).items()}
        for place, run in enumerate(results.runs)
        if run.diagnosis
    }
    shared = set[int].intersection(*map(set, found.values())) if found else set()
    return {place: {epoch: errors[epoch] for epoch in shared} for place, errors in found.items()}


def _errors(buckets: Iterable[Bucket]) -> Iterator[Bucket]:
    for one in buckets:
        square = one.values.get("linear2_per_occurrence", 0)
        if square > 0:
            yield Bucket(one.low, one.high, one.tokens, {"error": math.sqrt(square)})


def with_enough(buckets: Sequence[Bucket]) -> Sequence[Bucket]:
    """Those with enough tokens for a mean; all if there are none."""
    return [one for one in buckets if one.tokens >= ENOUGH] or buckets


def ends(buckets: Sequence[Bucket]) -> tuple[Bucket, Bucket]:
    """The rarest and the most frequent of them."""
    many = with_enough(buckets)
    return many[0], many[-1]


def exponent(buckets: Iterable[Bucket], key: str = "ratio") -> float | None:
    """The power of the count that a value follows: a line on log-log scales, tokens alike."""
    points = [
        (math.log(one.middle), math.log(one.values[key]), math.sqrt(one.tokens))
        for one in buckets
        if one.values.get(key, 0) > 0 and one.tokens > 0
    ]
    if len(points) < 2:
        return None
    x, y, weights = zip(*points, strict=True)
    return float(np.polyfit(x, y, deg=1, w=weights)[0])


def _by_epoch(run: Run) -> dict[int, tuple[Bucket, ...]]:
    found = {}
    for entry in _objects(run.diagnosis.get("gradients")):
        epoch = integer(entry.get("epoch"))
        if epoch is not None:
            found[epoch] = tuple(_buckets(entry.get("buckets")))
    return found


def _buckets(entries: Any) -> Iterator[Bucket]:
    for entry in _objects(entries):
        low, high = integer(entry.get("from")), integer(entry.get("to"))
        if low and high and 0 < low <= high:
            yield Bucket(low, high, integer(entry.get("tokens")) or 0, numbers(entry))


def _objects(entries: Any) -> Iterator[Mapping[str, Any]]:
    return (mapping(entry) for entry in (entries if isinstance(entries, list) else []))
