"""What ``freqsgd tune`` adds to a page: how the search went, and which rates do well."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from freqsgd.documents.results import BestTrial, Trial
from freqsgd.report.charts import (
    LARGE,
    SMALL,
    Chart,
    Series,
    axis,
    cut_off,
    lines,
    plot,
    points,
)
from freqsgd.report.page import Section
from freqsgd.report.results import Results, display_name
from freqsgd.report.tables import Table, shown, table
from freqsgd.report.wording import enumerate_words, ratio, score

CLOSE = 0.002  # validation AUC below the best of a sweep that still counts as good
DEEPEST = 0.03  # validation AUC below the best that is shown
FACTORS = (1 / 64, 1 / 16, 1 / 4, 1, 4, 16, 64)
AS_FACTOR = "datum.value < 1 ? '1/' + format(1 / datum.value, '~g') : format(datum.value, '~g')"
SETTING_NAMES = {
    "lr": "Learning rate",
    "decay_epochs": "It falls to 0 over epochs",
    "max_lr_ratio": "Cap on a token's rate, times it",
    "linear_lr_scale": "Rate of linear weights, times it",
    "weight_decay": "Weight decay",
    "typical_decay": "Weight decay of a typical token",
    "weight_decay_power": "Its power of frequency",
    "linear_decay_scale": "Decay of linear weights, times it",
    "init_scale": "Scale of the start",
}
LEFT_OUT = {"decay_epochs": "constant"}


@dataclass(frozen=True)
class Search:
    """The search for one optimizer."""

    name: str  # for readers
    run: str | None  # label of the optimizer's first run, whose looks it has
    trials: tuple[Trial, ...]
    best: BestTrial | None  # settings, with the number of the trial that they are from
    sweep: tuple[tuple[float, float | None], ...]  # learning rate, validation AUC; by rate

    @property
    def from_sweep(self) -> bool:
        """Whether the best settings have a learning rate of the sweep, not that of the trial."""
        return self.best is not None and self.best.origin == "sweep"

    @property
    def params(self) -> Mapping[str, Any]:
        """The best settings."""
        return {} if self.best is None else self.best.params

    @property
    def best_trial(self) -> Trial | None:
        """The best trial, whose learning rate was varied in the sweep."""
        if self.best is None or not self.from_sweep:
            return self.best
        return next((one for one in self.trials if one.number == self.best.number), None)

    @property
    def so_far(self) -> list[tuple[int, float]]:
        """The best validation AUC after each trial, from the first that came to its end."""
        found: list[tuple[int, float]] = []
        for trial in self.trials:
            best = found[-1][1] if found else None
            if trial.state == "complete" and trial.value is not None:
                best = trial.value if best is None else max(best, trial.value)
            if best is not None:
                found.append((trial.number + 1, best))
        return found


@dataclass(frozen=True)
class GoodRange:
    """Learning rates around the best of a sweep that are nearly as good."""

    best: float  # validation AUC
    low: float
    high: float
    is_open: bool  # the smallest or the largest rate of the sweep is still good

    @property
    def factor(self) -> str:
        """How many times the smallest is the largest."""
        return f"{'at least ' if self.is_open else ''}{ratio(self.high / self.low)}"


def searches_of(results: Results) -> list[Search]:
    """Return the searches, one per optimizer; none if nothing was tuned."""
    labels: dict[str, str] = {}
    for run in results.runs:
        labels.setdefault(run.optimizer, run.label)
    return [
        Search(
            display_name(study.optimizer),
            labels.get(study.optimizer),
            study.trials,
            study.best,
            tuple(sorted((one.lr, one.val_auc) for one in study.lr_sweep if one.lr > 0)),
        )
        for study in (results.tuning.studies if results.tuning else ())
    ]


def good_range(sweep: Sequence[tuple[float, float | None]]) -> GoodRange | None:
    """Return the rates next to the best one, on both sides, up to the first that is not close."""
    known = [(value, place) for place, (_, value) in enumerate(sweep) if value is not None]
    if not known:
        return None
    best, at = max(known)

    def close(point: tuple[float, float | None]) -> bool:
        return point[1] is not None and point[1] >= best - CLOSE

    below = len(list(takewhile(close, reversed(sweep[:at]))))
    above = len(list(takewhile(close, sweep[at + 1 :])))
    is_open = at == below or at + above == len(sweep) - 1
    return GoodRange(best, low=sweep[at - below][0], high=sweep[at + above][0], is_open=is_open)


def tuning_sections(results: Results, series: Sequence[Series]) -> list[Section]:
    """Return what was searched and found; nothing if nothing was tuned."""
    searches = searches_of(results)
    if not searches:
        return []
    charts = _progress_chart(searches, series), _sensitivity_chart(searches, series)
    return [
        Section("Tuning", [chart for chart in charts if chart], list(_notes(searches))),
        Section("Learning rates that do well", tables=[_rates_table(searches)]),
        Section("Best settings", tables=[_settings_table(searches)]),
    ]


def _notes(searches: Sequence[Search]) -> Iterator[str]:
    """What the scores of the search are worth."""
    counts = {len(search.trials) for search in searches}
    each = f"{counts.pop()} trials" if len(counts) == 1 else "Trials"
    yield (
        f"{each} of {enumerate_words(search.name for search in searches)}, each chosen by the best "
        "validation AUC. The more trials, the more of that is luck: compare by the test scores."
    )
    failed = [search.name for search in searches if search.best is None]
    if failed:
        yield f"No trial of {enumerate_words(failed)} came to its end."
    surpassed = [search.name for search in searches if _is_surpassed(search)]
    if surpassed:
        yield (
            f"The sweep found a learning rate for {enumerate_words(surpassed)} that does clearly "
            "better than any trial: more trials would help."
        )


def _is_surpassed(search: Search) -> bool:
    """Whether a rate of the sweep is clearly better than the best trial."""
    found, trial = good_range(search.sweep), search.best_trial
    if found is None or trial is None or trial.value is None:
        return False
    return found.best > trial.value + CLOSE


# ---- charts --------------------------------------------------------------------------------------


def _progress_chart(searches: Sequence[Search], series: Sequence[Series]) -> Chart | None:
    """Best validation AUC by the number of trials, with markers where it rises."""
    rows: list[dict[str, Any]] = [
        {"run": search.run, "trials": at, "best": best, "size": SMALL * (best != before)}
        for search in searches
        if search.run is not None
        for (at, best), before in zip(
            search.so_far, [None, *(value for _, value in search.so_far)], strict=False
        )
    ]
    if not rows:
        return None
    told = [
        f"{search.name} {score(line[0][1])} at first, {score(line[-1][1])} after {line[-1][0]} "
        "trials"
        for search in searches
        if (line := search.so_far)
    ]
    spans = _spans({"run": row["run"], "y": row["best"]} for row in rows)
    tips = [("run", "optimizer", ""), ("best", "best so far", ".4f"), ("trials", "trials", "d")]
    spec = plot(
        series,
        rows,
        axis("trials", "trials", whole=True, grid=False),
        axis("best"),
        lines(interpolate="step-after"),
        points(sized=True),
        tips=tips,
        spans=spans,
    )
    return Chart(
        "search",
        title="Best validation AUC so far",
        spec=spec,
        description=f"Line chart of the best validation AUC: {'; '.join(told)}.",
        note="Every optimizer has the same number of trials."
        + cut_off(spans, [row["best"] for row in rows], "{:.3f}".format),
        table=_search_table(searches),
    )


def _sensitivity_chart(searches: Sequence[Search], series: Sequence[Series]) -> Chart | None:
    """Validation AUC by the learning rate over the best trial's; trials as faint points."""
    rows: list[dict[str, Any]] = []
    cloud: list[dict[str, Any]] = []
    for search in searches:
        base = None if search.best_trial is None else search.best_trial.lr
        swept = [(lr, value) for lr, value in search.sweep if value is not None]
        if search.best is None or search.run is None or not base or not swept:
            continue
        best = search.best.lr
        rows += [
            {"run": search.run, "x": lr / base, "y": value, "lr": lr}
            | {"size": LARGE if lr == best else SMALL}
            for lr, value in swept
        ]
        cloud += [
            {"run": search.run, "x": trial.lr / base, "y": trial.value}
            for trial in search.trials
            if trial.lr is not None and trial.value is not None
        ]
    if not rows:
        return None
    spans = _spans(rows)
    x = axis(
        "x",
        "learning rate, times the best trial's",
        log=True,
        grid=False,
        domain=[10**-1.35, 10**1.35],
        values=FACTORS,
    )
    x["axis"] |= {"labelExpr": AS_FACTOR}
    told = "; ".join(
        f"{search.name} "
        + ", ".join(
            f"{shown(value, score) or 'diverged'} at {lr:.3g}" for lr, value in search.sweep
        )
        for search in searches
        if search.sweep
    )
    spec = plot(
        series,
        rows,
        x,
        axis("y"),
        points(cloud, opacity=0.35),
        lines(),
        points(sized=True),
        tips=[("run", "optimizer", ""), ("y", "validation AUC", ".4f"), ("lr", "lr", ".3~g")],
        spans=spans,
    )
    return Chart(
        "learning-rates",
        title="Sensitivity to the learning rate",
        spec=spec,
        description="Line chart of validation AUC by learning rate, other settings as in the "
        f"best trial: {told}.",
        note="Lines: all other settings as in the best trial; the large marker is the best. "
        "Faint: the trials, where other settings differ too."
        + cut_off(spans, [row["y"] for row in (*rows, *cloud)], "{:.3f}".format),
        table=table(
            ["Optimizer", "Learning rate", "Validation AUC"],
            [
                [search.name, f"{lr:.3g}", shown(value, score) or "diverged"]
                for search in searches
                for lr, value in search.sweep
            ],
        ),
    )


