"""The parts of a report that tell of second moments and gradients."""

from __future__ import annotations

from collections.abc import Iterator

from freqsgd.report.old import diagnosis_figures as figures
from freqsgd.report.old.diagnosis import (
    ENOUGH,
    MEASURES,
    Bucket,
    Moments,
    Ratios,
    ends,
    errors_left,
    exponent,
    read_moments,
    read_ratios,
)
from freqsgd.report.old.diagnosis_words import diagnosis_words
from freqsgd.report.old.page import Chart, Section, statements_html
from freqsgd.report.old.results import Results
from freqsgd.report.old.tables import plain_table
from freqsgd.report.old.wording import factor

FEW = f" Buckets of fewer than {ENOUGH} tokens are in the data only."
SADDLE = (
    "Below 1, SGD's gradients are the smaller ones, which need not be progress: vectors start near "
    "0, where their gradients vanish too, and grow as a run leaves that place."
)


def diagnosis_sections(results: Results) -> list[Section]:
    """What ``--diagnose`` found; nothing without it."""
    moments = read_moments(results)
    words = diagnosis_words(results)
    return [
        Section("Diagnosis", statements_html(words) if words else ""),
        Section(
            "Second moments against counts",
            relations_table(moments) if moments else "",
            tuple(moments_charts(results, moments)),
        ),
        Section("Gradients by token frequency", charts=tuple(gradient_charts(results))),
    ]


def relations_table(moments: list[Moments]) -> str:
    """Correlations and slopes, epoch by epoch."""
    head = ["Optimizer", "Epoch", "Pearson", "On log scales", "Spearman", "Power of the count"]
    few: list[list[str | None]] = []
    every: list[list[str | None]] = []
    for one in moments:
        shown = figures.some_epochs(relation.epoch for relation in one.relations)
        for relation in one.relations:
            correlations = (relation.pearson, relation.pearson_log, relation.spearman)
            power = _with_error(relation.slope, relation.slope_error)
            every.append([one.run.label, str(relation.epoch), *map(_shown, correlations), power])
            if relation.epoch in shown:
                few.append(every[-1])
    table, whole = plain_table(head, few), plain_table(head, every)
    details = f"<details><summary>Every epoch</summary>{whole}</details>"
    return table if len(few) == len(every) else table + details


def moments_charts(results: Results, moments: list[Moments]) -> Iterator[Chart]:
    """A scatter plot for each run."""
    for one in moments:
        figure = figures.moments_scatter(results, one)
        if figure is None:
            continue
        last, many = one.last, len(one.points)
        yield Chart(
            f"moments-{one.place}",
            title=f"Second moments of {one.run.label} after epoch {last.epoch}",
            figure=figure,
            description=f"Scatter plot of {many} tokens: mean of the second moment of a token's "
            f"vector against its count, correlation {_shown(last.pearson_log)} on log scales, "
            f"line of slope {_with_error(last.slope, last.slope_error)}.",
            note=f"Both axes are logarithmic. Each of the {many:,} points is a token; the line is "
            "fitted to all tokens. The count is what CF-SGD has after as many epochs.",
            data=plain_table(
                ["Field", "Count", "Second moment"],
                ([field, f"{count:,.0f}", f"{moment:.3g}"] for count, moment, field in one.points),
            ),
        )


def gradient_charts(results: Results) -> Iterator[Chart]:
    """How SGD's gradients compare, and what is left to learn."""
    for measure, of in MEASURES.items():
        found = read_ratios(results, measure)
        if found:
            names = ", ".join(ratios.run.label for ratios in found)
            note = (
                "Mean squared gradient of the training loss over the tokens of a bucket, SGD's "
                f"over the other's; above 1, SGD's is larger. Dotted: the ratio of the bounds.{FEW}"
            )
            yield Chart(
                f"gradients-{measure}",
                title=f"Squared gradients of {of}: SGD over {names}",
                figure=figures.gradient_ratios(results, found),
                description=f"Line chart of the ratio by how often tokens occur. {_ends(found)}",
                note=f"{note} {SADDLE}" if measure == "norm2" else note,
                data="".join(map(ratios_table, found)),
            )
    errors = errors_left(results)
    epoch = max((max(by_epoch, default=0) for by_epoch in errors.values()), default=0)
    if errors and all(by_epoch.get(epoch) for by_epoch in errors.values()):
        yield error_chart(results, errors, epoch)


def error_chart(
    results: Results, errors: dict[int, dict[int, tuple[Bucket, ...]]], epoch: int
) -> Chart:
    """What is left to learn of rare and of frequent tokens."""
    labels = [results.runs[place].label for place in errors]
    columns = [
        {one.low: f"{one.value:.4f}" for one in by_epoch[epoch]} for by_epoch in errors.values()
    ]
    buckets = {one.low: one for by_epoch in errors.values() for one in by_epoch[epoch]}
    rows = [
        [buckets[low].name, f"{buckets[low].tokens:,}", *(column.get(low) for column in columns)]
        for low in sorted(buckets)
    ]
    ends = "; ".join(
        f"{label} {rows[0][k]} for the rarest, {rows[-1][k]} for the most frequent"
        for k, label in enumerate(labels, start=2)
    )
    return Chart(
        "errors-left",
        title=f"Error left after epoch {epoch}, by how often a token occurs",
        figure=figures.error_left(results, errors, epoch),
        description=f"Line chart of how far predictions are off by bucket of tokens: {ends}.",
        note="Mean predicted probability less the share of positive labels, over the training "
        "samples of a token; root mean square over the tokens of a bucket. It is the gradient "
        f"of the token's linear weight, per occurrence. Both axes are logarithmic.{FEW}",
        data=plain_table(["Occurrences", "Tokens", *labels], rows),
    )


def _ends(found: list[Ratios]) -> str:
    """First and last point of each line, in words."""
    sentences = []
    for ratios in found:
        for epoch in figures.some_epochs(ratios.by_epoch):
            found_ends = ends(ratios.by_epoch[epoch])
            rare, frequent = (factor(one.value) for one in found_ends)
            sentences.append(
                f"{ratios.run.label} after epoch {epoch}: {rare} for the rarest, {frequent} for "
                "the most frequent tokens."
            )
    return " ".join(sentences)


def ratios_table(ratios: Ratios) -> str:
    """Every ratio, by epoch and bucket, with the power of the count that it follows."""
    shapes = {f"After epoch {epoch}": found for epoch, found in ratios.by_epoch.items()}
    if ratios.predicted:
        shapes = {"Predicted": ratios.predicted, **shapes}
    buckets = {one.low: one for found in shapes.values() for one in found}
    rows: list[list[str | None]] = []
    for name, found in shapes.items():
        by_low = {one.low: factor(one.value) for one in found}
        power = exponent(found)
        rows.append([name, *(by_low.get(low) for low in sorted(buckets)), _shown(power, 2)])
    names = [buckets[low].name for low in sorted(buckets)]
    return plain_table([ratios.run.label, *names, "Power of the count"], rows)


def _shown(value: float | None, digits: int = 3) -> str | None:
    return None if value is None else f"{value:z.{digits}f}"


def _with_error(value: float | None, error: float | None) -> str | None:
    if value is None or error is None:
        return _shown(value)
    return f"{value:.3f} \N{PLUS-MINUS SIGN} {error:.3f}"
