"""The page of an inspection: how frequent tokens are, and what that promises."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from msgspec import structs

from freqsgd.documents import check_kind, read_document
from freqsgd.documents.inspection import FEW_TIMES, InspectedField, Inspection
from freqsgd.optimizers import by_memory
from freqsgd.report.charts import (
    Chart,
    Series,
    chart,
    level,
    lines,
    log_axis,
    names_axis,
    points,
    series_of,
)
from freqsgd.report.page import SENTENCES, Page, Section, Tile
from freqsgd.report.parts import memory_charts, settings_of
from freqsgd.report.tables import Cell, Column, Table, sortable_table, table
from freqsgd.report.wording import (
    capitalized,
    count_of,
    enumerate_words,
    factor,
    named,
    often,
    percent,
    shortened,
    size,
    thousands,
)

FEW_FIELDS = 6  # beyond, charts are small
MOST_CHARTS = 60  # of fields; the table has all
POINTS = 100  # of a chart
LONGEST_NAME = 24  # in charts and tables
NOT_A_NAME = "\N{ZERO WIDTH SPACE}"  # tells all fields from one of that name
LARGE = 100  # tokens of a field, of which 1% is one at least
MANY_ONCE = 0.5  # share of tokens seen once, beyond which little is known of them
RATES = {"exponential": "tau", "polynomial": "nu"}
NAMES = {"median": "median token", "p90": "token rarer than 90%"}
COUNTER_EXAMPLE = (
    "A promise need not be a gain: on MovieLens-1M the median token is promised 5.9 times fewer "
    "iterations, and yet CF-SGD's AUC was 0.0004 below SGD's, each at its best rate."
)


COUNTED, *FITS = LINES = series_of(
    {
        "counted": "counted",
        "exponential tail": "exponential",
        "polynomial tail": "polynomial",
    }
)
OPTIMIZERS = series_of(
    {each.label: each.name for each in by_memory() if each.trains and each.stateful}
)
_CFSGD = next(one for one in OPTIMIZERS if one.optimizer == "cfsgd")
PLACES = [
    Series(name, replace(_CFSGD.style, marker=marker))
    for name, marker in zip(NAMES.values(), ("circle", "diamond"), strict=True)
]


def read_inspection(document: Mapping[str, Any]) -> Inspection:
    """Return the content of an ``inspect.json``."""
    check_kind(document, "inspection", "inspect")
    return with_names(read_document(document, Inspection, "inspect.json"))


def with_names(inspection: Inspection) -> Inspection:
    """Return it with names for the fields of columns that have none."""
    fields = enumerate(inspection.fields, start=1)
    named = tuple(
        structs.replace(field, name=field.name or f"field {place}") for place, field in fields
    )
    return structs.replace(inspection, fields=named)


def inspection_page(inspection: Inspection) -> Page:
    """Return the page of an inspection."""
    said = list(sentences(inspection))
    which = _which(inspection)
    ranks, promises = rank_charts(inspection), _promise_charts(inspection)
    states = {
        one.label: inspection.memory[one.optimizer]
        for one in OPTIMIZERS
        if one.optimizer in inspection.memory
    }
    memory = memory_charts(states, inspection.memory.get("weights", 0), OPTIMIZERS)
    pictures = {"ranks": ranks, "promise": promises, "memory": memory}
    return Page(
        title=f"Token frequencies of {inspection.dataset.name}",
        tiles=list(tiles(inspection)),
        sentences=said[:SENTENCES],
        sections=[
            Section(
                f"Occurrences by rank{which}", ranks, small=len(inspection.fields) > FEW_FIELDS
            ),
            Section("Promise and memory", [*promises, *memory]),
            Section("Fields", tables=[_fields_table(inspection)]),
            Section("Read with care", remarks=said[SENTENCES:]),
            Section("Most frequent tokens", tables=_frequent_tables(inspection)),
            Section("Settings", tables=[_settings(inspection)], command=inspection.command or None),
        ],
        legend=LINES,
        colours=OPTIMIZERS,
        created=inspection.created,
        pictures={name: charts for name, charts in pictures.items() if charts},
    )


# ---- tiles ---------------------------------------------------------------------------------------


def tiles(inspection: Inspection) -> Iterator[Tile]:
    """Yield the few numbers that a reader sees first."""
    fields, units = inspection.fields, _units(inspection)
    if large := [field for field in fields if field.tokens >= LARGE]:
        uneven = min(large, key=lambda field: field.effective_tokens / field.tokens)
        least = ", the least even field" if len(fields) > 1 else ""
        note = f"of all occurrences in {shortened(uneven.name)}{least}"
        yield Tile("Top 10% of tokens", percent(uneven.top_10), note)
    median = inspection.overall and inspection.overall.median
    if median and median.is_known:
        note = f"at the median token, seen {often(median.count)}: upper bounds, no forecast of AUC"
        yield Tile("SGD's bound over FA-SGD's", f"{factor(median.error)} times", note)
    elif median:
        note = (
            f"so its promise is hardly known: SGD's bound is {factor(median.error)} times "
            f"FA-SGD's, and would be more with more {units}"
        )
        yield Tile("The median token was seen", often(median.count), note)
    title, sampled = f"{capitalized(units)} with a rare token", inspection.tail_samples
    drawn = "" if sampled.of == inspection.dataset.rows else f"; in a sample of {sampled.of:,}"
    if inspection.seldom_share is not None:
        note = f"one seen fewer than {FEW_TIMES} times{drawn}"
        yield Tile(title, percent(inspection.seldom_share), note)
    elif len(fields) > 1:
        note = f"one of the rarest, which have 5% of a field's occurrences{drawn}"
        yield Tile(title, percent(sampled.share), note)
    memory = inspection.memory
    if "cfsgd" in memory:
        others = [
            f"{one.label} {size(memory[one.optimizer])}"
            for one in OPTIMIZERS
            if one.optimizer in memory and one.optimizer != "cfsgd"
        ]
        note = f"{enumerate_words(others)}; the weights have {size(memory.get('weights', 0))}"
        yield Tile("Optimizer state of CF-SGD", size(memory["cfsgd"]), note)


def _units(inspection: Inspection) -> str:
    """Return what is counted."""
    return "words" if inspection.is_text else "rows"


# ---- sentences -----------------------------------------------------------------------------------


def sentences(inspection: Inspection) -> Iterator[str]:
    """Yield where to look for a learning rate, and what limits what frequencies can tell."""
    fields, found = inspection.fields, inspection.lr
    if found is not None:
        yield (
            f"Learning rates for CF-SGD and an FM in batches of 1,024: try {found.low:g} to "
            f"{found.high:g}, the upper end first. The rule: {found.rule}."
        )
    elif inspection.lr_reason:
        yield f"No range of learning rates is suggested: {inspection.lr_reason}."
    yield from inspection.notes
    if inspection.overall:
        yield COUNTER_EXAMPLE
    if any(field.fit.family for field in fields):
        yield (
            "The nearer fit need not be true: with this many samples every simple tail differs "
            "measurably from the data."
        )
    single = [field.name for field in fields if field.tokens == 1]
    if single:
        yield f"Nothing is learned from a field with one token: {named(single)}."
    once = [field.name for field in fields if field.singletons > MANY_ONCE * field.tokens]
    if once:
        yield f"Over half of the tokens were seen once in {named(once)}."


def _fit_words(field: InspectedField) -> str:
    """Say which tail a field has, from where on, and whether the corollary applies."""
    fit, why = field.fit, field.corollary.reason
    if fit.family is None or fit.rate is None:
        return f"No tail: {fit.reason}."
    share = percent((fit.samples or 0) / field.occurrences)
    start = f" from rank {thousands(fit.from_rank or 1)} on, {share} of the occurrences"
    applies = "" if field.corollary.applies else f" The corollary does not apply: {why}."
    return (
        f"{capitalized(fit.family)} tail, {RATES[fit.family]} = {fit.rate:.3g}"
        f"{'' if fit.from_rank == 1 else start}.{applies}"
    )


# ---- charts --------------------------------------------------------------------------------------


def _shown(inspection: Inspection) -> tuple[InspectedField, ...]:
    """Return the fields that have charts, in their order: all, or those with most tokens."""
    order = range(len(inspection.fields))
    largest = sorted(order, key=lambda place: -inspection.fields[place].tokens)[:MOST_CHARTS]
    return tuple(inspection.fields[place] for place in sorted(largest))


def _which(inspection: Inspection) -> str:
    """Say which fields are drawn, unless all are."""
    drawn = len(_shown(inspection))
    return "" if drawn == len(inspection.fields) else f", the {drawn} fields with most tokens"


def rank_charts(inspection: Inspection) -> list[Chart]:
    """Return a chart per field: occurrences by rank, and both fitted tails."""
    charts = []
    height = 200 if len(inspection.fields) > FEW_FIELDS else 300
    for place, field in enumerate(_shown(inspection)):
        counted = [
            {"run": COUNTED.label, "rank": rank, "count": count}
            for rank, count in _thinned(field.ranks)
        ]
        fitted = [row for one in FITS for row in _fitted(field, one)]
        rows = [*counted, *fitted]
        alone = [row for row in rows if [each["run"] for each in rows].count(row["run"]) == 1]
        charts.append(
            chart(
                f"ranks-{place}",
                shortened(field.name),
                LINES,
                rows,
                log_axis("rank", "rank", [row["rank"] for row in rows], format="~s", grid=False),
                log_axis("count", "occurrences", [row["count"] for row in rows], format="~s"),
                lines(),
                *([points(alone)] if alone else []),
                tips=[
                    ("run", "line", ""),
                    ("rank", "rank", ",.0f"),
                    ("count", "occurrences", ",.3~g"),
                ],
                note=_fit_words(field),
                height=height,
            )
        )
    return charts


def _thinned(ranks: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return POINTS of many points at most, the first and the last among them."""
    step = max(1.0, (len(ranks) - 1) / (POINTS - 1))
    return [ranks[round(place * step)] for place in range(min(POINTS, len(ranks)))]


