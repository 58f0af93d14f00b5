"""What ``compare --diagnose`` adds to a page: second moments, gradients, errors left."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from freqsgd.documents.results import Relation, Scatter, TokenBucket
from freqsgd.report.charts import (
    SMALL,
    Chart,
    Series,
    Spec,
    axis,
    chart,
    level,
    lines,
    outline,
    points,
)
from freqsgd.report.page import Section
from freqsgd.report.results import Results, Run
from freqsgd.report.tables import Table, shown, table
from freqsgd.report.wording import factor

MEASURES = {"norm2": "vectors", "linear2": "linear weights"}
ENOUGH = 10  # tokens of a bucket that is drawn or told of
FEW = f" Buckets of fewer than {ENOUGH} tokens are not shown."
PREDICTED = ("cfsgd", "fasgd")  # the theory has a bound for them


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
    def often(self) -> str:
        """Its range in words."""
        if self.high == 1:
            return "once"
        return (
            f"{self.low:,} times"
            if self.low == self.high
            else f"{self.low:,} to {self.high:,} times"
        )


@dataclass(frozen=True)
class Ratios:
    """SGD's mean squared gradients over those of a run."""

    run: Run
    measure: str  # a key of MEASURES
    by_epoch: Mapping[int, tuple[Bucket, ...]]
    predicted: tuple[Bucket, ...]

    @property
    def last(self) -> tuple[int, tuple[Bucket, ...]]:
        """The last epoch that both runs have."""
        return max(self.by_epoch.items())


def relations_of(run: Run) -> tuple[Relation, ...]:
    """Return how a run's second moments follow the counts, epoch by epoch."""
    return run.diagnosis.moments if run.diagnosis else ()


def _points(results: Results, run: Run) -> Iterator[tuple[float, float, str]]:
    """Count, second moment and field of some tokens after the last epoch."""
    names = dict(enumerate(results.diagnosis.fields))
    of = run.diagnosis.scatter if run.diagnosis else Scatter()
    for count, moment, field in zip(of.count, of.moment, of.field, strict=False):
        if count and moment and min(count, moment) > 0:
            yield count, moment, "" if field is None else names.get(field, "")


def read_ratios(results: Results, measure: str) -> list[Ratios]:
    """CF-SGD's and FA-SGD's gradients against SGD's, by epoch and bucket."""
    sgd = next((_by_epoch(run) for run in results.runs if run.optimizer == "sgd"), {})
    predicted = tuple(_with(results.diagnosis.prediction, lambda one: one.improvement))
    found = []
    for run in results.runs:
        if run.optimizer in PREDICTED:
            own = _by_epoch(run)
            both = {epoch: _ratio(sgd[epoch], own[epoch], measure) for epoch in sgd if epoch in own}
            ratios = {epoch: buckets for epoch, buckets in both.items() if epoch and buckets}
            if ratios:
                found.append(Ratios(run, measure, ratios, predicted))
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


def some_epochs(epochs: Iterable[int]) -> list[int]:
    """Return the first, the last and one between them."""
    known = sorted(epochs)
    middle = min(known, key=lambda epoch: abs(epoch - math.sqrt(known[0] * known[-1])))
    return sorted({known[0], middle, known[-1]})


# ---- words ---------------------------------------------------------------------------------------


def diagnosis_words(results: Results) -> list[tuple[str, str]]:
    """Return topics with what is said of them; nothing without ``--diagnose``."""
    told = [
        (f"Second moments of {run.label}", words)
        for run in results.runs
        if (words := _moments_words(run))
    ]
    for measure, of in MEASURES.items():
        for ratios in read_ratios(results, measure):
            told.append((f"Gradients of {of}, SGD and {ratios.run.label}", _ratio_words(ratios)))
    return told


def _moments_words(run: Run) -> str:
    last = next(reversed(relations_of(run)), None)
    if last is None or last.pearson_log is None:
        return ""
    words = (
        f"After epoch {last.epoch} their correlation with the tokens' counts is "
        f"{_digits(last.pearson_log)} on log scales"
    )
    if last.slope is None:
        return f"{words}."
    power = _with_error(last.slope, last.slope_error)
    return f"{words}; they grow as the count to the power {power} (1: Adam's steps as CF-SGD's)."


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
    if predicted is None:
        return f"{words}."
    low, high = (factor(one.value) for one in ends(ratios.predicted))
    return (
        f"{words}; the bounds predict {low} and {high}. It goes as count^{power:z.2f}, where "
        f"count^{predicted:z.2f} is predicted."
    )


# ---- charts and tables ---------------------------------------------------------------------------


def diagnosis_sections(results: Results, series: Sequence[Series]) -> list[Section]:
    """Return what ``--diagnose`` found; nothing without it."""
    runs = [run for run in results.runs if relations_of(run)]
    charts = [each for run in runs for each in _moments_charts(results, run, series)]
    tables = [_relation_table(runs)] if runs else []
    return [
        Section("Second moments against counts", charts, tables=tables),
        Section("Gradients by token frequency", list(_gradient_charts(results, series))),
    ]


def _relation_table(runs: Sequence[Run]) -> Table:
    """Correlations and powers after every epoch."""
    head = ["Optimizer", "Epoch", "Pearson", "On log scales", "Spearman", "Power of the count"]
    rows = [
        [
            run.label,
            str(relation.epoch),
            *map(_digits, (relation.pearson, relation.pearson_log, relation.spearman)),
            _with_error(relation.slope, relation.slope_error),
        ]
        for run in runs
        for relation in relations_of(run)
    ]
    return table(head, rows, folded="Correlations after every epoch")


