"""The page of a simulation: the bound and the measurement of every token."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from freqsgd.documents import check_kind, read_document
from freqsgd.documents.theory import Improvement, Numbers, Slope, Theory, TheoryRun
from freqsgd.report.charts import (
    DASHES,
    Chart,
    Named,
    Series,
    Spec,
    axis,
    intervals,
    level,
    lines,
    log_axis,
    outline,
    plot,
    points,
    series_of,
)
from freqsgd.report.page import Page, Section, Tile
from freqsgd.report.results import display_name
from freqsgd.report.tables import Cell, Column, Table, sortable_table, table
from freqsgd.report.wording import (
    capitalized,
    duration,
    enumerate_words,
    factor,
    small_number,
    thousands,
)

SIDES = {"user": "users", "item": "items"}
TAIL_RATES = {"exponential": "tau", "polynomial": "nu"}
WITHIN = {  # what makes a top token
    "exponential": " within a factor e of the first",
    "polynomial": " within a factor 16 of the first",
}
FAR = 3  # times beyond all points, intervals are cut off
SETTINGS = {
    "tail": "Tail",
    "rate": "Its rate, tau or nu",
    "users": "Users",
    "items": "Items",
    "dim": "Length of a row",
    "radius": "Radius of the ball",
    "smoothness": "Smoothness L",
    "gap": "Loss at the start, minus the lowest",
    "gradient_bound": "Bound G of the gradient",
    "iterations": "Iterations",
    "minimum_iterations": "Iterations that Theorem 3 needs",
    "repetitions": "Repetitions",
    "output": "Iterate that is measured",
    "seed": "Seed",
}


TOKENS = series_of([Named("counted", "tokens")])


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
    said = (_simulated(theory), bounds(theory), gains(theory), slopes(theory), _did_not(theory))
    return Page(
        title=f"Bounds and measurements, tokens with {_tail_words(theory)}",
        tiles=list(_tiles(theory)),
        sentences=[sentence for sentence in said if sentence],
        sections=[
            Section("Improvement over SGD", pictures["improvement"]),
            Section("Error of each token: bound and measurement", pictures["error"]),
            Section("Read with care", remarks=list(_caveats(theory))),
            Section("Statements of the paper", tables=_checks_tables(theory)),
            Section("Frequency of tokens", pictures["distribution"]),
            Section("All numbers", tables=[_tokens_table(theory)]),
            Section("Settings", tables=[_settings_table(theory)], command=theory.command),
        ],
        legend=series,
        colours=TOKENS,
        created=theory.created,
        pictures={name: charts for name, charts in pictures.items() if charts},
    )


def series_of_theory(theory: Theory) -> list[Series]:
    """Return the series of the runs."""
    return series_of([Named(run.optimizer, display_name(run.optimizer)) for run in theory.runs])


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
        held = sum(len(run.measured) - len(_broken(run)) for run in bounded)
        count = sum(len(run.measured) for run in bounded)
        names = enumerate_words(display_name(run.optimizer) for run in bounded)
        yield Tile("Below the bound", f"{held} of {count}", f"tokens of {names}")
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


def _simulated(theory: Theory) -> str:
    """Return the problem, and how often and how long it ran."""
    problem = theory.problem
    names = enumerate_words(display_name(run.optimizer) for run in theory.runs)
    took = f" in {duration(theory.seconds)}" if theory.seconds else ""
    iterate = (
        "the last iterate, though the theorems speak of one drawn at random"
        if problem.output == "last"
        else "an iterate drawn at random, as in the theorems"
    )
    return (
        f"{names or 'No optimizer'} ran {thousands(problem.repetitions)} times{took} over "
        f"{thousands(problem.iterations)} pairs of {thousands(problem.users)} users and "
        f"{thousands(problem.items)} items; measured is {iterate}."
    )


def _broken(run: TheoryRun) -> list[int]:
    """Return the tokens whose measurement is above the bound."""
    pairs = enumerate(zip(run.bound or (), run.measured, strict=False))
    return [place for place, (bound, measured) in pairs if measured > bound]


def bounds(theory: Theory) -> str:
    """Say whether every bound held, and how near the measurements came."""
    whole, told = [], []
    for run in theory.runs:
        name, broken = display_name(run.optimizer), _broken(run)
        if broken:
            nearest = enumerate_words(_token(theory, place) for place in broken[:3])
            count = f"{len(broken)} of {len(run.measured)} tokens"
            told.append(f"{name} is above its bound at {count}, such as {nearest}")
        elif run.bound:
            pairs = zip(run.bound, run.measured, strict=True)
            ratios = [bound / measured for bound, measured in pairs if measured > 0]
            whole.append(f"{factor(min(ratios))} times for {name}" if ratios else name)
    if whole:
        below = "the mean squared gradient of every token stays below its bound, at least"
        told.insert(0, f"{below} {enumerate_words(whole)}")
    return f"{capitalized('; '.join(told))}." if told else ""


def _token(theory: Theory, place: int) -> str:
    return f"{theory.tokens.side[place]} {theory.tokens.rank[place]}"


def _mean_gain(theory: Theory, entry: Improvement) -> float | None:
    """Return the geometric mean of what was measured beyond the top tokens."""
    values = [entry.measured[place] for place in _tail(theory) if entry.measured[place] > 0]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def gains(theory: Theory) -> str:
    """Say how SGD's error compares with that of others beyond the top tokens, or at all."""
    places, told = _tail(theory), []
    for entry in theory.improvements:
        name, gain = display_name(entry.optimizer), _mean_gain(theory, entry)
        if gain is not None:
            told.append(f"{factor(gain)} times {name}'s")
        elif not places and min(entry.measured) > 0:
            ends = dict.fromkeys(f"{end:.3g}" for end in (min(entry.measured), max(entry.measured)))
            told.append(f"{' to '.join(ends)} times {name}'s")
    if not told:
        return ""
    where = (
        f", a geometric mean over the {len(places)} tokens beyond the top ones" if places else ""
    )
    return f"After equally many iterations SGD's error is {enumerate_words(told)}{where}."


