"""The page and the pictures of an inspection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from freqsgd.documents.inspection import FEW_TIMES, InspectedField, Inspection
from freqsgd.report.old import inspection_figures as figures
from freqsgd.report.old.charts import memory_chart
from freqsgd.report.old.inspection import PLACES, promises_of
from freqsgd.report.old.inspection_words import fit_words, headline, inspection_title, summarize
from freqsgd.report.old.page import Chart, Section, command_html, footer_html, opening_html, render
from freqsgd.report.old.picture import Panel, Picture
from freqsgd.report.old.tables import Cells, plain_table, sortable_table
from freqsgd.report.old.wording import (
    count_of,
    enumerate_words,
    percent,
    shortened,
    size,
    thousands,
)

FEW_FIELDS = 6  # beyond, charts are small
MOST_CHARTS = 60  # of fields; the table has all
ROWS = 30  # of the data of a chart
HEIGHT, SMALL_HEIGHT = 300, 200
LONGEST_NAME = 24  # in the table of fields


def render_inspection(inspection: Inspection) -> str:
    """The whole page."""
    return render(
        title=inspection_title(inspection),
        opening=opening_html(headline(inspection), summarize(inspection)),
        sections=sections(inspection),
        footer=footer_html([], inspection.created),
        runs=figures.LINES,
        others=figures.OPTIMIZERS,
    )


def inspection_pictures(inspection: Inspection) -> dict[str, Picture]:
    """The pictures by name; those of what is not known are left out."""
    charts = {
        "ranks": (f"Occurrences of tokens by rank{which(inspection)}", rank_charts(inspection)),
        "promise": (
            f"SGD's bound over that of FA-SGD{which(inspection)}",
            promise_charts(inspection),
        ),
        "memory": ("Optimizer state", memory_charts(inspection)),
    }
    found = {}
    for name, (title, some) in charts.items():
        panels = [Panel(each.title if name == "ranks" else "", each.figure) for each in some]
        if panels:
            found[name] = Picture(title, panels)
    return found


def sections(inspection: Inspection) -> list[Section]:
    """All sections that have something to show."""
    parts = [
        Section("Fields", fields_table(inspection)),
        Section(
            f"Occurrences by rank{which(inspection)}",
            charts=tuple(rank_charts(inspection)),
            small=len(inspection.fields) > FEW_FIELDS,
        ),
        Section(
            "Promise and memory",
            charts=(*promise_charts(inspection), *memory_charts(inspection)),
        ),
        Section("Most frequent tokens", frequent_table(inspection)),
        Section("Settings", settings_html(inspection)),
    ]
    return [part for part in parts if part.html or part.charts]


def shown(inspection: Inspection) -> tuple[InspectedField, ...]:
    """The fields that have charts, in their order: all, or those with most tokens."""
    order = range(len(inspection.fields))
    largest = sorted(order, key=lambda place: -inspection.fields[place].tokens)[:MOST_CHARTS]
    return tuple(inspection.fields[place] for place in sorted(largest))


def which(inspection: Inspection) -> str:
    """Which fields are drawn, unless all are."""
    drawn = len(shown(inspection))
    return "" if drawn == len(inspection.fields) else f", the {drawn} fields with most tokens"


def rank_charts(inspection: Inspection) -> Iterator[Chart]:
    """A chart per field."""
    height = SMALL_HEIGHT if len(inspection.fields) > FEW_FIELDS else HEIGHT
    for place, field in enumerate(shown(inspection)):
        (_, most), (last, least) = field.ranks[0], field.ranks[-1]
        name = shortened(field.name)
        yield Chart(
            f"ranks-{place}",
            title=name,
            figure=figures.rank_counts(field, height),
            description=f"Line chart of occurrences by rank in {name}: {thousands(most)} at "
            f"rank 1, {thousands(least)} at rank {thousands(last)}. {fit_words(field)}",
            note=fit_words(field),
            data=plain_table(
                ["Rank", "Occurrences"],
                [[thousands(rank), thousands(count)] for rank, count in thinned(field.ranks)],
            ),
        )


def thinned(ranks: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """Some of many points, the first and the last among them."""
    if len(ranks) <= ROWS:
        return list(ranks)
    return [ranks[round(row * (len(ranks) - 1) / (ROWS - 1))] for row in range(ROWS)]


def promise_charts(inspection: Inspection) -> Iterator[Chart]:
    """What the bounds promise to each field's tokens."""
    figure = figures.promises(inspection, shown(inspection)) if inspection.overall else None
    if figure is None:
        return
    drawn = [
        promise for field in shown(inspection) for promise in promises_of(field.promise).values()
    ]
    unknown = (
        ""
        if all(promise.is_known for promise in drawn)
        else f" Of tokens seen fewer than {FEW_TIMES} times it is hardly known."
    )
    told = [
        f"{shortened(field.name)} {enumerate_words(short(promise.error) for promise in promises)}"
        for field in shown(inspection)
        if (promises := promises_of(field.promise).values())
    ]
    yield Chart(
        "promise",
        title=f"Promise: SGD's bound over that of FA-SGD{which(inspection)}",
        figure=figure,
        description="Dot chart of the improvement of the bound at the median token and at one "
        f"rarer than 90%: {'; '.join(told)}.",
        note="A ratio of upper bounds after equally many iterations; the iterations to equal "
        f"bounds differ by its square.{unknown} Circle: the median token; diamond: one rarer than "
        "90%.",
    )


