"""What a search shows: ``freqsgd tune`` adds it to ``results.json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from freqsgd.documents.results import SweepPoint, Trial
from freqsgd.report.old.results import Results, display_name
from freqsgd.report.old.wording import enumerate_words, ratio

CLOSE = 0.002  # validation AUC below the best of a sweep that still counts as good


@dataclass(frozen=True)
class Study:
    """The search for one optimizer."""

    name: str  # for readers
    place: int | None  # of the optimizer's first run, whose looks it has
    trials: tuple[Trial, ...]
    best: Trial | None  # settings, with the number of the trial that they are from
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


@dataclass(frozen=True)
class GoodRange:
    """Learning rates around the best of a sweep that are nearly as good."""

    best: float  # validation AUC
    low: float
    high: float
    open_below: bool  # the smallest rate of the sweep is still good
    open_above: bool

    @property
    def factor(self) -> float:
        """How many times the smallest is the largest."""
        return self.high / self.low


def read_studies(results: Results) -> list[Study]:
    """The searches, one per optimizer; none if nothing was tuned."""
    places: dict[str, int] = {}
    for place, run in enumerate(results.runs):
        places.setdefault(run.optimizer, place)
    return [
        Study(
            display_name(study.optimizer),
            places.get(study.optimizer),
            study.trials,
            study.best,
            tuple((one.lr, one.val_auc) for one in sorted(study.lr_sweep, key=rate) if one.lr > 0),
        )
        for study in (results.tuning.studies if results.tuning else ())
    ]


def rate(point: SweepPoint) -> float:
    """Its learning rate."""
    return point.lr


def good_range(sweep: Sequence[tuple[float, float | None]]) -> GoodRange | None:
    """The rates next to the best one, on both sides, up to the first that is not close to it."""
    known = [(value, place) for place, (_, value) in enumerate(sweep) if value is not None]
    if not known:
        return None
    best, at = max(known)

    def close(point: tuple[float, float | None]) -> bool:
        return point[1] is not None and point[1] >= best - CLOSE

    below = len(list(takewhile(close, reversed(sweep[:at]))))
    above = len(list(takewhile(close, sweep[at + 1 :])))
    return GoodRange(
        best,
        low=sweep[at - below][0],
        high=sweep[at + above][0],
        open_below=at == below,
        open_above=at + above == len(sweep) - 1,
    )


def tuned(results: Results) -> str:
    """How much was searched, and what the scores of the search are worth."""
    studies = read_studies(results)
    if not studies:
        return ""
    counts = {len(study.trials) for study in studies}
    each = f"{counts.pop()} trials" if len(counts) == 1 else "Trials"
    sentences = [
        f"{each} of {enumerate_words(study.name for study in studies)}, each chosen by the best "
        "validation AUC. The more trials, the more of that is luck: compare by the test scores."
    ]
    failed = [study.name for study in studies if study.best is None]
    if failed:
        sentences.append(f"No trial of {enumerate_words(failed)} came to its end.")
    surpassed = [study.name for study in studies if is_surpassed(study)]
    if surpassed:
        sentences.append(
            f"The sweep found a learning rate for {enumerate_words(surpassed)} that does clearly "
            "better than any trial: more trials would help."
        )
    return " ".join(sentences)


def is_surpassed(study: Study) -> bool:
    """Whether a rate of the sweep is clearly better than the best trial."""
    found, trial = good_range(study.sweep), study.best_trial
    if found is None or trial is None or trial.value is None:
        return False
    return found.best > trial.value + CLOSE


def good_rates(results: Results) -> str:
    """How wide each optimizer's good range of learning rates is, the widest first."""
    found = [(good, study) for study in read_studies(results) if (good := good_range(study.sweep))]
    if not found:
        return ""
    found.sort(key=lambda pair: -pair[0].factor)
    told = [f"{study.name} {width(good)}" for good, study in found]
    return (
        f"With all else at its best, the validation AUC stays within {CLOSE} of the best: "
        f"{'; '.join(told)}."
    )


def width(good: GoodRange) -> str:
    """The factor, the ends, and whether the good range goes on where the sweep ends."""
    sides = {"below": good.open_below, "above": good.open_above}
    ends = [side for side, is_open in sides.items() if is_open]
    beyond = f", and may go on {enumerate_words(ends)}" if ends else ""
    if good.low == good.high:
        return f"only at {good.low:.3g}{beyond}"
    return f"over a factor of {factor_words(good)}, {good.low:.3g} to {good.high:.3g}{beyond}"


def factor_words(good: GoodRange) -> str:
    """How many times the smallest good rate is the largest."""
    edge = good.open_below or good.open_above
    return f"{'at least ' if edge else ''}{ratio(good.factor)}"
