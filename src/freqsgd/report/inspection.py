"""The page of an inspection: how frequent tokens are, and what that promises."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from msgspec import structs

from freqsgd.documents import check_kind, read_document
from freqsgd.documents.inspection import FEW_TIMES, InspectedField, Inspection, TokenPromise
from freqsgd.optimizers import by_memory
from freqsgd.report.charts import (
    Chart,
    Named,
    Series,
    level,
    lines,
    log_axis,
    names_axis,
    plot,
    points,
    series_of,
)
from freqsgd.report.page import Page, Section, Tile
from freqsgd.report.parts import memory_charts
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
    times,
)

FEW_FIELDS = 6  # beyond, charts are small
MOST_CHARTS = 60  # of fields; the table has all
POINTS, ROWS = 100, 30  # of a chart, and of its data
LONGEST_NAME = 24  # in charts and tables
NOT_A_NAME = "\N{ZERO WIDTH SPACE}"  # tells all fields from one of that name
LARGE = 100  # tokens of a field, of which 1% is one at least
MANY_ONCE = 0.5  # share of tokens seen once, beyond which little is known of them
FEW_REASONS = 4  # that a sentence tells
RATES = {"exponential": "tau", "polynomial": "nu"}
NAMES = {"median": "median token", "p90": "token rarer than 90%"}
TOKENS = {"median": "the median token", "p90": "the token that 90% of all are more frequent than"}
COUNTER_EXAMPLE = (
    "A promise need not be a gain: on MovieLens-1M the median token is promised 5.9 times fewer "
    "iterations, and yet CF-SGD's AUC was 0.0004 below SGD's, each at its best rate."
)


COUNTED, *FITS = LINES = series_of(
    [
        Named("counted", "counted"),
        Named("exponential", "exponential tail"),
        Named("polynomial", "polynomial tail"),
    ]
)
OPTIMIZERS = series_of(
    [Named(each.name, each.label) for each in by_memory() if each.trains and each.stateful]
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
    said = statements(inspection)
    opening = ("Imbalance", "Promise", "Rare tokens", "Learning rate", "Notes")
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
        tiles=list(_tiles(inspection)),
        sentences=[said[topic] for topic in opening if topic in said],
        sections=[
            Section(
                f"Occurrences by rank{which}", ranks, small=len(inspection.fields) > FEW_FIELDS
            ),
            Section("Promise and memory", [*promises, *memory]),
            Section("Fields", tables=[_fields_table(inspection)]),
            Section(
                "Read with care",
                remarks=[
                    words
                    for topic, words in said.items()
                    if topic not in (*opening, "Data", "Memory")
                ],
            ),
            Section("Most frequent tokens", tables=_frequent_tables(inspection)),
            Section("Settings", tables=[_settings(inspection)], command=inspection.command or None),
        ],
        legend=LINES,
        colours=OPTIMIZERS,
        created=inspection.created,
        pictures={name: charts for name, charts in pictures.items() if charts},
    )


# ---- tiles ---------------------------------------------------------------------------------------


def _tiles(inspection: Inspection) -> Iterator[Tile]:
    """Yield the few numbers that a reader sees first."""
    fields, units = inspection.fields, _units(inspection)
    uneven = _least_even(inspection, LARGE)
    if uneven is not None:
        least = ", the least even field" if len(fields) > 1 else ""
        note = f"of all occurrences in {shortened(uneven.name)}{least}"
        yield Tile("The most frequent 10% of tokens have", percent(uneven.top_10), note)
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
    title = f"{capitalized(units)} with a rare token"
    if inspection.seldom_share is not None:
        note = f"one seen fewer than {FEW_TIMES} times"
        yield Tile(title, percent(inspection.seldom_share), note)
    elif len(fields) > 1:
        note = "one of the rarest, which have 5% of a field's occurrences"
        yield Tile(title, percent(inspection.tail_samples.share), note)
    mine, adam = (inspection.memory.get(name) for name in ("cfsgd", "adam"))
    if mine is not None and adam is not None:
        share = times(mine, adam, "less", "more", "as much")
        yield Tile(
            "Optimizer state of CF-SGD", size(mine), f"{share}: Adam would keep {size(adam)}"
        )


def _units(inspection: Inspection) -> str:
    """Return what is counted."""
    return "words" if inspection.is_text else "rows"


def _least_even(inspection: Inspection, tokens: int = 2) -> InspectedField | None:
    """Return the field with the smallest part of effective tokens among those with so many."""
    large = [each for each in inspection.fields if each.tokens >= tokens]
    return min(large, key=lambda each: each.effective_tokens / each.tokens, default=None)


# ---- statements ----------------------------------------------------------------------------------


def statements(inspection: Inspection) -> dict[str, str]:
    """Return what can be said, as plain text by topic."""
    found = {
        "Data": _data(inspection),
        "Imbalance": imbalance(inspection),
        "Promise": " ".join(_promised(inspection)),
        "Tails": " ".join(tails(inspection.fields)),
        "Corollary": " ".join(_corollaries(inspection.fields)),
        "Rare tokens": " ".join(_rare(inspection)),
        "Memory": _memory(inspection),
        "Learning rate": _learning_rate(inspection),
        "Notes": " ".join(inspection.notes),
        "Read with care": " ".join(_caveats(inspection)),
    }
    return {topic: words for topic, words in found.items() if words}


def _data(inspection: Inspection) -> str:
    tokens = sum(field.tokens for field in inspection.fields)
    rows = count_of(inspection.dataset.rows, _units(inspection).removesuffix("s"))
    if inspection.is_text:
        parts = [rows, count_of(tokens, "distinct word")]
    else:
        parts = [rows, count_of(len(inspection.fields), "field"), count_of(tokens, "token")]
    return f"{inspection.dataset.name} has {enumerate_words(parts)}."


def imbalance(inspection: Inspection) -> str:
    """Say how unequal the least even field is; shares are of fields in which 1% is a token."""
    field = _least_even(inspection, LARGE) or _least_even(inspection)
    if field is None:
        return "No field has more than one token: there is nothing to be unequal."
    least = ", the least even field," if len(inspection.fields) > 1 else ""
    value = field.effective_tokens
    shares = (
        f"the most frequent 1% of the tokens have {percent(field.top_1)} of all occurrences, the "
        f"most frequent 10% {percent(field.top_10)}; "
        if field.tokens >= LARGE
        else ""
    )
    return (
        f"In {shortened(field.name)}{least} {shares}the effective number of tokens is "
        f"{value:,.{0 if value >= 100 else 1}f} of {field.tokens:,}: so many equally frequent ones "
        "would be as unlikely to repeat."
    )


def _promised(inspection: Inspection) -> Iterator[str]:
    """Say what the bounds promise to the median token and to one in the tail."""
    if inspection.overall is None:
        return
    found: dict[str, TokenPromise] = structs.asdict(inspection.overall)
    errors = enumerate_words(
        f"{factor(promise.error)} times FA-SGD's for {TOKENS[place]} (seen {often(promise.count)})"
        for place, promise in found.items()
    )
    yield f"After equally many iterations SGD's bound on a token's squared gradient is {errors}."
    if not all(promise.is_known for promise in found.values()):
        yield (
            f"Of a token seen fewer than {FEW_TIMES} times the factor is hardly known, and it "
            f"grows with the number of {_units(inspection)}."
        )
    yield "These are ratios of upper bounds, no forecast of AUC."


def _rare(inspection: Inspection) -> Iterator[str]:
    """Say how many rows hold a token of which little is known, and how many one of a tail."""
    rows, sampled = _units(inspection), inspection.tail_samples
    drawn = (
        f", of which {sampled.of:,} were drawn," if sampled.of != inspection.dataset.rows else ""
    )
    if inspection.seldom_share is not None:
        yield (
            f"{percent(inspection.seldom_share)} of the {rows}{drawn} hold a token that was seen "
            f"fewer than {FEW_TIMES} times."
        )
        drawn = ""
    definition = ", by definition" if len(inspection.fields) == 1 else ""
    yield (
        f"{percent(sampled.share)} of the {rows}{drawn} hold a token of a tail: the rarest of a "
        f"field, with 5% of its occurrences{definition}."
    )


def _memory(inspection: Inspection) -> str:
    """Say what optimizers keep."""
    told = enumerate_words(
        f"{one.label} {size(inspection.memory[one.optimizer])}"
        for one in OPTIMIZERS
        if one.optimizer in inspection.memory
    )
    if not told:
        return ""
    beside = f" beside {size(inspection.memory.get('weights', 0))} of weights"
    return f"Optimizer state{beside} with vectors of {inspection.dim} numbers: {told}."


def _learning_rate(inspection: Inspection) -> str:
    """Say where to look for a rate."""
    found = inspection.lr
    if found is None:
        return f"No range is suggested: {inspection.lr_reason}." if inspection.lr_reason else ""
    return (
        f"For CF-SGD and an FM in batches of 1,024 try {found.low:g} to {found.high:g}; begin at "
        f"the upper end. The rule: {found.rule}."
    )


def _caveats(inspection: Inspection) -> Iterator[str]:
    """Say what limits what frequencies can tell."""
    fields = inspection.fields
    if inspection.overall:
        yield COUNTER_EXAMPLE
    if any(field.fit.family for field in fields):
        yield (
            "That a tail is nearer does not make it true: with so many samples every simple "
            "tail can be told from the data."
        )
    single = [field.name for field in fields if field.tokens == 1]
    if single and len(single) < len(fields):
        yield f"Nothing is learned from a field with one token: {named(single)}."
    once = [field.name for field in fields if field.singletons > MANY_ONCE * field.tokens]
    if once:
        yield f"Over half of the tokens were seen once in {named(once)}."


# ---- tails and corollaries -----------------------------------------------------------------------


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


def tails(fields: Sequence[InspectedField]) -> Iterator[str]:
    """Say which tails fields have."""
    for family, symbol in RATES.items():
        found = [field for field in fields if field.fit.family == family]
        if found:
            rates = sorted(field.fit.rate or 0 for field in found)
            span = " to ".join(dict.fromkeys(f"{rate:.3g}" for rate in (rates[0], rates[-1])))
            article = "An" if family == "exponential" else "A"
            names = named([field.name for field in found])
            yield f"{article} {family} tail is nearer in {names} ({symbol} {span})."
    missing = [field for field in fields if field.fit.family is None]
    if missing:
        why = _because(field.fit.reason for field in missing)
        yield f"Neither in {named([field.name for field in missing])}{why}."


def _corollaries(fields: Sequence[InspectedField]) -> Iterator[str]:
    """Say where the corollaries' conditions hold."""
    applies = [field.name for field in fields if field.corollary.applies]
    others = [field for field in fields if not field.corollary.applies]
    if applies:
        yield (
            f"The corollary's conditions on one field hold in {named(applies)}, from the rank on "
            "that the fit begins at; the corollary itself is about two fields with as many tokens "
            "and the same tail from rank 1 on, which no real data has."
        )
    if others:
        why = _because(field.corollary.reason for field in others)
        yield f"The corollary does not apply to {named([each.name for each in others])}{why}."
    yield "The promise does not need it: it comes from the counts."