def memory_charts(inspection: Inspection) -> Iterator[Chart]:
    """What each optimizer would keep."""
    figure = figures.memory(inspection)
    if figure is None:
        return
    sizes = [
        (one.label, size(inspection.memory[one.optimizer]))
        for one in figures.OPTIMIZERS
        if one.optimizer in inspection.memory
    ]
    dim = f", with vectors of {inspection.dim} numbers" if inspection.dim else ""
    note = f"Numbers that an optimizer keeps beside the weights, in bytes{dim}."
    yield memory_chart("memory", figure, sizes, note)


def fields_table(inspection: Inspection) -> str:
    """A row per field."""
    fields = inspection.fields
    occurrences = [field.occurrences for field in fields]
    columns: list[Cells] = [
        ("Tokens", thousands, [field.tokens for field in fields]),
        ("Occurrences", thousands, occurrences if len(set(occurrences)) > 1 else []),
        ("Seen once", percent, [once(field) for field in fields]),
        ("Effective tokens", short, [field.effective_tokens for field in fields]),
        ("Top 1% have", percent, [field.top_1 for field in fields]),
        ("Top 10% have", percent, [field.top_10 for field in fields]),
        ("Tail from rank", thousands, [first_rank(field) for field in fields]),
        ("Polynomial, nu", short, [rate(field, "polynomial") for field in fields]),
        ("Exponential, tau", short, [rate(field, "exponential") for field in fields]),
    ]
    for place, words in zip(PLACES, ("Median", "90%"), strict=True):
        promises = [promises_of(field.promise).get(place) for field in fields]
        iterations = [each.iterations if each else None for each in promises]
        columns += [
            (f"{words}: seen", thousands, [each.count if each else None for each in promises]),
            (f"{words}: iterations", short, iterations),
        ]
    names = [(shortened(field.name, LONGEST_NAME), field.name) for field in fields]
    return (
        f'{sortable_table("InspectedField", names, columns)}<p class="note">Top: the share of all '
        "occurrences that the most frequent tokens have. Tail: the nearer of two, and the rank "
        "that its fit begins at. Median, 90%: the token that so many of the field's tokens are "
        "more frequent than, how often it was seen, and how many times FA-SGD's iterations SGD's "
        f"bound takes to equal FA-SGD's; of a token seen fewer than {FEW_TIMES} times that is "
        "hardly known.</p>"
    )


def once(field: InspectedField) -> float | None:
    """The share of tokens that were seen once."""
    return None if field.singletons is None else field.singletons / field.tokens


def first_rank(field: InspectedField) -> int | None:
    """Where the fit of the nearer tail begins."""
    return field.fit.from_rank if field.fit.family else None


def rate(field: InspectedField, family: str) -> float | None:
    """The rate of a tail, where it is the nearer one."""
    return field.fit.rate if field.fit.family == family else None


def short(value: float) -> str:
    """A number to three digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def frequent_table(inspection: Inspection) -> str:
    """The first tokens of each field."""
    rows = [
        [
            field.name,
            ", ".join(f"{shortened(token)} ({thousands(n)})" for token, n in field.most_frequent),
        ]
        for field in inspection.fields
        if field.most_frequent
    ]
    if not rows:
        return ""
    table = plain_table(["InspectedField", "Tokens, with their occurrences"], rows, kind="settings")
    return (
        f'<details class="wide"><summary>{count_of(len(rows), "field")}</summary>{table}</details>'
    )


def settings_html(inspection: Inspection) -> str:
    """What was chosen, and the command."""
    chosen = {
        "Min count": inspection.dataset.min_count,
        "Rule for bins of numbers": inspection.dataset.numeric_rule,
        "Length of a vector": inspection.dim,
    }
    rows = [[name, str(value)] for name, value in chosen.items() if value is not None]
    table = plain_table(["Setting", "Value"], rows, kind="settings") if rows else ""
    return table + command_html(inspection.command)