def _spans(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[float]]:
    """The ends of each run's values that are shown: what is far below the best is cut off."""
    values: dict[str, list[float]] = {}
    for row in rows:
        values.setdefault(row["run"], []).append(row["y"])
    bottom = max(map(max, values.values())) - DEEPEST
    return {run: [max(min(own), bottom), max(*own, bottom)] for run, own in values.items()}


# ---- tables --------------------------------------------------------------------------------------


def _search_table(searches: Sequence[Search]) -> Table:
    """Every trial, and the best so far."""
    names = [search.name for search in searches]
    trials = {(search.name, trial.number): trial for search in searches for trial in search.trials}
    bests = {(search.name, at): value for search in searches for at, value in search.so_far}
    head = ["Trial", *(f"{name}{of}" for name in names for of in ("", ", best so far"))]
    rows: list[list[str | None]] = []
    for number in sorted({number for _, number in trials}):
        rows.append([str(number + 1)])
        for name in names:
            trial = trials.get((name, number))
            value = None if trial is None else shown(trial.value, score)
            if trial is not None and trial.state != "complete":
                value = f"{value} (stopped)" if value else trial.state
            rows[-1] += [value, shown(bests.get((name, number + 1)), score)]
    return table(head, rows)


def _rates_table(searches: Sequence[Search]) -> Table:
    """How wide the good range of each optimizer is."""
    rows: list[list[str | None]] = []
    for search in searches:
        found = good_range(search.sweep)
        if found is None:
            rows.append([search.name, None, None, None, None])
        else:
            ends = [f"{found.low:.3g}", f"{found.high:.3g}"]
            rows.append([search.name, found.factor, *ends, score(found.best)])
    head = ["Optimizer", "Factor", "Good from", "Good to", "Best validation AUC"]
    note = f"Good is a rate between the best and the first on each side that is over {CLOSE} worse."
    return table(head, rows, note=note)


