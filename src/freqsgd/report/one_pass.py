"""The page of runs that saw every example of a stream once, set against a baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from freqsgd.documents.results import Window
from freqsgd.report.charts import (
    LARGE,
    SMALL,
    Chart,
    Series,
    Spec,
    axis,
    chart,
    cut_off,
    level,
    lines,
    points,
    series_of,
)
from freqsgd.report.page import SENTENCES, Page, Section, Tile
from freqsgd.report.parts import (
    CUT_SHORT,
    Point,
    course_charts,
    cut_short,
    made_with,
    runs_table,
    settings_section,
    state_charts,
    state_tile,
    title_of,
)
from freqsgd.report.results import Results, Run, read_results
from freqsgd.report.tables import Column, Table, shown, table
from freqsgd.report.wording import count_of, enumerate_words, megabytes, score, size, thousands

BASELINE = "adagrad"
MEANING = (
    "NE is the mean loss over that of always predicting the share of positive labels: "
    "less is better, 1 is no better than that."
)
SCORED = "Each batch was scored before it was learned."
SETTLED = 0.2  # of the examples: what lies before them may be cut off, being far worse
DEEPEST = 0.05  # NE above the best of an optimizer's rates that is shown
LEAST_SPAN = 1e-4  # of an axis of scores

Courses = Mapping[str, Sequence[Point]]  # by label of the run


@dataclass(frozen=True)
class OnePass:
    """All runs over one stream, and what they have in common."""

    results: Results

    @property
    def runs(self) -> tuple[Run, ...]:
        """Those of the results."""
        return self.results.runs

    @property
    def skipped(self) -> list[str]:
        """Files that were left out, with the reasons."""
        return list(dict.fromkeys(file for run in self.runs for file in run.skipped))

    @property
    def is_evaluated(self) -> bool:
        """Whether there are examples that were not learned from."""
        return any(run.test_ne is not None for run in self.runs)

    @property
    def ne_name(self) -> str:
        """What runs are compared by."""
        return "evaluation NE" if self.is_evaluated else "NE while training"

    def ne(self, run: Run) -> float | None:
        """Return the NE that runs are compared by."""
        return run.test_ne if self.is_evaluated else run.train_ne

    @property
    def baseline(self) -> Run | None:
        """Adagrad's run; without it the first that has an NE; None with nothing to compare."""
        known = [run for run in self.runs if self.ne(run) is not None]
        if len(known) < 2:
            return None
        return next((run for run in known if run.optimizer == BASELINE), known[0])

    def difference(self, run: Run) -> float | None:
        """Return how many percent a run's NE is above the baseline's; None for the baseline."""
        base = self.baseline
        if base is None or run is base:
            return None
        return _percent_apart(self.ne(run), self.ne(base))

    @property
    def ranking(self) -> list[tuple[float, Run]]:
        """Runs with their NE, the lowest first."""
        known = [(ne, run) for run in self.runs if (ne := self.ne(run)) is not None]
        return sorted(known, key=lambda pair: pair[0])

    def of_optimizer(self, optimizer: str) -> Run | None:
        """Return the first run of an optimizer."""
        return next((run for run in self.runs if run.optimizer == optimizer), None)


def _percent_apart(value: float | None, base: float | None) -> float | None:
    """100 (value - base) / base, where both are known."""
    return None if value is None or not base else 100 * (value - base) / base


def whole_windows(run: Run) -> list[Window]:
    """Return the windows of a run, without a last one that is shorter than the first."""
    windows = list(run.windows)
    if len(windows) < 2:
        return windows
    last = windows[-1].examples - windows[-2].examples
    short = last + (run.batch_size or 0) < windows[0].examples  # windows end with a batch
    return windows[:-1] if short else windows


def course_of(windows: Iterable[Window], of: Callable[[Window], float | None]) -> list[Point]:
    """Return a number of windows, where it is known."""
    return [
        Point(window.examples, value, window.seconds)
        for window in windows
        if (value := of(window)) is not None
    ]


def window_differences(run: Run, base: Run) -> list[Point]:
    """Return how many percent the NE of each window is above the baseline's of its examples."""
    bases = {window.examples: window.ne for window in base.windows}
    return course_of(
        whole_windows(run), lambda each: _percent_apart(each.ne, bases.get(each.examples))
    )


