"""The page and the pictures of a simulation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from freqsgd.report.old import theory_figures as figures
from freqsgd.report.old.page import Chart, Section, command_html, footer_html, opening_html, render
from freqsgd.report.old.picture import Panel, Picture
from freqsgd.report.old.tables import Cells, plain_table, sortable_table
from freqsgd.report.old.theory import SIDES, Theory
from freqsgd.report.old.theory_words import headline, summarize, tail_words, theory_title
from freqsgd.report.old.wording import capitalized, enumerate_words

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    Way = Callable[[Theory, str], Figure | None]


SETTINGS = {
    "tail": "Tail",
    "rate": "Its rate, tau or nu",
    "users": "Users",
    "items": "Items",
    "dim": "Length of a row",
    "radius": "Radius of the ball",
    "smoothness": "Smoothness L",
    "gap": "Loss at the start, less the lowest",
    "iterations": "Iterations",
    "repetitions": "Repetitions",
    "output": "Iterate that is measured",
    "seed": "Seed",
}


def render_theory(theory: Theory) -> str:
    """The whole page."""
    return render(
        title=theory_title(theory),
        opening=opening_html(headline(theory), summarize(theory)),
        sections=sections(theory),
        footer=footer_html([], theory.created),
        runs=theory.runs,
        others=[figures.TOKENS],
    )


def theory_pictures(theory: Theory) -> dict[str, Picture]:
    """The pictures by name; those of what is not known are left out."""
    ways: dict[str, tuple[str, Way]] = {
        "distribution": ("Frequency of tokens", figures.distribution),
        "error": ("Mean squared gradient of tokens: bound and measurement", figures.error),
        "improvement": ("SGD's error over that of others", figures.improvement),
    }
    found = {}
    for name, (title, way) in ways.items():
        panels = [Panel(capitalized(SIDES[side]), figure) for side, figure in drawn(theory, way)]
        if panels:
            found[name] = Picture(title, panels)
    return found


def present(theory: Theory) -> list[str]:
    """Sides that have tokens."""
    return [side for side in SIDES if theory.places(side)]


def drawn(theory: Theory, way: Way) -> Iterator[tuple[str, Figure]]:
    """The sides of which a figure can be drawn, with it."""
    for side in present(theory):
        figure = way(theory, side)
        if figure is not None:
            yield side, figure


def sections(theory: Theory) -> list[Section]:
    """All sections that have something to show."""
    parts = [
        Section("Tokens", charts=tuple(distribution_charts(theory))),
        Section("Error of each token: bound and measurement", charts=tuple(error_charts(theory))),
        Section("Improvement over SGD", charts=tuple(improvement_charts(theory))),
        Section("Statements of the paper", checks_table(theory)),
        Section("All numbers", tokens_table(theory)),
        Section("Settings", settings_html(theory)),
    ]
    return [part for part in parts if part.html or part.charts]


def distribution_charts(theory: Theory) -> Iterator[Chart]:
    """How frequent tokens are."""
    for side in present(theory):
        places, top = theory.places(side), theory.top(side)
        ends = enumerate_words(
            f"p = {p:.3g} at rank {theory.tokens.rank[place]}"
            for place in (places[0], places[-1])
            if (p := theory.tokens.p[place]) is not None
        )
        yield Chart(
            f"distribution-{side}",
            title=f"Frequency of {SIDES[side]}",
            figure=figures.distribution(theory, side),
            description=f"Scatter chart of the frequency of {len(places)} {SIDES[side]} with "
            f"{tail_words(theory)}: {ends}; {top} are top {SIDES[side]}.",
            note=top_note(theory, side),
        )


def top_note(theory: Theory, side: str) -> str:
    """What the top tokens are."""
    top, count = theory.top(side), len(theory.places(side))
    if top >= count:
        return f"All {SIDES[side]} are top {SIDES[side]}: none is much rarer than the first."
    within = {"exponential": "a factor e", "polynomial": "a factor 16"}.get(
        str(theory.problem.tail)
    )
    of = f" are within {within} of the first" if within else ""
    return f"Top {SIDES[side]}{of}: {top} of {count}."


def error_charts(theory: Theory) -> Iterator[Chart]:
    """What is left of each token's gradient."""
    for side, figure in drawn(theory, figures.error):
        places = theory.places(side)
        told = [
            f"{run.label} measured {ends(run.measured, places)}, bound {ends(run.bounds, places)}"
            for run in theory.runs
        ]
        yield Chart(
            f"error-{side}",
            title=capitalized(SIDES[side]),
            figure=figure,
            description=f"Chart of the mean squared gradient of {SIDES[side]}, from the most "
            f"frequent to the rarest: {'; '.join(told)}.",
            note="Points: the mean squared gradient of a token's row, with 95% intervals. "
            "Dashed: its bound. Dotted: what it was at the start; a bound above it says nothing "
            f"yet.{late_note(theory)}",
        )