def _moments_charts(results: Results, run: Run, series: Sequence[Series]) -> Iterator[Chart]:
    last = relations_of(run)[-1]
    rows: list[dict[str, Any]] = [
        {"run": run.label, "count": count, "moment": moment, "field": field}
        for count, moment, field in _points(results, run)
    ]
    if not rows:
        return
    counts, moments = ([row[key] for row in rows] for key in ("count", "moment"))
    fitted = []
    if last.slope is not None and last.intercept is not None:
        fitted = [
            {"count": count, "moment": math.exp(last.intercept + last.slope * math.log(count))}
            for count in _ends(counts)
        ]
    yield chart(
        f"moments-{results.runs.index(run)}",
        f"Second moments of {run.label} after epoch {last.epoch}",
        series,
        rows,
        axis("count", "CF-SGD's count", log=True, grid=False, format="~s", domain=_ends(counts)),
        axis("moment", log=True, format=".0e", domain=_ends(moments)),  # also if the run is hidden
        points(size=SMALL // 2, opacity=0.35),
        *([outline(fitted, strokeDash=[1, 0], strokeWidth=1.5)] if fitted else []),
        tips=[("field", "field", ""), ("count", "count", ",.0f"), ("moment", "moment", ".3~g")],
        note=f"{_moments_words(run)} Each of the {len(rows):,} points is a token; the line is "
        "fitted to all tokens. The count is what CF-SGD has after as many epochs.".strip(),
    )


def _gradient_charts(results: Results, series: Sequence[Series]) -> Iterator[Chart]:
    """How SGD's gradients compare, and what is left to learn."""
    for measure, of in MEASURES.items():
        if found := read_ratios(results, measure):
            yield _ratio_chart(found, measure, of, series)
    errors = errors_left(results)
    epoch = max((max(by_epoch, default=0) for by_epoch in errors.values()), default=0)
    if errors and all(by_epoch.get(epoch) for by_epoch in errors.values()):
        yield _error_chart(results, errors, epoch, series)


def _ratio_chart(found: Sequence[Ratios], measure: str, of: str, series: Sequence[Series]) -> Chart:
    """SGD's mean squared gradients over those of others, epoch by epoch, and the prediction."""
    rows = [
        {"run": ratios.run.label, "epoch": epoch, **_row(bucket)}
        for ratios in found
        for epoch in some_epochs(ratios.by_epoch)
        for bucket in with_enough(ratios.by_epoch[epoch])
    ]
    saddle = (
        " Below 1, SGD's gradients are the smaller ones, which need not be progress: vectors start "
        "near 0, where their gradients vanish too, and grow as a run leaves that place."
    )
    return chart(
        f"gradients-{measure}",
        f"Squared gradients of {of}: SGD over {', '.join(one.run.label for one in found)}"
        " (dotted: predicted)",
        series,
        rows,
        _counts_axis(),
        axis("value", log=True),
        *level(1.0),
        *_reference(found[0].predicted),
        lines(detail="epoch"),
        points(),
        tips=[
            ("run", "optimizer", ""),
            ("epoch", "epoch", ".0f"),
            ("often", "tokens that occur", ""),
            ("value", "ratio", ".3~g"),
        ],
        note=f"{' '.join(map(_ratio_words, found))} Mean squared gradient of the training loss "
        "over the tokens of a bucket, SGD's over the other's; the darkest line is the last epoch. "
        f"Dotted: the ratio of the bounds.{FEW}{saddle if measure == 'norm2' else ''}",
    )


def _error_chart(
    results: Results,
    errors: Mapping[int, Mapping[int, Sequence[Bucket]]],
    epoch: int,
    series: Sequence[Series],
) -> Chart:
    """How far predictions are off by bucket, after an epoch and before the first."""
    rows = [
        {"run": results.runs[place].label, **_row(bucket)}
        for place, by_epoch in errors.items()
        for bucket in with_enough(by_epoch[epoch])
    ]
    start = next((by_epoch[0] for by_epoch in errors.values() if by_epoch.get(0)), ())
    return chart(
        "errors-left",
        f"Error left after epoch {epoch} (dotted: before training)",
        series,
        rows,
        _counts_axis(),
        axis("value", log=True),
        *_reference(start),
        lines(),
        points(),
        tips=[
            ("run", "optimizer", ""),
            ("often", "tokens that occur", ""),
            ("value", "error", ".4f"),
        ],
        note="Mean predicted probability minus the share of positive labels, over the training "
        "samples of a token; root mean square over the tokens of a bucket. It is the gradient "
        f"of the token's linear weight, per occurrence. Dotted: before training.{FEW}",
    )


def _ends(values: Sequence[float]) -> list[float]:
    return [min(values), max(values)]


def _row(bucket: Bucket) -> dict[str, Any]:
    return {"count": bucket.middle, "value": bucket.value, "often": bucket.often}


def _counts_axis() -> Spec:
    """The axis of how often tokens occur."""
    return axis("count", "occurrences in the training rows", log=True, grid=False, format="~s")


def _reference(buckets: Sequence[Bucket]) -> list[Spec]:
    """A dotted line that no run has drawn."""
    rows = [_row(bucket) for bucket in with_enough(buckets)]
    return [outline(rows)] if rows else []


def _digits(value: float | None) -> str | None:
    return shown(value, "{:z.3f}".format)


def _with_error(value: float | None, error: float | None) -> str | None:
    if value is None or error is None:
        return _digits(value)
    return f"{value:.3f} \N{PLUS-MINUS SIGN} {error:.3f}"
