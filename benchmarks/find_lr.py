"""How good is the learning rate that finds itself, and what does it cost?

    FREQSGD_DATA=... python -m benchmarks.find_lr [--optimizers cfsgd,adam] [--datasets criteo]

For each dataset and optimizer: the best validation AUC of whole runs at 20 rates, that of a run at
the rate which `find_lr` names, and the seconds of the search over those of that run. Beside it two
other searches of about the same cost, a range test and successive halving. The rate that looks
best in a short search is too large for a whole run, so all three multiply it by a share; that of
the other two is the power of 2 that suits the datasets of this run best.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass, replace

import numpy as np

from freqsgd.errors import DivergedError
from freqsgd.optimizers import Rule
from freqsgd.recommender.engine import build_model, engine_for, frequencies_for
from freqsgd.recommender.find_lr import find_lr
from freqsgd.recommender.settings import Settings
from freqsgd.recommender.training import fit
from freqsgd.runs.metrics import cross_entropy
from freqsgd.tables.dataset import Dataset
from freqsgd.tables.loading import load
from freqsgd.tables.spec import DataOptions

DATASETS = {
    "movielens-1m": (DataOptions(dataset="movielens-1m"), Settings(patience=2)),
    "criteo": (DataOptions(dataset="criteo"), Settings(dim=16, patience=2)),
    "synthetic": (DataOptions(), Settings(patience=2)),
}
RANGES = {
    "sgd": (0.1, 300),
    "cfsgd": (0.01, 30),
    "adagrad": (0.001, 1),
    "rowwise-adagrad": (0.001, 1),
    "adam": (1e-5, 0.1),
}
STEPS = 40  # that a search may take: a tenth of a run on Criteo's sample
SHARES = [2.0**k for k in range(-9, 3)]


@dataclass
class Grid:
    """Best validation AUC of whole runs by learning rate."""

    rates: np.ndarray
    aucs: np.ndarray

    @property
    def best(self) -> float:
        return float(self.aucs.max())

    def short(self, lr: float) -> float:
        """How far below the best a rate would end, between those that were tried."""
        return self.best - float(np.interp(math.log(lr), np.log(self.rates), self.aucs))


def grid(data: Dataset, optimizer: str, settings: Settings) -> Grid:
    rates = np.geomspace(*RANGES[optimizer], 20)
    records = [fit(data, Rule(optimizer, float(lr)), settings)[1] for lr in rates]
    return Grid(rates, np.array([record["best_val_auc"] or 0.5 for record in records]))


def range_test(data: Dataset, optimizer: str, settings: Settings) -> float:
    """One pass at a rising rate; where the loss, smoothed over 3 steps, is lowest."""
    rates = np.geomspace(*RANGES[optimizer], STEPS)
    losses = _losses(_engine(data, optimizer, settings), data, settings, rates)
    smooth = np.convolve(losses, np.ones(3) / 3, "valid")
    return float(rates[int(smooth.argmin()) + 1])


def halving(data: Dataset, optimizer: str, settings: Settings) -> float:
    """Eight rates; after each round the better half goes on, by the loss on held-out rows."""
    rates = np.geomspace(*RANGES[optimizer], 8)
    engines = {lr: _engine(data, optimizer, settings) for lr in rates.tolist()}
    rows = data.splits.train[: 4 * settings.batch_size]
    scores: dict[float, float] = {}
    for steps in (2, 3, 6):  # 8 x 2 + 4 x 3 + 2 x 6 = 40
        for lr, engine in engines.items():
            losses = _losses(engine, data, settings, np.full(steps, lr))
            score = cross_entropy(engine.predict(data.ids, rows), data.labels[rows])
            scores[lr] = score if len(losses) == steps and math.isfinite(score) else math.inf
        kept = sorted(engines, key=scores.__getitem__)[: len(engines) // 2]
        engines = {lr: engines[lr] for lr in kept}
    return next(iter(engines))


def _engine(data, optimizer, settings):
    rule = Rule(optimizer)
    options = {"frequencies": frequencies_for(data, rule), "batch_size": settings.batch_size}
    return engine_for(build_model(data, settings), rule, **options)


def _losses(engine, data, settings, rates):
    """Of the steps that were taken, on rows that continue where the last steps ended."""
    order = np.random.default_rng(0).permutation(data.splits.train[4 * settings.batch_size :])
    some = order[engine.samples : engine.samples + len(rates) * settings.batch_size]
    losses: list[float] = []
    try:
        for part in engine.train(data.ids, data.labels, some, rates, 1):
            losses += part.tolist()
    except DivergedError:
        pass
    return np.array(losses)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--optimizers", default="cfsgd,sgd,adagrad,adam")
    parser.add_argument("--datasets", default=",".join(DATASETS))
    given = parser.parse_args()
    for optimizer in given.optimizers.split(","):
        others: dict[str, list[tuple[Grid, float]]] = {"range test": [], "halving": []}
        for name in given.datasets.split(","):
            options, settings = DATASETS[name]
            data = load(options)
            tried = grid(data, optimizer, settings)
            find_lr(data, Rule(optimizer), replace(settings, seed=1))  # compiled, counted
            start = time.perf_counter()
            lr = find_lr(data, Rule(optimizer), settings)
            seconds = time.perf_counter() - start
            start = time.perf_counter()
            record = fit(data, Rule(optimizer, lr), settings)[1]
            whole = time.perf_counter() - start
            good = tried.rates[tried.aucs >= tried.best - 0.002]
            print(
                f"{optimizer:9}{name:13} best of 20: {tried.best:.4f} (within 0.002: "
                f"{good[0]:.2g} to {good[-1]:.2g})   find_lr: {lr:g}, AUC "
                f"{record['best_val_auc']:.4f} ({record['best_val_auc'] - tried.best:+.4f}), "
                f"{seconds:.2f} s, {seconds / whole:.1%} of its run",
                flush=True,
            )
            others["range test"].append((tried, range_test(data, optimizer, settings)))
            others["halving"].append((tried, halving(data, optimizer, settings)))
        for method, found in others.items():
            share = min(SHARES, key=lambda s: max(g.short(s * lr) for g, lr in found))
            print(
                f"{optimizer:9}{method:13} shortfalls "
                + ", ".join(f"{g.short(share * lr):.4f}" for g, lr in found)
                + f" with a share of {share:g} of "
                + ", ".join(f"{lr:.2g}" for _, lr in found),
                flush=True,
            )


if __name__ == "__main__":
    main()
