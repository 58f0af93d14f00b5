"""One run of the benchmark: a model trained by a contender at one rate from one seed.

The models, their sizes, the splits and everything in this file were fixed by looking at Adam,
Adagrad and SGD only, before CFAdam was run on any of them:

- The split is the same in all runs. The seed sets initialization, order and sampled negatives.
- The rate is constant. There is no weight decay and no dropout.
- The metric is taken after each epoch. A run's result is the test metric of the epoch with the best
  validation metric.
- ``rare`` is the same metric on the fifth of the test samples whose rarest token was seen least
  often in training.
- A run whose loss or metric is not finite has diverged. It ends at once, counts as worse than any
  other, and earlier epochs do not save it.
- Question (a), untuned: Adam against CFAdam, each for the whole model at 1e-3, three seeds.
- Question (b), equal tuning: six rates for each contender on the tables; the rate with the best
  validation metric at seed 0 is run with three seeds. All other weights are trained by Adam at
  1e-3.

A change to any of this needs another VERSION, which makes stored results invalid.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import cache

import torch

from benchmarks.zoo.contenders import CONTENDERS, UNTUNED
from benchmarks.zoo.models import MODELS
from benchmarks.zoo.task import Scores, Task

VERSION = "1"
SEEDS = (0, 1, 2)


@dataclass(frozen=True)
class Run:
    """What identifies a run; runs with equal fields give equal results."""

    question: str  # "a" or "b"
    model: str
    contender: str
    lr: float
    seed: int
    quick: bool = False  # half the epochs, rounded down
    version: str = VERSION


@dataclass(frozen=True)
class Result:
    """The outcome of a run; ``scores`` is None if it diverged."""

    run: Run
    scores: Scores | None
    epoch: int
    seconds: float  # of processor time

    def merit(self) -> float:
        """Return the validation metric, turned so that higher is better."""
        if self.scores is None:
            return -math.inf
        higher = MODELS[self.run.model].higher_is_better
        return self.scores.validation if higher else -self.scores.validation


@cache
def load(model: str) -> Task:
    """Return the task of a model, with its data."""
    return MODELS[model]()


def execute(run: Run) -> Result:
    """Train and evaluate a model."""
    task = load(run.model)
    contender = (UNTUNED if run.question == "a" else CONTENDERS)[run.contender]
    start = time.process_time()
    torch.manual_seed(run.seed)
    generator = torch.Generator().manual_seed(run.seed)
    model = task.model(contender.sparse)
    optimizers = contender.optimizers(task, model, run.lr)
    best: Result | None = None
    for epoch in range(1, (task.epochs // 2 if run.quick else task.epochs) + 1):
        scores = None
        if _train(task, model, optimizers, generator):
            model.eval()
            with torch.no_grad():
                scores = task.evaluate(model)
            model.train()
        if scores is None or not all(map(math.isfinite, scores)):
            return Result(run, None, epoch, time.process_time() - start)
        result = Result(run, scores, epoch, time.process_time() - start)
        best = result if best is None or result.merit() > best.merit() else best
    assert best is not None
    return Result(run, best.scores, best.epoch, time.process_time() - start)


def _train(
    task: Task,
    model: torch.nn.Module,
    optimizers: list[torch.optim.Optimizer],
    generator: torch.Generator,
) -> bool:
    """Train for one epoch; return whether all losses were finite."""
    for batch in task.batches(generator):
        loss = task.loss(model, batch)
        if not math.isfinite(loss.item()):
            return False
        model.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
    return True
