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
    axis,
    labels,
    level,
    lines,
    outline,
    plot,
    points,
)
from freqsgd.report.page import Section
from freqsgd.report.results import Results, Run
from freqsgd.report.tables import Table, shown, table
from freqsgd.report.wording import factor

MEASURES = {"norm2": "vectors", "linear2": "linear weights"}
ENOUGH = 10  # tokens of a bucket that is drawn or told of
LEVEL = 0.1  # exponents that differ by less count as the same
FEW = f" Buckets of fewer than {ENOUGH} tokens are in the data only."
PREDICTED = ("cfsgd", "fasgd")  # the theory has a bound for them


@dataclass(frozen=True)
class Moments:
    """The second moments of a run."""

    run: Run
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
            run.diagnosis.moments,
            tuple(_points(run.diagnosis.scatter, results.diagnosis.fields)),
        )
        for run in results.runs
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
        (f"Second moments of {moments.run.label}", _moments_words(moments))
        for moments in read_moments(results)
        if moments.last.pearson_log is not None
    ]
    for measure, of in MEASURES.items():
        for ratios in read_ratios(results, measure):
            told.append((f"Gradients of {of}, SGD and {ratios.run.label}", _ratio_words(ratios)))
    return told


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


# ---- charts and tables ---------------------------------------------------------------------------


def diagnosis_sections(results: Results, series: Sequence[Series]) -> list[Section]:
    """Return what ``--diagnose`` found; nothing without it."""
    moments = read_moments(results)
    return [
        Section(
            "Second moments against counts",
            [
                _moments_chart(one, results.runs.index(one.run), series)
                for one in moments
                if one.points
            ],
            tables=_relation_tables(moments) if moments else [],
        ),
        Section("Gradients by token frequency", list(_gradient_charts(results, series))),
    ]


def _relation_tables(moments: Sequence[Moments]) -> list[Table]:
    """Correlations and slopes: of some epochs, and of all."""
    head = ["Optimizer", "Epoch", "Pearson", "On log scales", "Spearman", "Power of the count"]
    few: list[list[str | None]] = []
    every: list[list[str | None]] = []
    for one in moments:
        some = some_epochs(relation.epoch for relation in one.relations)
        for relation in one.relations:
            correlations = (relation.pearson, relation.pearson_log, relation.spearman)
            power = _with_error(relation.slope, relation.slope_error)
            every.append([one.run.label, str(relation.epoch), *map(_digits, correlations), power])
            if relation.epoch in some:
                few.append(every[-1])
    tables = [table(head, few)]
    return tables if len(few) == len(every) else [*tables, table(head, every, folded="Every epoch")]


