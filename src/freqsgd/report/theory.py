"""The page of a simulation: the bound and the measurement of every token."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from operator import le
from typing import Any

from freqsgd.documents import check_kind, read_document
from freqsgd.documents.theory import Improvement, Numbers, Theory, TheoryRun
from freqsgd.report.charts import (
    DASHES,
    Chart,
    Series,
    Spec,
    axis,
    chart,
    intervals,
    level,
    lines,
    log_axis,
    outline,
    points,
    series_of,
)
from freqsgd.report.page import SENTENCES, Page, Section, Tile
from freqsgd.report.parts import settings_of
from freqsgd.report.results import display_name
from freqsgd.report.tables import Table, table
from freqsgd.report.wording import capitalized, enumerate_words, factor, thousands

SIDES = {"user": "users", "item": "items"}
TAIL_RATES = {"exponential": "tau", "polynomial": "nu"}
WITHIN = {  # what makes a top token
    "exponential": " within a factor e of the first",
    "polynomial": " within a factor 16 of the first",
}
FAR = 3  # times beyond all points, intervals are cut off
TOKENS = series_of({"tokens": "counted"})


def read_theory(document: Mapping[str, Any]) -> Theory:
    """Return the content of a ``theory.json``."""
    check_kind(document, "theory", "theory")
    return read_document(document, Theory, "theory.json")


def theory_page(theory: Theory) -> Page:
    """Return the page of a simulation."""
    series = series_of_theory(theory)
    pictures = {
        "improvement": improvement_charts(theory, series),
        "error": _error_charts(theory, series),
        "distribution": _distribution_charts(theory),
    }
    said = list(_caveats(theory))
    return Page(
        title=f"Bounds and measurements, tokens with {_tail_words(theory)}",
        tiles=list(_tiles(theory)),
        sentences=said[:SENTENCES],
        sections=[
            Section("Improvement over SGD", pictures["improvement"]),
            Section("Error of each token: bound and measurement", pictures["error"]),
            Section("Read with care", remarks=said[SENTENCES:]),
            Section("Statements of the paper", tables=_checks_tables(theory)),
            Section("Frequency of tokens", pictures["distribution"]),
            Section("Settings", tables=[_settings_table(theory)], command=theory.command),
        ],
        legend=series,
        colours=TOKENS,
        created=theory.created,
        pictures={name: charts for name, charts in pictures.items() if charts},
    )


def series_of_theory(theory: Theory) -> list[Series]:
    """Return the series of the runs."""
    return series_of({display_name(run.optimizer): run.optimizer for run in theory.runs})


def _tail_words(theory: Theory) -> str:
    tail, rate = theory.problem.tail, theory.problem.rate
    if rate is None:
        return f"a {tail} distribution"
    article = "an" if tail == "exponential" else "a"
    return f"{article} {tail} tail ({TAIL_RATES.get(tail, 'rate')} = {rate:g})"


def _top(theory: Theory, side: str) -> int:
    return theory.problem.top_users if side == "user" else theory.problem.top_items


def _places(theory: Theory, side: str) -> list[int]:
    """Return where the tokens of a side are in all columns."""
    return [place for place, each in enumerate(theory.tokens.side) if each == side]


def _tail(theory: Theory) -> list[int]:
    """Return where the tokens beyond the top ones are in all columns."""
    pairs = enumerate(zip(theory.tokens.side, theory.tokens.rank, strict=True))
    return [place for place, (side, rank) in pairs if rank > _top(theory, side)]


# ---- tiles and sentences -------------------------------------------------------------------------


def _tiles(theory: Theory) -> Iterator[Tile]:
    """Yield the few numbers that a reader sees first."""
    bounded = [run for run in theory.runs if run.bound]
    if bounded:
        bounds = [bound for run in bounded for bound in run.bound or ()]
        held = sum(map(le, (value for run in bounded for value in run.measured), bounds))
        names = enumerate_words(display_name(run.optimizer) for run in bounded)
        yield Tile("Below the bound", f"{held} of {len(bounds)}", f"tokens of {names}")
    for entry in theory.improvements:
        gain = _mean_gain(theory, entry)
        if entry.optimizer != "sbcd" and gain is not None:
            yield Tile(
                f"{display_name(entry.optimizer)} at the tail",
                f"{factor(gain)} times",
                "SGD's error over its own, measured; geometric mean beyond the top tokens",
            )
    if theory.checks:
        held = sum(check.holds for check in theory.checks)
        note = "of the paper's statements hold here"
        yield Tile("Statements", f"{held} of {len(theory.checks)}", note)


def _mean_gain(theory: Theory, entry: Improvement) -> float | None:
    """Return the geometric mean of what was measured beyond the top tokens."""
    values = [entry.measured[place] for place in _tail(theory) if entry.measured[place] > 0]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def _caveats(theory: Theory) -> Iterator[str]:
    """Yield what limits what was measured."""
    problem = theory.problem
    if failed := [check.statement.rstrip(".") for check in theory.checks if not check.holds]:
        yield f"{len(failed)} of the paper's statements did not hold: {'; '.join(failed)}."
    if problem.output == "last":
        yield "Measured is the last iterate; the theorems speak of one drawn at random."
    for run in theory.runs:
        if run.invalid:
            yield (
                f"Not counted, having left the ball in which L holds: {thousands(run.invalid)} of "
                f"{thousands(problem.repetitions)} repetitions of {display_name(run.optimizer)}."
            )
    if theory.improvements:
        yield ("Bounds are upper limits: a smaller bound does not imply a smaller measurement.")
    yield _corollary(theory)


def _corollary(theory: Theory) -> str:
    """Say whether the corollary applies, and what it guarantees at the rarest token."""
    found = theory.problem.corollary
    if not found.applies:
        return f"The corollary does not apply{f': {found.reason}' if found.reason else ''}."
    if theory.problem.tail == "uniform":
        return "All tokens are equally frequent: FA-SGD is SGD, and gains nothing."
    for entry in theory.improvements:
        if entry.corollary:
            most = max(entry.corollary)
            place = entry.corollary.index(most)
            return (
                f"The corollary applies. At {theory.tokens.side[place]} "
                f"{theory.tokens.rank[place]} it "
                f"guarantees {display_name(entry.optimizer)} a bound that needs {factor(most)} "
                f"times fewer iterations than SGD's."
            )
    return "The corollary applies."


# ---- charts --------------------------------------------------------------------------------------


def improvement_charts(theory: Theory, series: Sequence[Series]) -> list[Chart]:
    """Return SGD's error over each optimizer's: measured, by the bounds, and by the corollary."""
    known = {one.optimizer for one in series}
    entries = [entry for entry in theory.improvements if entry.optimizer in known]
    roots = [_roots(entry.corollary) for entry in entries]
    note = "Above 1: better than SGD after equally many iterations. Bars: 95% intervals."
    if any(roots):
        note += " The corollary guarantees the bounds the root of its factor of iterations."
    return _charts(
        theory,
        series,
        "improvement",
        "SGD's error / the optimizer's",
        f"bounds (dashed){', corollary (dotted)' if any(roots) else ''}",
        entries,
        {"dash": [entry.bound for entry in entries], "dot": roots},
        {side: level(1.0) for side in SIDES},
        note,
    )


def _roots(factors: Numbers | None) -> Numbers | None:
    """Return factors of iterations as those of errors, which fall as 1 / sqrt(T)."""
    return factors and tuple(map(math.sqrt, factors))


def _error_charts(theory: Theory, series: Sequence[Series]) -> list[Chart]:
    """Return what was measured of each optimizer, its bound, and the error at the start."""
    note = (
        "The mean squared gradient of a token's row, with 95% intervals. A bound above the error "
        "at the start says nothing yet."
    )
    if theory.problem.output == "random" and any(run.optimizer == "cfsgd" for run in theory.runs):
        note += (
            " CF-SGD's iterate is drawn from the second half of all, that of others from all, as "
            "in the theorems: compare them in the charts above, where all are drawn alike."
        )
    return _charts(
        theory,
        series,
        "error",
        "E‖∇f‖²",
        "bound (dashed), at the start (dotted)",
        theory.runs,
        {"dash": [run.bound for run in theory.runs]},
        {side: [outline(_rows(theory, side, "", theory.tokens.start))] for side in SIDES},
        note,
    )


def _charts(
    theory: Theory,
    series: Sequence[Series],
    name: str,
    measured: str,
    others: str,
    entries: Sequence[TheoryRun | Improvement],
    promised: Mapping[str, Sequence[Numbers | None]],
    outlines: Mapping[str, Sequence[Spec]],
    note: str,
) -> list[Chart]:
    """Return a chart for users and one for items: points with intervals, and lines of theory.

    Args:
        theory: the document
        series: of its runs
        name: of the charts
        measured: title of the axis
        others: what the lines are, for the titles
        entries: what was measured
        promised: by dash, a column of numbers for each entry
        outlines: layers of a side that belong to no run
        note: below the charts
    """
    charts = []
    labels = {one.optimizer: one.label for one in series}
    for side, sides in SIDES.items():
        rows: list[dict[str, Any]] = []
        drawn: dict[str, list[dict[str, Any]]] = {dash: [] for dash in promised}
        for place, entry in enumerate(entries):
            label = labels[entry.optimizer]
            bound = [f"{each:.3g}" for each in entry.bound or ()] or ["none"] * len(entry.low)
            more = {"low": entry.low, "high": entry.high, "bound": bound}
            rows += _rows(theory, side, label, entry.measured, **more)
            for dash, columns in promised.items():
                drawn[dash] += _rows(theory, side, label, columns[place] or ())
        if not rows:
            continue
        values = [row["value"] for row in rows]
        for row in rows:  # an interval that reaches 0 has no place on a logarithmic axis
            row["low"] = max(row["low"], min(values) / FAR)
            row["high"] = min(row["high"], max(values) * FAR)
        values += [row["value"] for lines_of in drawn.values() for row in lines_of]
        charts.append(
            chart(
                f"{name}-{side}",
                f"{capitalized(sides)}: measured, {others}",
                series,
                rows,
                _rank_axis(theory),
                log_axis("value", measured, values),
                *outlines[side],
                *(lines(line, strokeDash=DASHES[dash]) for dash, line in drawn.items()),
                intervals(),
                points(),
                tips=[
                    ("run", "optimizer", ""),
                    ("rank", "rank", ".0f"),
                    ("value", "measured", ".3~g"),
                    ("low", "from", ".3~g"),
                    ("high", "to", ".3~g"),
                    ("bound", "by the bounds", ""),
                ],
                note=note,
            )
        )
    return charts


def _rows(
    theory: Theory, side: str, run: str, column: Numbers, **more: Sequence[object]
) -> list[dict[str, Any]]:
    """Return a row for each token of a side whose number a logarithmic axis has a place for."""
    return [
        {"run": run, "rank": theory.tokens.rank[place], "value": column[place]}
        | {key: values[place] for key, values in more.items()}
        for place in _places(theory, side)
        if column and column[place] > 0
    ]


def _rank_axis(theory: Theory) -> Spec:
    """Return the axis of ranks, logarithmic where that makes the tail a straight line."""
    title = "rank, most frequent first"
    if theory.problem.tail == "polynomial":
        return log_axis("rank", title, theory.tokens.rank, grid=False)
    return axis("rank", title, whole=True, grid=False)


def _distribution_charts(theory: Theory) -> list[Chart]:
    """Return the frequency by rank, as in the paper's Figures 1a and 1b."""
    charts = []
    for side, sides in SIDES.items():
        places, top = _places(theory, side), _top(theory, side)
        if not places:
            continue
        p, ranks = theory.tokens.p, theory.tokens.rank
        within = WITHIN.get(theory.problem.tail, "")
        marked = 0 < top < len(places)
        charts.append(
            chart(
                f"distribution-{side}",
                f"Frequency of {sides}",
                TOKENS,
                [{"run": "tokens", "rank": ranks[place], "p": p[place]} for place in places],
                _rank_axis(theory),
                log_axis("p", "p", [p[place] for place in places]),
                *(level(top + 0.5, upright=True) if marked else []),
                points(),
                tips=[("rank", "rank", ".0f"), ("p", "p", ".3~g")],
                note=f"Top {sides} are{within}: {top} of {len(places)}"
                f"{', left of the line' if marked else ''}.",
            )
        )
    return charts


# ---- tables --------------------------------------------------------------------------------------


def _checks_tables(theory: Theory) -> list[Table]:
    rows = [
        [check.statement, "yes" if check.holds else "no", check.detail] for check in theory.checks
    ]
    return [table(["Statement", "Holds", "Detail"], rows, kind="words")] if rows else []


def _settings_table(theory: Theory) -> Table:
    """Return what was chosen, and what follows from it."""
    rows = [*settings_of(theory.problem), ("Seconds", f"{theory.seconds:,.0f}")]
    rows += [(f"Alpha of {display_name(run.optimizer)}", f"{run.alpha:.4g}") for run in theory.runs]
    return table(["Setting", "Value"], rows, kind="settings")
