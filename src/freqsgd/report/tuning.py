"""What ``freqsgd tune`` adds to a page: how the search went, and which rates do well."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from freqsgd.documents.results import Study, Trial
from freqsgd.report.charts import (
    LARGE,
    SMALL,
    Chart,
    Series,
    axis,
    chart,
    cut_off,
    lines,
    points,
)
from freqsgd.report.page import Section
from freqsgd.report.parts import setting_name, setting_value
from freqsgd.report.results import Results, display_name
from freqsgd.report.tables import Table, shown, table
from freqsgd.report.wording import enumerate_words, ratio, score

CLOSE = 0.002  # validation AUC below the best of a sweep that still counts as good
DEEPEST = 0.03  # validation AUC below the best that is shown
FACTORS = (1 / 64, 1 / 16, 1 / 4, 1, 4, 16, 64)
AS_FACTOR = "datum.value < 1 ? '1/' + format(1 / datum.value, '~g') : format(datum.value, '~g')"


@dataclass(frozen=True)
class Search:
    """The search for one optimizer."""

    name: str  # for readers
    run: str  # label of the optimizer's first run, whose looks it has; its name if none ran
    study: Study

    @property
    def sweep(self) -> list[tuple[float, float | None]]:
        """Learning rates and their validation AUC, by rate."""
        return sorted((one.lr, one.val_auc) for one in self.study.lr_sweep if one.lr > 0)

    @property
    def best_trial(self) -> Trial | None:
        """The best trial, whose learning rate was varied in the sweep."""
        best = self.study.best
        if best is None or best.origin != "sweep":
            return best
        return next((one for one in self.study.trials if one.number == best.number), None)


@dataclass(frozen=True)
class GoodRange:
    """Learning rates around the best of a sweep that are nearly as good."""

    best: float  # validation AUC
    low: float
    high: float
    is_open: bool  # the smallest or the largest rate of the sweep is still good


def searches_of(results: Results) -> list[Search]:
    """Return the searches, one per optimizer; none if nothing was tuned."""
    labels = {run.optimizer: run.label for run in reversed(results.runs)}
    return [
        Search(display_name(study.optimizer), labels.get(study.optimizer, ""), study)
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
    drawn = [search for search in searches if search.run]
    charts = [*_progress_chart(drawn, series), *_sensitivity_chart(drawn, series)]
    return [
        Section("Tuning", charts, list(_notes(searches))),
        Section("Best settings", tables=[_settings_table(searches)]),
    ]


def _notes(searches: Sequence[Search]) -> Iterator[str]:
    """What the scores of the search are worth."""
    yield (
        "Settings are chosen by the best validation AUC of many trials. The more trials, the more "
        "of that is luck: compare optimizers by the test scores."
    )
    if failed := [search.name for search in searches if search.study.best is None]:
        yield f"No trial of {enumerate_words(failed)} came to its end."
    surpassed = [
        search.name
        for search in searches
        if (found := good_range(search.sweep)) and (trial := search.best_trial)
        if trial.value is not None and found.best > trial.value + CLOSE
    ]
    if surpassed:
        yield (
            f"The sweep found a learning rate for {enumerate_words(surpassed)} that does clearly "
            "better than any trial: more trials would help."
        )


# ---- charts --------------------------------------------------------------------------------------


def _progress_chart(searches: Sequence[Search], series: Sequence[Series]) -> Iterator[Chart]:
    """Best validation AUC by the number of trials, with markers where it rises."""
    rows: list[dict[str, Any]] = []
    for search in searches:
        best = None
        for trial in search.study.trials:
            ended = trial.state == "complete"
            rises = ended and trial.value is not None and (best is None or trial.value > best)
            best = trial.value if rises else best
            words = [shown(trial.value, score), None if ended else f"({trial.state})"]
            row = {"run": search.run, "trials": trial.number + 1, "best": best}
            rows.append({**row, "trial": " ".join(filter(None, words)), "size": SMALL * rises})
    bests = [row["best"] for row in rows if row["best"] is not None]
    if not bests:
        return
    spans = _spans((row["run"], row["best"]) for row in rows if row["best"] is not None)
    yield chart(
        "search",
        "Best validation AUC so far",
        series,
        rows,
        axis("trials", "trials", whole=True, grid=False),
        axis("best"),
        lines(interpolate="step-after"),
        points(sized=True),
        tips=[
            ("run", "optimizer", ""),
            ("trials", "trial", ".0f"),
            ("best", "best so far", ".4f"),
            ("trial", "this trial", ""),
        ],
        note="Every optimizer has the same number of trials."
        + cut_off(spans, bests, "{:.3f}".format),
        spans=spans,
    )


def _sensitivity_chart(searches: Sequence[Search], series: Sequence[Series]) -> Iterator[Chart]:
    """Validation AUC by the learning rate over the best trial's; trials as faint points."""
    rows: list[dict[str, Any]] = []
    cloud: list[dict[str, Any]] = []
    failed = []
    for search in searches:
        best, base = search.study.best, search.best_trial and search.best_trial.lr
        if best is None or not base:
            continue
        for lr, value in search.sweep:
            if value is None:
                failed.append(f"{search.name} at {lr:.3g}")
                continue
            row = {"run": search.run, "x": lr / base, "y": value, "lr": lr}
            rows.append({**row, "size": LARGE if lr == best.lr else SMALL})
        cloud += [
            {"run": search.run, "x": trial.lr / base, "y": trial.value}
            for trial in search.study.trials
            if trial.lr is not None and trial.value is not None
        ]
    if not rows:
        return
    spans = _spans((row["run"], row["y"]) for row in rows)
    x = axis(
        "x",
        "learning rate, times the best trial's",
        log=True,
        grid=False,
        domain=[10**-1.35, 10**1.35],
        values=FACTORS,
    )
    x["axis"] |= {"labelExpr": AS_FACTOR}
    yield chart(
        "learning-rates",
        "Sensitivity to the learning rate",
        series,
        rows,
        x,
        axis("y"),
        points(cloud, opacity=0.35),
        lines(),
        points(sized=True),
        tips=[
            ("run", "optimizer", ""),
            ("lr", "learning rate", ".3~g"),
            ("y", "validation AUC", ".4f"),
        ],
        note="Lines: all other settings as in the best trial; the large marker is the best. "
        "Faint: the trials, where other settings differ too."
        + (f" Diverged: {enumerate_words(failed)}." if failed else "")
        + cut_off(spans, [row["y"] for row in (*rows, *cloud)], "{:.3f}".format),
        spans=spans,
    )


