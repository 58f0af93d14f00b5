"""Runs as reports tell of them: told apart by name, measured, and set beside each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any, NamedTuple

from msgspec.structs import asdict

from freqsgd.documents import read_document
from freqsgd.documents import results as content
from freqsgd.optimizers import OPTIMIZERS
from freqsgd.recommender.models import MODELS
from freqsgd.report.wording import score

NAMES = {
    **{name: facts.label for name, facts in OPTIMIZERS.items()},
    "sbcd": "SBCD",
    **{name: model.title for name, model in MODELS.items()},
    "cbow": "CBOW",
    "skipgram": "Skip-gram",
}

Epoch = content.Epoch


class Run(content.Run, frozen=True, kw_only=True):
    """A run with its names for readers."""

    family: str  # of its optimizer, rate and decay
    label: str  # the same with what tells runs of a family apart, the seed: unique


class Results(content.Results, frozen=True):
    """All runs, and what they have in common."""

    runs: tuple[Run, ...]


def display_name(name: str) -> str:
    """Return what an optimizer or a model is called in prose."""
    return NAMES.get(name, name)


def read_results(document: Mapping[str, Any]) -> Results:
    """Return the content of a ``results.json``."""
    found = read_document(document, content.Results, "results.json")
    named = zip(found.runs, names(found.runs), strict=True)
    runs = tuple(Run(**asdict(run), family=family, label=label) for run, (family, label) in named)
    return Results(**{**asdict(found), "runs": runs})


def names(runs: tuple[content.Run, ...]) -> list[tuple[str, str]]:
    """Return family and label of each run: the optimizer, and what differs among its runs."""
    parts: list[tuple[str, ...]] = [(display_name(run.optimizer),) for run in runs]
    parts = told_apart(parts, [f"lr {run.lr}" for run in runs])
    families = told_apart(parts, [f"decay {run.weight_decay}" for run in runs])
    parts = told_apart(families, [f"seed {run.seed}" for run in runs])
    seen: Counter[tuple[str, ...]] = Counter()
    orders = []
    for name in parts:
        seen[name] += 1
        orders.append(f"run {seen[name]}")
    labels = told_apart(parts, orders)
    return [(written(one), written(other)) for one, other in zip(families, labels, strict=True)]


def told_apart(parts: list[tuple[str, ...]], details: list[str]) -> list[tuple[str, ...]]:
    """Return names, with a detail more where runs of the same name differ in it."""
    kinds: dict[tuple[str, ...], set[str]] = {}
    for name, detail in zip(parts, details, strict=True):
        kinds.setdefault(name, set()).add(detail)
    return [
        (*name, detail) if len(kinds[name]) > 1 else name
        for name, detail in zip(parts, details, strict=True)
    ]


def written(parts: tuple[str, ...]) -> str:
    """Return a name with its details in brackets."""
    name, *details = parts
    return f"{name} ({', '.join(details)})" if details else name


# ---- measures ------------------------------------------------------------------------------------

CLASSES = ("head", "torso", "tail")


@dataclass(frozen=True)
class Scale:
    """A name, and which values are better."""

    name: str
    higher_is_better: bool

    def gain(self, value: float, over: float = 0.0) -> float:
        """Return how much better ``value`` is: negative if it is worse."""
        return value - over if self.higher_is_better else over - value


@dataclass(frozen=True)
class Metric(Scale):
    """A measure of an epoch."""

    key: str  # in an epoch

    def of(self, epoch: Epoch) -> float | None:
        """Return its value in an epoch."""
        value: float | None = getattr(epoch, self.key)
        return value


@dataclass(frozen=True)
class Measure(Scale):
    """A measure of a whole run."""

    of: Callable[[Run], float | None]
    show: Callable[[float], str] = score
    metric: Metric | None = None  # of the epoch that was kept, if it is that


@dataclass(frozen=True)
class Breakdown:
    """A test score by how frequent the tokens are."""

    key: str  # in a run
    name: str  # of its chart
    title: str
    score: str  # what it is: AUC, loss
    note: str

    @property
    def is_loss(self) -> bool:
        """Whether less is better, and SGD's is subtracted: classes differ more than optimizers."""
        return self.score == "loss"

    def measure(self, frequency: str) -> Measure:
        """Return the score of one class."""

        def value(run: Run) -> float | None:
            found: float | None = getattr(run, self.key).get(frequency)
            return found

        return Measure(f"{frequency} {self.score}", not self.is_loss, value)


