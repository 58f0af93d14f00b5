"""The two questions of the benchmark: what has to be run, and what came out."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product

from benchmarks.zoo.contenders import CONTENDERS, UNTUNED
from benchmarks.zoo.protocol import SEEDS, Result, Run

Execute = Callable[[Iterable[Run]], dict[Run, Result]]


@dataclass(frozen=True)
class Cell:
    """The outcome of a contender on a model, over seeds; None where a seed diverged."""

    model: str
    contender: str
    lr: float
    at_edge: bool  # of the grid of rates
    diverged: int  # seeds
    test: tuple[float, ...] | None
    rare: tuple[float, ...] | None


def mean_and_sd(values: tuple[float, ...]) -> tuple[float, float]:
    """Return the mean and the sample standard deviation, 0 for a single value."""
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0


def untuned(
    execute: Execute, models: list[str], contenders: list[str], quick: bool = False
) -> list[Cell]:
    """Answer question (a): one optimizer for the whole model, at Adam's default rate.

    With ``quick``: two seeds and half the epochs.
    """
    seeds = SEEDS[:2] if quick else SEEDS
    grid = [(m, c, UNTUNED[c].rates[0]) for m, c in product(models, contenders) if c in UNTUNED]
    runs = {key: [Run("a", *key, seed, quick) for seed in seeds] for key in grid}
    results = execute(run for group in runs.values() for run in group)
    return [_cell([results[run] for run in group], at_edge=False) for group in runs.values()]


def tuned(
    execute: Execute, models: list[str], contenders: list[str], quick: bool = False
) -> list[Cell]:
    """Answer question (b): each contender on the tables, at the best rate of its grid.

    With ``quick``: every other rate, one seed and half the epochs.
    """
    seeds = SEEDS[:1] if quick else SEEDS
    pairs = list(product(models, contenders))
    rates = {name: CONTENDERS[name].rates[quick :: 2 if quick else 1] for name in contenders}
    grid = {
        (model, name): [Run("b", model, name, lr, SEEDS[0], quick) for lr in rates[name]]
        for model, name in pairs
    }
    found = execute(run for runs in grid.values() for run in runs)
    chosen = {
        pair: max((found[run] for run in runs), key=Result.merit).run.lr
        for pair, runs in grid.items()
    }
    runs = {pair: [Run("b", *pair, chosen[pair], seed, quick) for seed in seeds] for pair in pairs}
    results = execute(run for group in runs.values() for run in group)
    return [
        _cell(
            [results[run] for run in runs[model, name]],
            at_edge=chosen[model, name] in (rates[name][0], rates[name][-1]),
        )
        for model, name in pairs
    ]


def _cell(results: list[Result], at_edge: bool) -> Cell:
    run = results[0].run
    scores = [result.scores for result in results if result.scores is not None]
    diverged = len(results) - len(scores)
    test = None if diverged else tuple(score.test for score in scores)
    rare = None if diverged else tuple(score.rare for score in scores)
    return Cell(run.model, run.contender, run.lr, at_edge, diverged, test, rare)