def _because(reasons: Iterable[str | None]) -> str:
    """Say why, if the reasons are few."""
    known = [reason for reason in dict.fromkeys(reasons) if reason]
    return f": {'; '.join(known)}" if 0 < len(known) <= FEW_REASONS else ""


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
        (_, most), (last, least) = field.ranks[0], field.ranks[-1]
        name = shortened(field.name)
        counted = [
            {"run": COUNTED.label, "rank": rank, "count": count}
            for rank, count in _thinned(field.ranks, POINTS)
        ]
        fitted = [row for one in FITS for row in _fitted(field, one)]
        rows = [*counted, *fitted]
        alone = [row for row in rows if [each["run"] for each in rows].count(row["run"]) == 1]
        spec = plot(
            LINES,
            rows,
            log_axis("rank", "rank", [row["rank"] for row in rows], format="~s", grid=False),
            log_axis("count", "occurrences", [row["count"] for row in rows], format="~s"),
            lines(),
            *([points(alone)] if alone else []),
            tips=[("run", "line", ""), ("count", "occurrences", ",.3~s"), ("rank", "rank", ",d")],
            height=height,
        )
        charts.append(
            Chart(
                f"ranks-{place}",
                title=name,
                spec=spec,
                description=f"Line chart of occurrences by rank in {name}: {thousands(most)} at "
                f"rank 1, {thousands(least)} at rank {thousands(last)}. {_fit_words(field)}",
                note=_fit_words(field),
                table=table(
                    ["Rank", "Occurrences"],
                    [list(map(thousands, pair)) for pair in _thinned(field.ranks, ROWS)],
                ),
            )
        )
    return charts