def _settings_table(searches: Sequence[Search]) -> Table:
    """What is best for each optimizer, and how the trials ended."""
    head = ["Setting", *(search.name for search in searches)]
    rows: list[list[str | None]] = [
        [title, *(_setting(search, name) for search in searches)]
        for name, title in SETTING_NAMES.items()
        if any(name in search.params for search in searches)
    ]
    rows.append(["Validation AUC", *(_best_words(search) for search in searches)])
    rows.append(["Trials", *(_count_words(search) for search in searches)])
    return table(head, rows, kind="settings")


def _setting(search: Search, name: str) -> str | None:
    """One of the best settings."""
    value = search.params.get(name)
    if value is None:
        return LEFT_OUT.get(name, "none") if name in search.params else None
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _best_words(search: Search) -> str | None:
    """The best score, and where it was reached."""
    if search.best is None or search.best.value is None:
        return None
    place = "in the sweep around" if search.from_sweep else "in"
    return f"{score(search.best.value)} {place} trial {search.best.number + 1}"


def _count_words(search: Search) -> str:
    """How many trials ended how."""
    ways = (("complete", "to the end"), ("pruned", "stopped early"), ("diverged", "diverged"))
    counts = [(sum(trial.state == state for trial in search.trials), way) for state, way in ways]
    return enumerate_words(f"{count} {way}" for count, way in counts if count)