def late_note(theory: Theory) -> str:
    """That CF-SGD's points are not to be compared with others here."""
    counting = any(run.optimizer == "cfsgd" for run in theory.runs)
    if not counting or theory.problem.output != "random":
        return ""
    return (
        " CF-SGD's iterate is drawn from the second half of all, that of others from all, as the "
        "theorems have it: compare them in the next charts, where all are drawn alike."
    )


def improvement_charts(theory: Theory) -> Iterator[Chart]:
    """How much smaller errors are than SGD's."""
    for side, figure in drawn(theory, figures.improvement):
        places = theory.places(side)
        told = [
            f"{entry.label} measured {ends(entry.measured, places)}, by the bounds "
            f"{ends(entry.bounds, places)}"
            for entry in theory.improvements
        ]
        dotted = (
            " Dotted: what the corollary guarantees the bounds, the root of its factor of "
            "iterations."
            if any(entry.guaranteed[place] for entry in theory.improvements for place in places)
            else ""
        )
        yield Chart(
            f"improvement-{side}",
            title=capitalized(SIDES[side]),
            figure=figure,
            description=f"Chart of SGD's error over that of others for {SIDES[side]}, from the "
            f"most frequent to the rarest: {'; '.join(told)}.",
            note="Above 1: better than SGD after equally many iterations. Points: measured, with "
            f"95% intervals. Dashed: by the bounds.{dotted}",
        )


def ends(column: tuple[float | None, ...], places: list[int]) -> str:
    """The first and the last number of a line."""
    values = [value for place in places if (value := column[place]) is not None]
    return f"{values[0]:.3g} to {values[-1]:.3g}" if values else "not known"


def checks_table(theory: Theory) -> str:
    """Every statement, and whether it came out."""
    rows = [
        [check.statement, "yes" if check.holds else "no", check.detail] for check in theory.checks
    ]
    return plain_table(["Statement", "Came out", "Detail"], rows, kind="settings") if rows else ""


def tokens_table(theory: Theory) -> str:
    """A row per token, folded."""
    width = len(str(max(theory.tokens.rank)))
    pairs = zip(theory.tokens.side, theory.tokens.rank, strict=True)
    names = [(f"{side} {rank}", f"{side} {rank:0{width}}") for side, rank in pairs]
    columns: list[Cells] = [
        ("p", "{:.3g}".format, theory.tokens.p),
        ("σ²", "{:.3g}".format, theory.tokens.sigma2),
        ("E‖∇f‖² at the start", "{:.3g}".format, theory.tokens.start),
    ]
    for run in theory.runs:
        columns += [
            (f"{run.label}, step size", "{:.3g}".format, run.steps),
            (f"{run.label}, bound", "{:.3g}".format, run.bounds),
            (f"{run.label}, measured", "{:.3g}".format, run.measured),
        ]
    for entry in theory.improvements:
        columns += [
            (f"SGD / {entry.label}, bounds", "{:.3g}".format, entry.bounds),
            (f"SGD / {entry.label}, measured", "{:.3g}".format, entry.measured),
        ]
    table = sortable_table("Token", names, columns)
    count = len(names)
    return f'<details class="wide"><summary>{count} tokens</summary>{table}</details>'


def settings_html(theory: Theory) -> str:
    """What was chosen, what follows from it, and the command."""
    rows: list[list[str | None]] = [
        [name, setting(value)]
        for key, name in SETTINGS.items()
        if (value := getattr(theory.problem, key)) is not None
    ]
    rows += [[f"alpha of {run.label}", setting(run.alpha)] for run in theory.runs if run.alpha]
    table = plain_table(["Setting", "Value"], rows, kind="settings")
    return table + command_html(theory.command)


def setting(value: object) -> str:
    """A setting as text."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