def read_one_pass(document: Mapping[str, Any]) -> OnePass:
    """Return the content of a ``results.json`` with ``"one_pass": true``."""
    results = read_results(document)
    return OnePass(replace(results, runs=tuple(map(_whole, results.runs))))


def _whole(run: Run) -> Run:
    """A run without scores of a part of its examples, and its rates in order."""
    tried = sorted(run.search, key=lambda one: one.lr)
    ended = (replace(one, train_ne=None) if one.error else one for one in tried if one.lr > 0)
    run = replace(run, search=tuple(ended))
    if run.stopped not in CUT_SHORT:
        return run
    return replace(run, train_ne=None, train_auc=None, train_calibration=None)


# ---- the page ------------------------------------------------------------------------------------


def one_pass_page(found: OnePass) -> Page:
    """Return the page."""
    results = found.results
    series = series_of({run.label: run.optimizer for run in found.runs})
    said = [MEANING, *_caveats(found)]
    return Page(
        f"{title_of(results)}, in one pass",
        _tiles(found),
        said[:SENTENCES],
        [
            Section("NE over the run", ne_charts(found, series)),
            Section("All runs", tables=[_runs_table(found)]),
            Section("Read with care", remarks=said[SENTENCES:]),
            Section("NE by day", tables=_days_tables(found)),
            Section("Learning rates", _rate_charts(found, series)),
            Section("Calibration and AUC over the run", _other_charts(found, series)),
            Section("Optimizer state", state_charts(results, series)),
            Section("Files left out", tables=_files_tables(found)),
            settings_section(results),
        ],
        legend=series,
        made=made_with(results),
        created=results.created,
    )


# ---- tiles and sentences -------------------------------------------------------------------------


def ne_score(ne: float) -> str:
    """Return an NE, to digits that show a difference of 0.01%."""
    return f"{ne:.5f}"


def signed(apart: float) -> str:
    """Return a difference in percent as a number with its sign."""
    return f"{apart:+.3f}".replace("-", "\N{MINUS SIGN}")


def _tiles(found: OnePass) -> list[Tile]:
    """Tiles for what these runs hold, in order of importance."""
    tiles = (
        _lowest_tile(found),
        _difference_tile(found),
        state_tile(found.of_optimizer("cfsgd"), found.baseline, found.of_optimizer("cfadam")),
        _speed_tile(found),
    )
    return [tile for tile in tiles if tile is not None]


def _lowest_tile(found: OnePass) -> Tile | None:
    """The lowest NE, and whose it is."""
    ranked = found.ranking
    if not ranked:
        return None
    others = "".join(f"; then {run.label} with {ne_score(ne)}" for ne, run in ranked[1:2])
    return Tile(f"Lowest {found.ne_name}", ne_score(ranked[0][0]), ranked[0][1].label + others)


def _difference_tile(found: OnePass) -> Tile | None:
    """How far CF-SGD is from the baseline."""
    counting, base = found.of_optimizer("cfsgd"), found.baseline
    apart = None if counting is None else found.difference(counting)
    if counting is None or base is None or apart is None:
        return None
    title = f"{counting.label} against {base.label}, {found.ne_name}"
    nes = (ne_score(found.ne(run) or 0.0) for run in (counting, base))
    return Tile(title, f"{signed(apart)}%", f"{' against '.join(nes)}; below 0 is better")


def _speed_tile(found: OnePass) -> Tile | None:
    """How fast CF-SGD, or else the first run, went through the stream."""
    run = found.of_optimizer("cfsgd") or found.runs[0]
    if run.speed is None:
        return None
    return Tile(f"Examples/s of {run.label}", thousands(run.speed), "reading included")


# ---- what to read with care ----------------------------------------------------------------------


def _caveats(found: OnePass) -> Iterator[str]:
    """What limits what the numbers can show."""
    for run in found.runs:
        seen = run.examples or (run.windows[-1].examples if run.windows else 0)
        yield from cut_short(run, count_of(seen, "example") if seen else "")
    if max(len(run.windows) for run in found.runs) == 1:
        yield "One window makes no lines to draw: a smaller --window gives more."
    if len(found.runs) > 1:
        yield (
            "Each optimizer ran once at the rate shown, on the same examples in the same order: "
            "another start ends a little apart, and small differences do not rank them."
        )
    if searched := [run.label for run in found.runs if len(run.search) > 1]:
        yield (
            f"The learning rate of {enumerate_words(searched)} is the best of those tried, by NE "
            "while training; the evaluation examples play no part."
        )
    dropped = max(run.dropped or 0 for run in found.runs)
    if dropped:
        yield f"Malformed rows left out: {thousands(dropped)}."
    if found.skipped:
        yield f"Files left out, listed below: {thousands(len(found.skipped))}."