def slopes(theory: Theory) -> str:
    """Say how fast improvements grow along the tail, and what the bounds predict."""
    known = [(display_name(each.optimizer), each.slope) for each in theory.improvements]
    found = [(name, slope) for name, slope in known if slope is not None]
    if not found:
        return ""
    told = enumerate_words(
        f"{slope.measured:.3g} for {name} ({slope.low:.3g} to {slope.high:.3g}{_verdict(slope)})"
        for name, slope in found
    )
    unit = "rank" if found[0][1].axis == "rank" else f"unit of {found[0][1].axis}"
    predicted = enumerate_words(dict.fromkeys(f"{slope.predicted:.3g}" for _, slope in found))
    return (
        f"Along the tail the logarithm of SGD's error over the optimizer's has a slope per {unit} "
        f"of {told}, with 95% intervals; the bounds predict {predicted}."
    )


def _verdict(slope: Slope) -> str:
    """Say where an interval does not tell a slope from none, or tells a fall."""
    if slope.high < 0:
        return ": it falls"
    return "" if slope.low > 0 else ": not told apart from none"


def _did_not(theory: Theory) -> str:
    """Return the statements that failed."""
    failed = [check.statement.rstrip(".") for check in theory.checks if not check.holds]
    count = capitalized(small_number(len(failed)))
    return f"{count} of the paper's statements did not hold: {'; '.join(failed)}." if failed else ""


def _caveats(theory: Theory) -> Iterator[str]:
    """Yield what limits what was measured."""
    problem = theory.problem
    for run in theory.runs:
        if run.invalid:
            yield (
                f"{capitalized(small_number(run.invalid))} of {thousands(problem.repetitions)} "
                f"repetitions of {display_name(run.optimizer)} left the ball in which L holds and "
                f"{'is' if run.invalid == 1 else 'are'} not counted."
            )
    if theory.improvements:
        yield (
            "Bounds are upper limits: that one is smaller than another does not oblige what is "
            "measured to be."
        )
    if without := [display_name(run.optimizer) for run in theory.runs if not run.bound]:
        yield f"{enumerate_words(without)} has no bound here."
    slopes = (entry.slope for entry in theory.improvements)
    for slope in {each.begun: each for each in slopes if each is not None}.values():
        if slope.begun < slope.tokens:
            yield (
                f"SGD has begun to learn {thousands(slope.begun)} of {thousands(slope.tokens)} "
                "tail tokens: their error is less than half of that at the start. The others take "
                "more iterations than these, so that the improvement cannot grow there."
            )
    yield _corollary(theory)