class Best(NamedTuple):
    """A run at its best."""

    run: Run
    epoch: Epoch
    value: float


def best(run: Run, by: Metric) -> Best | None:
    """Return the epoch whose weights were kept; if that is not known, the first of the best."""
    measured = measurements(run, by)
    chosen = [found for found in measured if found.epoch.epoch == run.best_epoch]
    return max(chosen or measured, key=lambda found: by.gain(found.value), default=None)


def optimum(run: Run, by: Metric) -> Best | None:
    """Return the first of the best epochs, whichever was kept."""
    return max(measurements(run, by), key=lambda found: by.gain(found.value), default=None)


def measurements(run: Run, by: Metric) -> list[Best]:
    """Return all epochs in which it was measured."""
    return [Best(run, epoch, value) for epoch in run.epochs if (value := by.of(epoch)) is not None]


def kept(by: Metric, name: str) -> Measure:
    """Return the measure of a run's value in the epoch whose weights were kept."""

    def value(run: Run) -> float | None:
        found = best(run, by)
        return None if found is None else found.value

    return Measure(name, by.higher_is_better, value, metric=by)


# ---- standings -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Standing:
    """Where an optimizer stands: runs that differ in their seed count as one."""

    label: str
    runs: tuple[Run, ...]  # those that have a value, the worst first
    values: tuple[float, ...]

    @property
    def value(self) -> float:
        """The mean over seeds."""
        return mean(self.values)

    @property
    def seeds(self) -> int:
        """How many runs there are."""
        return len(self.runs)

    @property
    def middle(self) -> Run:
        """The run that is in the middle by its value."""
        return self.runs[(len(self.runs) - 1) // 2]


def alike(runs: Iterable[Run]) -> list[list[Run]]:
    """Return runs of the same optimizer, rate and decay together."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.family, []).append(run)
    return list(groups.values())


def standings(results: Results, by: Measure) -> list[Standing]:
    """Return how good each optimizer is, where that was measured."""
    found = []
    for runs in alike(results.runs):
        measured = [(value, run) for run in runs if (value := by.of(run)) is not None]
        measured.sort(key=lambda pair: by.gain(pair[0]))
        if measured:
            values, those = zip(*measured, strict=True)
            label = runs[0].label if len(runs) == 1 else runs[0].family
            found.append(Standing(label, those, values))
    return found


def leaders(found: Sequence[Standing], by: Measure) -> list[Standing]:
    """Return the best: several if they are equal."""
    top = max((by.gain(one.value) for one in found), default=0.0)
    return [one for one in found if by.gain(one.value) == top]


def best_standing(results: Results, optimizer: str, by: Measure) -> Standing | None:
    """Return where an optimizer stands, at its best settings if it has several."""
    own = [one for one in standings(results, by) if one.middle.optimizer == optimizer]
    return next(iter(leaders(own, by)), None)


def representative(results: Results, optimizer: str, by: Measure) -> Run | None:
    """Return the run that speaks for an optimizer: no luckier with its seed than others."""
    found = best_standing(results, optimizer, by)
    runs = [run for run in results.runs if run.optimizer == optimizer]
    return found.middle if found else next(iter(runs), None)


def first_reaching(run: Run, by: Metric, target: float) -> Epoch | None:
    """Return the first epoch that is at least as good as ``target``."""
    for epoch in run.epochs:
        value = by.of(epoch)
        if value is not None and by.gain(value, target) >= 0:
            return epoch
    return None