def _rate_limits(run: Run) -> Iterator[str]:
    """Where a better rate may lie, and which rates diverged."""
    if run.search_edge and run.lr is not None:
        end = "smallest" if run.lr == run.search[0].lr else "largest"
        yield f"The best of {run.label} is the {end}, {run.lr:.3g}: a better one may lie beyond."
    if failed := [f"{one.lr:.3g}" for one in run.search if one.train_ne is None]:
        yield f"{run.label} diverged at {enumerate_words(failed)}."


# ---- charts --------------------------------------------------------------------------------------


def ne_charts(found: OnePass, series: Sequence[Series]) -> list[Chart]:
    """Return NE against the baseline, of all examples so far, and by window."""
    limit = found.results.best_possible.get("train_ne")
    best = None if limit is None else (limit, "best possible")
    charts = []
    if base := found.baseline:
        apart = {run.label: window_differences(run, base) for run in found.runs if run is not base}
        title = f"NE of each window against {base.label}, in percent"
        note = (
            f"On the same examples; below 0 is better than {base.label}. "
            "The axis follows the runs that the legend shows."
        )
        note += _partial(found)
        charts += _window_charts("difference", title, apart, series, "+.3f", (0.0, ""), note)
    whole = {run.label: course_of(run.windows, attrgetter("lifetime_ne")) for run in found.runs}
    title = "NE of all examples so far"
    charts += _window_charts("lifetime-ne", title, whole, series, ".5f", best)
    courses, note = _courses(found, "ne"), SCORED + _partial(found)
    return charts + _window_charts(
        "window-ne", "NE of each window", courses, series, ".5f", best, note
    )


def _other_charts(found: OnePass, series: Sequence[Series]) -> list[Chart]:
    """What else is measured by window."""
    scored = SCORED + _partial(found)
    note = f"{scored} Sum of predicted probabilities over the number of positives: 1 is right."
    right, auc = _courses(found, "calibration"), _courses(found, "auc")
    title = "Calibration of each window"
    return [
        *_window_charts("calibration", title, right, series, ".3f", (1.0, ""), note),
        *_window_charts("auc", "AUC of each window", auc, series, ".4f", note=scored),
    ]


def _courses(found: OnePass, key: str) -> Courses:
    """A score of the whole windows of all runs."""
    return {run.label: course_of(whole_windows(run), attrgetter(key)) for run in found.runs}


def _partial(found: OnePass) -> str:
    """Which windows are not drawn, being shorter than the others."""
    left = [run.label for run in found.runs if len(whole_windows(run)) < len(run.windows)]
    who = "" if len(left) == len(found.runs) else f" of {enumerate_words(left)}"
    return f" The last window{who} is left out, having fewer examples." if left else ""


def _window_charts(
    name: str,
    title: str,
    courses: Courses,
    series: Sequence[Series],
    form: str,
    near: tuple[float, str] | None = None,
    note: str = SCORED,
) -> list[Chart]:
    """Lines over examples, with a level if it is not far from them; what settles sets the axis."""

    def show(value: float) -> str:
        return format(value, form).replace("-", "\N{MINUS SIGN}")

    if max(map(len, courses.values()), default=0) < 2:
        return []
    last = max(course[-1].at for course in courses.values() if course)
    spans = {run: _span(course, SETTLED * last) for run, course in courses.items() if course}
    ends = [end for span in spans.values() for end in span]
    levels: list[Spec] = []
    if near is not None and _is_near(near[0], ends):
        words = f"{near[1]}: {score(near[0])}" if near[1] else ""
        levels = level(near[0], words, below=True)
        spans = {run: [min(near[0], *span), max(near[0], *span)] for run, span in spans.items()}
    elif near is not None and near[1]:
        note += f" The {near[1]} level, {show(near[0])}, is off the axis."
    values = [point.value for course in courses.values() for point in course]
    return course_charts(
        name,
        title,
        courses,
        series,
        unit="examples",
        form=form,
        levels=levels,
        spans=spans,
        note=note + cut_off(spans, values, show),
    )