def _thinned(ranks: Sequence[tuple[int, int]], most: int) -> list[tuple[int, int]]:
    """Return some of many points, the first and the last among them."""
    if len(ranks) <= most:
        return list(ranks)
    return [ranks[round(row * (len(ranks) - 1) / (most - 1))] for row in range(most)]


def _fitted(field: InspectedField, series: Series) -> Iterator[dict[str, Any]]:
    """Yield what a tail expects at the ranks that it was fitted to, where counts are as large.

    From ``first_count`` at rank n0 it falls as exp(-tau (n - n0)) or as (n / n0)^-nu.
    """
    fit, family = field.fit, series.optimizer
    first, rate, count = fit.from_rank, fit.rate_of(family), (fit.first_count or {}).get(family)
    if first is None or rate is None or count is None:
        return
    least = field.ranks[-1][1] / 2
    for rank in sorted({first, *(rank for rank, _ in _thinned(field.ranks, POINTS))}):
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
    tips = [
        ("run", "token", ""),
        ("count", "seen", ",d"),
        ("error", "SGD's bound / FA-SGD's", ",.3~g"),
        ("iterations", "SGD's iterations / FA-SGD's", ",.3~g"),
    ]
    spec = plot(
        PLACES,
        rows,
        log_axis("error", "SGD's bound / that of FA-SGD", [1.0, *(row["error"] for row in rows)]),
        names_axis("row", [row["row"] for row in rows[::2]]),
        *level(1.0, upright=True),
        points(size=70),
        tips=tips,
        height=40 + 24 * len(promised),
    )
    known = all(row["count"] >= FEW_TIMES for row in rows)
    unknown = "" if known else f" Of tokens seen fewer than {FEW_TIMES} times it is hardly known."
    told = "; ".join(
        f"{shortened(field.name)} {_short(field.promise.median.error)} and "
        f"{_short(field.promise.p90.error)}"
        for field in shown
    )
    return [
        Chart(
            "promise",
            title=f"Promise: SGD's bound over that of FA-SGD{_which(inspection)}",
            spec=spec,
            description="Dot chart of the improvement of the bound at the median token and at one "
            f"rarer than 90%: {told}.",
            note="A ratio of upper bounds after equally many iterations; the iterations to equal "
            f"bounds differ by its square.{unknown} Circle: the median token; diamond: one rarer "
            "than 90%.",
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
        note="Effective tokens: so many equally frequent ones would be as unlikely to repeat. "
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
    data = inspection.dataset
    rows = {
        "Data": _data(inspection),
        "Min count": thousands(data.min_count),
        "Rule for bins of numbers": data.numeric_rule,
        "Dimension": str(inspection.dim),
    }
    listed = [[name, value] for name, value in rows.items() if value]
    return table(["Setting", "Value"], listed, kind="settings")