def _corollary(theory: Theory) -> str:
    """Say whether the corollary applies, and what it guarantees at the rarest token."""
    found, uniform = theory.problem.corollary, theory.problem.tail == "uniform"
    if not found.applies:
        reason = f": {found.reason}" if found.reason else ""
        instead = " FA-SGD is SGD with one rate for users and one for items." if uniform else ""
        return f"The corollary does not apply{reason}.{instead}"
    if uniform:
        return "All tokens are equally frequent: FA-SGD is SGD, and gains nothing."
    for entry in theory.improvements:
        if entry.corollary:
            most = max(entry.corollary)
            return (
                f"The corollary applies. At {_token(theory, entry.corollary.index(most))} it "
                f"guarantees {display_name(entry.optimizer)} a bound that needs {factor(most)} "
                f"times fewer iterations than SGD's: {factor(math.sqrt(most))} times less error "
                "after equally many."
            )
    return "The corollary applies."


# ---- charts --------------------------------------------------------------------------------------


def improvement_charts(theory: Theory, series: Sequence[Series]) -> list[Chart]:
    """Return SGD's error over each optimizer's: measured, by the bounds, and by the corollary."""
    known = {one.optimizer for one in series}
    entries = [entry for entry in theory.improvements if entry.optimizer in known]
    note = (
        "Above 1: better than SGD after equally many iterations. Points: measured, with 95% "
        "intervals. Dashed: by the bounds."
    )
    if any(entry.corollary for entry in entries):
        note += (
            " Dotted: what the corollary guarantees the bounds, the root of its factor of "
            "iterations."
        )
    return _charts(
        theory,
        series,
        "improvement",
        "SGD's error / the optimizer's",
        entries,
        {
            "dash": [entry.bound for entry in entries],
            "dot": [_roots(entry.corollary) for entry in entries],
        },
        note=note,
        words="SGD's error over that of others",
        outlines=lambda side: level(1.0),
    )


def _roots(factors: Numbers | None) -> Numbers | None:
    """Return factors of iterations as those of errors, which fall as 1 / sqrt(T)."""
    return factors and tuple(map(math.sqrt, factors))


def _error_charts(theory: Theory, series: Sequence[Series]) -> list[Chart]:
    """Return what was measured of each optimizer, its bound, and the error at the start."""
    note = (
        "Points: the mean squared gradient of a token's row, with 95% intervals. Dashed: its "
        "bound. Dotted: the error at the start; a bound above it says nothing yet."
    )
    if theory.problem.output == "random" and any(run.optimizer == "cfsgd" for run in theory.runs):
        note += (
            " CF-SGD's iterate is drawn from the second half of all, that of others from all, as "
            "in the theorems: compare them in the charts above, where all are drawn alike."
        )

    def at_start(side: str) -> Sequence[Spec]:
        rows = _rows(theory, side, "", theory.tokens.start)
        return outline(rows, "at the start") if rows else ()

    return _charts(
        theory,
        series,
        "error",
        "E‖∇f‖²",
        theory.runs,
        {"dash": [run.bound for run in theory.runs]},
        note=note,
        words="the mean squared gradient",
        outlines=at_start,
    )


def _charts(
    theory: Theory,
    series: Sequence[Series],
    name: str,
    title: str,
    entries: Sequence[TheoryRun | Improvement],
    promised: Mapping[str, Sequence[Numbers | None]],
    *,
    note: str,
    words: str,
    outlines: Callable[[str], Sequence[Spec]],
) -> list[Chart]:
    """Return a chart for users and one for items: points with intervals, and lines of theory.

    Args:
        theory: the document
        series: of its runs
        name: of the charts
        title: of the axis
        entries: what was measured
        promised: by dash, a column of numbers for each entry
        note: below the charts
        words: what is drawn, for the description
        outlines: layers of a side that belong to no run
    """
    charts = []
    labels = {one.optimizer: one.label for one in series}
    for side, sides in SIDES.items():
        measured, told = [], []
        drawn: dict[str, list[dict[str, Any]]] = {dash: [] for dash in promised}
        for place, entry in enumerate(entries):
            label = labels[entry.optimizer]
            found = _rows(theory, side, label, entry.measured, low=entry.low, high=entry.high)
            measured += found
            for dash, columns in promised.items():
                drawn[dash] += _rows(theory, side, label, columns[place] or ())
            bound = _ends(_rows(theory, side, label, entry.bound or ()))
            told.append(f"{label} measured {_ends(found)}, by the bounds {bound}")
        if not measured:
            continue
        values = [row["value"] for row in measured]
        for row in measured:  # an interval that reaches 0 has no place on a logarithmic axis
            row["low"] = max(row["low"], min(values) / FAR)
            row["high"] = min(row["high"], max(values) * FAR)
        values += [row["value"] for rows in drawn.values() for row in rows]
        spec = plot(
            series,
            measured,
            _rank_axis(theory),
            log_axis("value", title, values),
            *outlines(side),
            *(lines(rows, strokeDash=DASHES[dash]) for dash, rows in drawn.items()),
            intervals(),
            points(),
            tips=[
                ("run", "optimizer", ""),
                ("rank", "rank", "d"),
                ("value", "measured", ".3~g"),
                ("low", "from", ".3~g"),
                ("high", "to", ".3~g"),
            ],
        )
        description = (
            f"Chart of {words} for {sides}, from the most frequent to the rarest: "
            f"{'; '.join(told)}."
        )
        charts.append(Chart(f"{name}-{side}", capitalized(sides), spec, description, note))
    return charts