def _spans(points: Iterable[tuple[str, float]]) -> Mapping[str, list[float]]:
    """The ends of each run's values that are shown: what is far below the best is cut off."""
    values: dict[str, list[float]] = {}
    for run, value in points:
        values.setdefault(run, []).append(value)
    bottom = max(map(max, values.values())) - DEEPEST
    return {run: [max(min(own), bottom), max(*own, bottom)] for run, own in values.items()}


# ---- tables --------------------------------------------------------------------------------------


def _settings_table(searches: Sequence[Search]) -> Table:
    """What is best for each optimizer, which rates do well, and how the trials ended."""
    bests = [search.study.best for search in searches]
    params = [best.params if best else {} for best in bests]
    rows: list[list[str | None]] = [
        [
            setting_name(key),
            *(setting_value(key, own[key]) or "none" if key in own else None for own in params),
        ]
        for key in dict.fromkeys(key for own in params for key in own)
    ]
    rows.append(["Good learning rates", *map(_rates_words, searches)])
    rows.append(["Validation AUC", *(shown(best.value, score) if best else None for best in bests)])
    rows.append(["Trials", *map(_count_words, searches)])
    note = f"Good learning rates: around the best of the sweep, at most {CLOSE} in AUC worse."
    head = ["Setting", *(search.name for search in searches)]
    return table(head, rows, kind="settings", note=note)


def _rates_words(search: Search) -> str | None:
    """How wide the good range of learning rates is."""
    found = good_range(search.sweep)
    if found is None:
        return None
    least = "at least " if found.is_open else ""
    factor = ratio(found.high / found.low)
    return f"{found.low:.3g} to {found.high:.3g} (a factor of {least}{factor})"


def _count_words(search: Search) -> str:
    """How many trials ended how."""
    states = [trial.state for trial in search.study.trials]
    return enumerate_words(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