def _fitted(field: InspectedField, series: Series) -> Iterator[dict[str, Any]]:
    """Yield what a tail expects at the ranks that it was fitted to, where counts are as large.

    From ``first_count`` at rank n0 it falls as exp(-tau (n - n0)) or as (n / n0)^-nu.
    """
    fit, family = field.fit, series.optimizer
    first, rate, count = fit.from_rank, fit.rate_of(family), (fit.first_count or {}).get(family)
    if first is None or rate is None or count is None:
        return
    least = field.ranks[-1][1] / 2
    for rank in sorted({first, *(rank for rank, _ in _thinned(field.ranks))}):
        steps = rank - first if family == "exponential" else math.log(rank / first)
        if rank >= first and (expected := count * math.exp(-rate * steps)) >= least:
            yield {"run": series.label, "rank": rank, "count": expected}


def _promise_charts(inspection: Inspection) -> list[Chart]:
    """Return SGD's bound over FA-SGD's at two tokens of each field."""
    if inspection.overall is None:
        return []
    shown = _shown(inspection)
    names = [shortened(field.name, LONGEST_NAME) for field in shown]
    if len(set(names)) < len(names):
        names = [f"{place}: {name}" for place, name in enumerate(names, start=1)]
    promised = list(zip(names, (field.promise for field in shown), strict=True))
    if len(shown) > 1:
        promised.insert(0, ("all fields" + NOT_A_NAME, inspection.overall))
    rows = [
        {
            "run": NAMES[place],
            "row": name,
            **structs.asdict(promise),
        }
        for name, pair in promised
        for place, promise in structs.asdict(pair).items()
    ]
    known = all(row["count"] >= FEW_TIMES for row in rows)
    unknown = "" if known else f" Of tokens seen fewer than {FEW_TIMES} times it is hardly known."
    return [
        chart(
            "promise",
            f"Promise: SGD's bound over that of FA-SGD{_which(inspection)}",
            PLACES,
            rows,
            log_axis("error", "SGD's bound / FA-SGD's", [1.0, *(row["error"] for row in rows)]),
            names_axis("row", [row["row"] for row in rows[::2]]),
            level(1.0, upright=True)[0],
            points(size=70),
            tips=[
                ("run", "token", ""),
                ("row", "field", ""),
                ("count", "seen", ",.0f"),
                ("error", "SGD's bound / FA-SGD's", ",.3~g"),
                ("iterations", "SGD's iterations / FA-SGD's", ",.3~g"),
            ],
            note="A ratio of upper bounds after equally many iterations; the iterations to equal "
            f"bounds differ by its square.{unknown} Circle: the median token; diamond: one rarer "
            "than 90%.",
            height=40 + 24 * len(promised),
        )
    ]