def _rows(
    theory: Theory, side: str, run: str, column: Numbers, **more: Numbers
) -> list[dict[str, Any]]:
    """Return a row for each token of a side whose number a logarithmic axis has a place for."""
    return [
        {"run": run, "rank": theory.tokens.rank[place], "value": column[place]}
        | {key: values[place] for key, values in more.items()}
        for place in _places(theory, side)
        if column and column[place] > 0
    ]


def _ends(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the first and the last number of a line."""
    return f"{rows[0]['value']:.3g} to {rows[-1]['value']:.3g}" if rows else "not known"


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
        marked = 0 < top < len(places)
        spec = plot(
            TOKENS,
            [{"run": "tokens", "rank": ranks[place], "p": p[place]} for place in places],
            _rank_axis(theory),
            log_axis("p", "p", [p[place] for place in places]),
            *(level(top + 0.5, f"top {sides}: {top}", upright=True) if marked else []),
            points(),
            tips=[("rank", "rank", "d"), ("p", "p", ".3~g")],
        )
        ends = f"{p[places[0]]:.3g} at rank 1, {p[places[-1]]:.3g} at rank {ranks[places[-1]]}"
        within = WITHIN.get(theory.problem.tail, "")
        note = (
            f"Top {sides} are{within}: {top} of {len(places)}."
            if top < len(places)
            else f"All {sides} are top {sides}: none is much rarer than the first."
        )
        description = (
            f"Scatter chart of the frequency of {len(places)} {sides} with {_tail_words(theory)}: "
            f"p is {ends}; {top} are top {sides}."
        )
        charts.append(
            Chart(f"distribution-{side}", f"Frequency of {sides}", spec, description, note)
        )
    return charts


# ---- tables --------------------------------------------------------------------------------------


def _checks_tables(theory: Theory) -> list[Table]:
    rows = [
        [check.statement, "yes" if check.holds else "no", check.detail] for check in theory.checks
    ]
    return [table(["Statement", "Holds", "Detail"], rows, kind="words")] if rows else []


def _tokens_table(theory: Theory) -> Table:
    """Return a row per token, folded."""
    tokens = theory.tokens
    columns: dict[str, Numbers | None] = {
        "p": tokens.p,
        "σ²": tokens.sigma2,
        "E‖∇f‖² at the start": tokens.start,
    }
    for run in theory.runs:
        name = display_name(run.optimizer)
        parts = {"step size": run.steps, "bound": run.bound, "measured": run.measured}
        columns |= {f"{name}, {part}": column for part, column in parts.items()}
    for entry in theory.improvements:
        name = display_name(entry.optimizer)
        columns |= {f"SGD / {name}, bounds": entry.bound}
        columns |= {f"SGD / {name}, measured": entry.measured}
    width = len(str(max(tokens.rank)))
    items = [
        (Cell(f"{side} {rank}", f"{side} {rank:0{width}}"), place)
        for place, (side, rank) in enumerate(zip(tokens.side, tokens.rank, strict=True))
    ]
    return sortable_table(
        "Token",
        items,
        [
            Column(title, column.__getitem__, "{:.3g}".format)
            for title, column in columns.items()
            if column
        ],
        label="Numbers of every token",
        folded=f"{len(items)} tokens",
    )


def _settings_table(theory: Theory) -> Table:
    """Return what was chosen, and what follows from it."""
    chosen = {name: getattr(theory.problem, key) for key, name in SETTINGS.items()}
    chosen |= {f"alpha of {display_name(run.optimizer)}": run.alpha for run in theory.runs}
    rows = [[name, _setting(value)] for name, value in chosen.items() if value is not None]
    return table(["Setting", "Value"], rows, kind="settings")


def _setting(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