def _moments_chart(one: Moments, place: int, series: Sequence[Series]) -> Chart:
    last, many = one.last, len(one.points)
    rows = [
        {"run": one.run.label, "count": count, "moment": moment, "field": field}
        for count, moment, field in one.points
    ]
    counts = [count for count, _, _ in one.points]
    moments = [moment for _, moment, _ in one.points]
    fitted = []
    if last.slope is not None and last.intercept is not None:
        fitted = [
            {"count": count, "moment": math.exp(last.intercept + last.slope * math.log(count))}
            for count in (min(counts), max(counts))
        ]
    spec = plot(
        series,
        rows,
        axis("count", "CF-SGD's count", log=True, grid=False, format="~s", domain=_ends(counts)),
        axis("moment", log=True, format=".0e", domain=_ends(moments)),  # also if the run is hidden
        points(size=SMALL // 2, opacity=0.35),
        *(outline(fitted, strokeDash=[1, 0], strokeWidth=1.5) if fitted else []),
        tips=[("field", "field", ""), ("count", "counted", ",~r"), ("moment", "moment", ".3~g")],
    )
    words = f"{_moments_words(one)} " if last.pearson_log is not None else ""
    return Chart(
        f"moments-{place}",
        title=f"Second moments of {one.run.label} after epoch {last.epoch}",
        spec=spec,
        description=f"Scatter plot of {many} tokens: mean of the second moment of a token's "
        f"vector against its count, correlation {_digits(last.pearson_log)} on log scales, "
        f"line of slope {_with_error(last.slope, last.slope_error)}.",
        note=f"{words}Both axes are logarithmic. Each of the {many:,} points is a token; the line "
        "is fitted to all tokens. The count is what CF-SGD has after as many epochs.",
        table=table(
            ["Field", "Count", "Second moment"],
            ([field, f"{count:,.0f}", f"{moment:.3g}"] for count, moment, field in one.points),
        ),
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
    names = [
        {"words": f"epoch {epoch}", "run": ratios.run.label}
        | _row(with_enough(ratios.by_epoch[epoch])[0])
        for ratios in found
        for epoch in some_epochs(ratios.by_epoch)
    ]
    tips = [
        ("run", "optimizer", ""),
        ("epoch", "epoch", "d"),
        ("often", "tokens that occur", ""),
        ("value", "ratio", ".3~g"),
    ]
    spec = plot(
        series,
        rows,
        _counts_axis([row["count"] for row in rows]),
        axis("value", log=True),
        *level(1.0),
        *_reference(found[0].predicted, "predicted"),
        lines(detail="epoch"),
        points(),
        labels("words", names, align="right", dx=-8),
        tips=tips,
    )
    told = [
        f"{ratios.run.label} after epoch {epoch}: {factor(rare.value)} for the rarest, "
        f"{factor(frequent.value)} for the most frequent tokens."
        for ratios in found
        for epoch in some_epochs(ratios.by_epoch)
        for rare, frequent in [ends(ratios.by_epoch[epoch])]
    ]
    saddle = (
        " Below 1, SGD's gradients are the smaller ones, which need not be progress: vectors start "
        "near 0, where their gradients vanish too, and grow as a run leaves that place."
    )
    return Chart(
        f"gradients-{measure}",
        title=f"Squared gradients of {of}: SGD over {', '.join(one.run.label for one in found)}",
        spec=spec,
        description=f"Line chart of the ratio by how often tokens occur. {' '.join(told)}",
        note=f"{' '.join(map(_ratio_words, found))} Mean squared gradient of the training loss "
        "over the tokens of a bucket, SGD's over the other's. Dotted: the ratio of the bounds."
        f"{FEW}{saddle if measure == 'norm2' else ''}",
        table=_ratio_table(found),
    )


def _error_chart(
    results: Results,
    errors: Mapping[int, Mapping[int, Sequence[Bucket]]],
    epoch: int,
    series: Sequence[Series],
) -> Chart:
    """How far predictions are off by bucket, after an epoch and before the first."""
    names = [results.runs[place].label for place in errors]
    rows = [
        {"run": name, **_row(bucket)}
        for name, by_epoch in zip(names, errors.values(), strict=True)
        for bucket in with_enough(by_epoch[epoch])
    ]
    start = next((by_epoch[0] for by_epoch in errors.values() if by_epoch.get(0)), ())
    columns = [
        {one.low: f"{one.value:.4f}" for one in by_epoch[epoch]} for by_epoch in errors.values()
    ]
    buckets = {one.low: one for by_epoch in errors.values() for one in by_epoch[epoch]}
    cells = [
        [buckets[low].name, f"{buckets[low].tokens:,}", *(column.get(low) for column in columns)]
        for low in sorted(buckets)
    ]
    told = "; ".join(
        f"{name} {cells[0][k]} for the rarest, {cells[-1][k]} for the most frequent"
        for k, name in enumerate(names, start=2)
    )
    tips = [
        ("run", "optimizer", ""),
        ("often", "tokens that occur", ""),
        ("value", "error", ".3~g"),
    ]
    spec = plot(
        series,
        rows,
        _counts_axis([row["count"] for row in rows]),
        axis("value", log=True),
        *_reference(start, "before training"),
        lines(),
        points(),
        tips=tips,
    )
    return Chart(
        "errors-left",
        title=f"Error left after epoch {epoch}, by how often a token occurs",
        spec=spec,
        description=f"Line chart of how far predictions are off by bucket of tokens: {told}.",
        note="Mean predicted probability minus the share of positive labels, over the training "
        "samples of a token; root mean square over the tokens of a bucket. It is the gradient "
        f"of the token's linear weight, per occurrence. Both axes are logarithmic.{FEW}",
        table=table(["Occurrences", "Tokens", *names], cells),
    )


def _ends(values: Sequence[float]) -> list[float]:
    return [min(values), max(values)]


def _row(bucket: Bucket) -> dict[str, Any]:
    return {"count": bucket.middle, "value": bucket.value, "often": bucket.often}


def _counts_axis(counts: Sequence[float]) -> dict[str, Any]:
    """The axis of how often tokens occur, with room for the names of lines on its left."""
    low, high = min(counts), max(counts)
    domain = [low * (low / high) ** 0.12, high * (high / low) ** 0.02]
    title = "occurrences in the training rows"
    return axis("count", title, log=True, grid=False, format="~s", domain=domain)


def _reference(buckets: Sequence[Bucket], words: str) -> list[dict[str, Any]]:
    """A dotted line that no run has drawn."""
    rows = [_row(bucket) for bucket in with_enough(buckets)]
    return outline(rows, words) if rows else []


def _ratio_table(found: Sequence[Ratios]) -> Table:
    """Every ratio, by epoch and bucket, with the power of the count that it follows."""
    lines_of = [
        (f"{ratios.run.label}, {name}", values)
        for ratios in found
        for name, values in (
            ("predicted", ratios.predicted),
            *((f"epoch {epoch}", values) for epoch, values in ratios.by_epoch.items()),
        )
        if values
    ]
    buckets = {one.low: one for _, values in lines_of for one in values}
    rows: list[list[str | None]] = []
    for name, values in lines_of:
        by_low = {one.low: factor(one.value) for one in values}
        power = shown(exponent(values), "{:z.2f}".format)
        rows.append([name, *(by_low.get(low) for low in sorted(buckets)), power])
    names = [buckets[low].name for low in sorted(buckets)]
    return table(["SGD over", *names, "Power of the count"], rows)


def _digits(value: float | None) -> str | None:
    return shown(value, "{:z.3f}".format)


def _with_error(value: float | None, error: float | None) -> str | None:
    if value is None or error is None:
        return _digits(value)
    return f"{value:.3f} \N{PLUS-MINUS SIGN} {error:.3f}"