# ---- tables --------------------------------------------------------------------------------------


def _short(value: float) -> str:
    """Return a number in three digits, or whole."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _fields_table(inspection: Inspection) -> Table:
    """Return a row per field."""
    fields = inspection.fields
    some_differ = len({field.occurrences for field in fields}) > 1
    columns: list[Column[InspectedField]] = [
        Column("Tokens", lambda field: field.tokens, thousands),
        Column("Occurrences", lambda each: each.occurrences if some_differ else None, thousands),
        Column("Seen once", lambda field: field.singletons / field.tokens, percent),
        Column("Effective tokens", lambda field: field.effective_tokens, _short),
        Column("Top 1% have", lambda field: field.top_1, percent),
        Column("Top 10% have", lambda field: field.top_10, percent),
        Column(
            "Tail from rank",
            lambda each: each.fit.from_rank if each.fit.family else None,
            thousands,
        ),
        Column("Polynomial, nu", lambda field: _nearer(field, "polynomial"), _short),
        Column("Exponential, tau", lambda field: _nearer(field, "exponential"), _short),
        Column("Median: seen", lambda field: field.promise.median.count, thousands),
        Column("Median: iterations", lambda field: field.promise.median.iterations, _short),
        Column("90%: seen", lambda field: field.promise.p90.count, thousands),
        Column("90%: iterations", lambda field: field.promise.p90.iterations, _short),
    ]
    return sortable_table(
        "Field",
        [(Cell(shortened(field.name, LONGEST_NAME), field.name), field) for field in fields],
        columns,
        label="Fields",
        note="Effective tokens: as many equally frequent tokens would repeat as rarely. "
        "Iterations: SGD's over FA-SGD's to an equal bound, for the token that half, or 90%, of "
        "the tokens are more frequent than. The tail is the nearer of two fits.",
    )


def _nearer(field: InspectedField, family: str) -> float | None:
    return field.fit.rate if field.fit.family == family else None


def _frequent_tables(inspection: Inspection) -> list[Table]:
    rows = [
        [
            field.name,
            ", ".join(f"{shortened(name)} ({thousands(n)})" for name, n in field.most_frequent),
        ]
        for field in inspection.fields
        if field.most_frequent
    ]
    folded = count_of(len(rows), "field") if len(rows) > FEW_FIELDS else ""
    head = ["Field", "Tokens and occurrences"]
    return [table(head, rows, kind="words", folded=folded)] if rows else []


def _settings(inspection: Inspection) -> Table:
    rows = [*settings_of(inspection.dataset), *settings_of({"dim": inspection.dim})]
    return table(["Setting", "Value"], rows, kind="settings")