def _span(course: Sequence[Point], start: float) -> list[float]:
    """The ends of what a line is at from ``start`` on; of all of it, if it ends before."""
    values = [point.value for point in course if point.at > start]
    values = values or [point.value for point in course]
    return [min(values), max(values)]


def _is_near(value: float, known: Sequence[float]) -> bool:
    """Whether a level is no further from the values than they are from each other."""
    low, high = min(known), max(known)
    far = max(high - low, LEAST_SPAN)
    return low - far <= value <= high + far


def _rate_charts(found: OnePass, series: Sequence[Series]) -> list[Chart]:
    """What the rates that were tried came to."""
    rows: list[dict[str, Any]] = []
    spans = {}
    searched = [run for run in found.runs if len(run.search) > 1]
    for run in searched:
        own: list[dict[str, Any]] = [
            {"run": run.label, "lr": one.lr, "ne": one.train_ne}
            | {"test_ne": shown(one.test_ne, ne_score) or "not known"}
            | {"size": LARGE if one.lr == run.lr else SMALL}
            for one in run.search
            if one.train_ne is not None
        ]
        nes = [row["ne"] for row in own]
        if nes:
            spans[run.label] = [min(nes), min(max(nes), min(nes) + DEEPEST)]
        rows += own
    if not rows:
        return []
    limits = [limit for run in searched for limit in _rate_limits(run)]
    return [
        chart(
            "rates",
            "NE while training by learning rate",
            series,
            rows,
            axis("lr", "learning rate", log=True, grid=False),
            axis("ne"),
            lines(),
            points(sized=True),
            tips=[
                ("run", "optimizer", ""),
                ("lr", "learning rate", ".3~g"),
                ("ne", "NE while training", ".5f"),
                ("test_ne", "evaluation NE", ""),
            ],
            note=" ".join(["The large marker is the rate that was chosen.", *limits])
            + cut_off(spans, [row["ne"] for row in rows], ne_score),
            spans=spans,
        )
    ]


# ---- tables --------------------------------------------------------------------------------------


def _runs_table(found: OnePass) -> Table:
    """How good every run is, what it was asked, what it cost."""
    base = found.baseline
    columns = [
        Column("Evaluation NE", lambda run: run.test_ne, ne_score, min),
        Column(f"Against {base.label}, %" if base else "", found.difference, signed),
        Column("Evaluation AUC", lambda run: run.test_auc, score, max),
        Column("Calibration", lambda run: run.test_calibration, score, _nearest_to_one),
        Column("NE while training", lambda run: run.train_ne, ne_score, min),
        Column("Learning rate", lambda run: run.lr, "{:g}".format),
        Column("State, MB", lambda run: run.state_bytes, megabytes, min),
        Column("Examples/s", lambda run: run.speed, thousands, max),
    ]
    peaks = [run.peak_memory_bytes for run in found.runs if run.peak_memory_bytes]
    note = f"At its peak the whole process took {size(max(peaks))}." if peaks else ""
    return runs_table(found.results, columns, note)


def _nearest_to_one(values: Iterable[float]) -> float:
    """The best calibration."""
    return min(values, key=lambda value: abs(value - 1))


def _days_tables(found: OnePass) -> list[Table]:
    """NE of every day before it was learned, and of the evaluation days."""
    nes = {(run.label, day.day): day.ne for run in found.runs for day in run.days}
    sizes = {day.day: day.examples for run in found.runs for day in run.days}
    if not sizes:
        return []
    rows: list[list[str | None]] = [
        [day, shown(examples, thousands)]
        + [shown(nes.get((run.label, day)), ne_score) for run in found.runs]
        for day, examples in sizes.items()
    ]
    if found.is_evaluated:
        test = found.results.splits.get("test")
        scores = [shown(run.test_ne, ne_score) for run in found.runs]
        rows.append(["Evaluation", shown(test, thousands), *scores])
    note = "Each day was scored before it was learned; the evaluation examples never were learned."
    return [table(["Day", "Examples", *(run.label for run in found.runs)], rows, note=note)]


def _files_tables(found: OnePass) -> list[Table]:
    """What could not be read and was to be left out."""
    rows = [[file] for file in found.skipped]
    return [table(["File and reason"], rows, kind="settings")] if rows else []
