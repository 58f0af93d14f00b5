"""The page of runs that saw every example of a stream once, set against a baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from freqsgd.documents.results import Tried, Window
from freqsgd.report.charts import (
    LARGE,
    SMALL,
    Chart,
    Series,
    Spec,
    axis,
    cut_off,
    level,
    lines,
    plot,
    points,
    series_of,
)
from freqsgd.report.page import Page, Section, Tile, opening
from freqsgd.report.parts import (
    OPTION_NAMES,
    Point,
    course_charts,
    made_with,
    runs_table,
    settings_section,
    state_charts,
    state_tile,
    title_of,
    trained_words,
)
from freqsgd.report.results import Results, Run, read_results
from freqsgd.report.tables import Column, Table, shown, table
from freqsgd.report.wording import (
    count_of,
    enumerate_words,
    megabytes,
    score,
    size,
    small_number,
    thousands,
)

BASELINE = "adagrad"
CUT_SHORT = ("diverged", "interrupted")
MEANING = (
    "NE is the mean loss over that of always predicting the share of positive labels: "
    "less is better, 1 is no better than that."
)
PASS_NAMES = {
    "window": "Examples of a window",
    "checkpoint_examples": "Examples between checkpoints",
    "evaluation_days": "Days for evaluation",
}
SCORED = "Each batch was scored before it was learned."
LEAST_WINDOWS = 3  # that make a line over the run
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


def course_of(run: Run, of: Callable[[Window], float | None]) -> list[Point]:
    """Return a number of the windows of a run, where it is known."""
    return [
        Point(window.examples, value, window.seconds)
        for window in run.windows
        if (value := of(window)) is not None
    ]


def window_differences(run: Run, base: Run) -> list[Point]:
    """Return how many percent the NE of each window is above the baseline's of its examples."""
    bases = {window.examples: window.ne for window in base.windows}
    return course_of(run, lambda each: _percent_apart(each.ne, bases.get(each.examples)))


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
    results, series = found.results, series_of(found.runs)
    stream = results.dataset.name or "a stream"
    first = f"{trained_words(results, f'in one pass over {stream}')}."
    sentences, notes = opening([first, MEANING], list(_caveats(found)))
    few = _few_windows(found)
    data = " ".join(filter(None, (_examples_words(found), _tables_words(found))))
    return Page(
        f"{title_of(results)}, in one pass",
        _tiles(found),
        sentences,
        [
            Section("NE over the run", [] if few else ne_charts(found, series), remarks=few),
            Section("All runs", tables=[_runs_table(found)]),
            Section("Read with care", remarks=notes),
            Section("NE by day", tables=_days_tables(found)),
            Section("Learning rates", _rate_charts(found, series)),
            Section(
                "Calibration and AUC over the run", [] if few else _other_charts(found, series)
            ),
            Section("Optimizer state", state_charts(results, series)),
            Section("Files left out", tables=_files_tables(found)),
            settings_section(results, data, "Examples of a batch", names=OPTION_NAMES | PASS_NAMES),
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
        state_tile(found.of_optimizer("cfsgd"), found.baseline),
        _speed_tile(found),
    )
    return [tile for tile in tiles if tile is not None]


def _lowest_tile(found: OnePass) -> Tile | None:
    """The lowest NE, and whose it is."""
    ranked = found.ranking
    if not ranked:
        return None
    first = [run.label for ne, run in ranked if ne == ranked[0][0]]
    note = enumerate_words(first)
    if len(first) < len(ranked):
        ne, run = ranked[len(first)]
        note += f"; then {run.label} with {ne_score(ne)}"
    return Tile(f"Lowest {found.ne_name}", ne_score(ranked[0][0]), note)


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
    learned = "" if run.examples is None else f"{thousands(run.examples)} in all; "
    return Tile(f"Examples/s of {run.label}", thousands(run.speed), f"{learned}reading included")


def _examples_words(found: OnePass) -> str:
    """How many examples there are of what, and how they were learned."""
    results = found.results
    days = results.dataset.days
    of_days = f" of {count_of(len(days), 'day')}" if days else ""
    train = results.splits.get("train") or max(run.examples or 0 for run in found.runs)
    if not train:
        return ""
    sizes = sorted({run.batch_size for run in found.runs if run.batch_size is not None})
    batch = f" of {enumerate_words(map(thousands, sizes))}" if sizes else ""
    test = results.splits.get("test")
    kept = f"; {thousands(test)} at the end were kept for evaluation" if test else ""
    return (
        f"Of a stream{of_days}, {thousands(train)} examples were learned once, in batches{batch}, "
        f"each batch scored before it was learned{kept}."
    )


def _tables_words(found: OnePass) -> str:
    """How many features there are, and how large their tables."""
    dataset = found.results.dataset
    if dataset.fields is None or dataset.tokens is None:
        return ""
    filled = ", to which tokens are hashed" if dataset.encoding == "hash" else ""
    return (
        f"An example has {count_of(dataset.fields, 'feature')}; "
        f"their tables have {count_of(dataset.tokens, 'row')}{filled}."
    )


# ---- what to read with care ----------------------------------------------------------------------


def _caveats(found: OnePass) -> Iterator[str]:
    """What limits what the numbers can show."""
    yield from filter(None, map(_ending, found.runs))
    if len(found.runs) > 1:
        yield (
            "Each optimizer ran once at the rate shown, on the same examples in the same order: "
            "another start ends a little apart, and small differences do not rank them."
        )
    yield from _rates_chosen(found)
    dropped = max(run.dropped or 0 for run in found.runs)
    if dropped:
        yield f"Malformed rows left out: {thousands(dropped)}."
    if found.skipped:
        yield f"Files left out, listed below: {thousands(len(found.skipped))}."


def _ending(run: Run) -> str:
    """What is unusual about how a run ended."""
    seen = run.examples or (run.windows[-1].examples if run.windows else 0)
    so_far = f"after {count_of(seen, 'example')}" if seen else "at its start"
    if run.stopped == "diverged":
        reason = f": {run.error.rstrip('.')}" if run.error else ""
        return f"{run.label} diverged {so_far}{reason}."
    if run.stopped == "interrupted":
        return f"{run.label} was interrupted {so_far}."
    return ""


def _rates_chosen(found: OnePass) -> Iterator[str]:
    """How rates were chosen."""
    searched = _with_rates(found)
    if not searched:
        return
    counts = {len(run.search) for run in searched}
    tried = f"{small_number(counts.pop())} rates" if len(counts) == 1 else "several rates"
    everyone = len(searched) == len(found.runs)
    who = "Each optimizer" if everyone else enumerate_words(run.label for run in searched)
    yield (
        f"{who} is shown at the best of {tried}: the one of lowest NE while training; "
        "the evaluation examples play no part."
    )


def _with_rates(found: OnePass) -> list[Run]:
    """Runs whose rate was chosen among several."""
    return [run for run in found.runs if len(run.search) > 1]


def _rate_limits(found: OnePass) -> Iterator[str]:
    """Where a better rate may lie, and which rates diverged."""
    searched = _with_rates(found)
    edges = [f"{run.label} ({edge_words(run)})" for run in searched if run.search_edge]
    if edges:
        yield (
            "The best lies at the end of what was tried, so that a better one may lie beyond: "
            f"{enumerate_words(edges)}."
        )
    failed = [
        f"{run.label} at {one.lr:.3g}"
        for run in searched
        for one in run.search
        if one.train_ne is None
    ]
    if failed:
        yield f"Diverged: {enumerate_words(failed)}."


def edge_words(run: Run) -> str:
    """Return at which end of the rates the best one is."""
    end = "smallest" if run.lr == run.search[0].lr else "largest"
    return f"the {end}" if run.lr is None else f"the {end}, {run.lr:.3g}"


# ---- charts --------------------------------------------------------------------------------------


def _few_windows(found: OnePass) -> list[str]:
    """Why nothing is drawn over the run, if there are too few windows for lines."""
    most = max(len(run.windows) for run in found.runs)
    if not 0 < most < LEAST_WINDOWS:
        return []
    return [
        f"With {count_of(most, 'window')} there are no lines of NE, calibration and AUC to draw: "
        "a smaller --window gives more."
    ]


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
        charts += _window_charts("difference", title, apart, series, "+.3f", (0.0, ""), note)
    for name, title, key in (
        ("lifetime-ne", "NE of all examples so far", "lifetime_ne"),
        ("window-ne", "NE of each window", "ne"),
    ):
        charts += _window_charts(name, title, _courses(found, key), series, ".5f", best)
    return charts


def _other_charts(found: OnePass, series: Sequence[Series]) -> list[Chart]:
    """What else is measured by window."""
    note = f"{SCORED} Sum of predicted probabilities over the number of positives: 1 is right."
    title = "Calibration of each window"
    right = _courses(found, "calibration")
    auc = _courses(found, "auc")
    return [
        *_window_charts("calibration", title, right, series, ".3f", (1.0, ""), note),
        *_window_charts("auc", "AUC of each window", auc, series, ".4f"),
    ]


def _courses(found: OnePass, key: str) -> Courses:
    """A score of the windows of all runs."""
    return {run.label: course_of(run, attrgetter(key)) for run in found.runs}


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

    if not any(courses.values()):
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
        show=show,
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
    for run in found.runs:
        known = [(one.lr, one.train_ne) for one in run.search if one.train_ne is not None]
        if len(run.search) < 2 or not known:
            continue
        best = min(ne for _, ne in known)
        spans[run.label] = [best, min(max(ne for _, ne in known), best + DEEPEST)]
        rows += [
            {"run": run.label, "lr": lr, "ne": ne, "size": LARGE if lr == run.lr else SMALL}
            for lr, ne in known
        ]
    if not rows:
        return []
    told = [
        f"{run.label} "
        + ", ".join(
            f"{shown(one.train_ne, ne_score) or 'none'} at {one.lr:.3g}" for one in run.search
        )
        for run in found.runs
        if run.search
    ]
    cells = [
        [
            run.label,
            f"{one.lr:.4g}",
            shown(one.train_ne, ne_score) or _failure(one),
            shown(one.test_ne, ne_score),
        ]
        for run in found.runs
        for one in run.search
    ]
    head = ["Optimizer", "Learning rate", "NE while training", "Evaluation NE"]
    notes = ["The large marker is the rate that was chosen.", *_rate_limits(found)]
    spec = plot(
        series,
        rows,
        axis("lr", "learning rate", log=True, grid=False),
        axis("ne"),
        lines(),
        points(sized=True),
        tips=[("run", "optimizer", ""), ("ne", "NE", ".5f"), ("lr", "lr", ".3~g")],
        spans=spans,
    )
    return [
        Chart(
            "rates",
            title="NE while training by learning rate",
            spec=spec,
            description=f"Line chart of NE while training by learning rate: {'; '.join(told)}.",
            note=" ".join(notes) + cut_off(spans, [row["ne"] for row in rows], ne_score),
            table=table(head, cells),
        )
    ]


def _failure(one: Tried) -> str:
    """What became of a rate without NE."""
    return "diverged" if one.error is None else f"diverged: {one.error}"


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
