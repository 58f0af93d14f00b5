"""A learning rate that finds itself: how it works and when it fails is in docs/learning_rate.md."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from freqsgd.errors import DataError, DataWarning, DivergedError
from freqsgd.nn.fm import FM
from freqsgd.optimizers import OPTIMIZERS, Rule
from freqsgd.recommender.engine import build_model, engine_for, frequencies_for
from freqsgd.recommender.memory import check_memory, memory_plan
from freqsgd.recommender.predict import Predictor, predictor_for
from freqsgd.recommender.settings import Settings
from freqsgd.runs.metrics import cross_entropy
from freqsgd.runs.run import check_loss
from freqsgd.tables.dataset import Dataset
from freqsgd.tables.fields import ABSENT, Field, Splits

__all__ = ["find_lr", "with_lr"]

STEPS = 8  # that each rate is tried for
HELD_OUT = 3  # batches that it is judged by
CLEAR_GAIN = 0.001  # of the loss, in nats
PERFECT = 0.05  # of a constant's loss: below it all rows are told apart, and more only overshoots
# The rate that lowers the loss most in a few steps is too large for a whole run. By how much was
# measured for each optimizer: lr_share of the registry. Shorter runs take a larger share, and so do
# larger batches, whose gradients are less noisy. A run at a constant rate ends by patience, so its
# length is that of the data: how many epochs it may last at most tells nothing of it.
WHOLE_RUN, USUAL_BATCH, USUAL_EPOCHS = 5000, 1024, 60  # steps, samples
MOST = 1 / 2  # share
CAP = 100  # max_lr over lr: tames the rarest tokens; fewer slows learning, none costs them quality
SGD_SHARE = 1 / 2  # of the mean rate that cfsgd gives to tokens, which sgd gives to all of them


def with_lr(data: Dataset, rule: Rule, settings: Settings, *, threads: int | None = None) -> Rule:
    """Return the rule; one without a learning rate gets it, and the cap that goes with it."""
    if rule.lr is not None:
        return rule
    lr = find_lr(data, rule, settings, threads=threads)
    capped = rule.facts.capped and rule.max_lr is None
    return replace(rule, lr=lr, max_lr=CAP * lr if capped else rule.max_lr)


def find_lr(data: Dataset, rule: Rule, settings: Settings, *, threads: int | None = None) -> float:
    """Find a learning rate for a rule, whose own is ignored.

    Some rates are tried for a few steps each on a sample of the training rows; the one that lowers
    the loss most, times a share that depends on the optimizer, is the answer. Other rows and the
    validation set are not looked at. The same data, model, batch size, seed and optimizer give the
    same rate; ``epochs`` matter only where the rate is to fall over them. For cfadam nothing is
    tried: 1e-3 serves.

    Example:
        >>> from freqsgd.tables import DataOptions, load
        >>> data = load(DataOptions(samples=20_000))  # generated clicks
        >>> 0.1 < find_lr(data, Rule("cfsgd", lr=1.0), Settings(dim=8)) < 1.5
        True
    """
    if rule.facts.lr is not None:
        return rule.facts.lr
    check_memory(memory_plan(data.fields, rule, settings))
    batch = min(settings.batch_size, len(data.splits.train))
    sample = _sample(data, batch, settings.seed)
    scale = (sample.tokens + settings.vector_dim) / (data.tokens + settings.vector_dim)
    settings = replace(settings, init_scale=settings.init_scale * math.sqrt(scale))
    tried = replace(rule, optimizer=rule.facts.lr_found_with or rule.optimizer)
    facts = OPTIMIZERS[tried.facts.rates_of or tried.optimizer]
    start, whole_share = facts.lr_start, facts.lr_share
    if start is None or whole_share is None:
        raise DataError(f"no learning rate of {rule.optimizer} can be found: give one (lr)")

    model = build_model(sample, settings)
    untrained = _held_out_loss(predictor_for(model, threads), sample)
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    rate = float(np.average(sample.labels, weights=sample.weights))
    perfect = -PERFECT * sum(p * math.log(p) for p in (rate, 1 - rate) if p > 0)

    def loss(octave: float) -> float:
        model.load_state_dict(weights)
        trial = replace(tried, lr=start * 2.0**octave)
        found = _short_loss(model, sample, trial, settings.seed, batch, threads)
        return max(found, perfect)

    place, least = lowest(loss)
    if not least < untrained - CLEAR_GAIN:
        place = 0.0
        warnings.warn(
            f"no learning rate of {rule.optimizer} lowers the loss within {STEPS} steps, so a "
            "usual one is taken; it may be far from the best",
            DataWarning,
            stacklevel=2,
        )
    epochs = USUAL_EPOCHS if settings.lr_decay == "constant" else settings.epochs
    steps = epochs * -(-len(data.splits.train) // batch)
    length = math.log(max(steps, STEPS) / STEPS) / math.log(WHOLE_RUN / STEPS)
    share = whole_share ** min(1.0, length) * math.sqrt(settings.batch_size / USUAL_BATCH)
    lr = min(share, MOST) * start * 2.0**place
    if rule.facts.lr_found_with:
        # A few steps do not show how slowly sgd learns rare tokens, so its rate follows cfsgd's.
        p = data.token_counts[data.token_counts > 0] / len(data.splits.train)
        lr *= SGD_SHARE * np.average(p**-0.5, weights=p)
    return float(f"{lr:.2g}")


def lowest(function: Callable[[float], float], reach: int = 12) -> tuple[float, float]:
    """Find where a function that falls, then rises is lowest, from 0 outwards.

    Steps of 2 find the valley, steps of 1 its floor, a parabola the place between.

    Returns:
        the place, and the lowest value that was seen

    Example:
        >>> lowest(lambda x: (x + 3.25) ** 2)
        (-3.25, 0.0625)
    """
    known = {0: function(0), -2: function(-2)}
    best, way = (0, 2) if known[0] < known[-2] else (-2, -2)  # down also if both are infinite
    while abs(best + way) <= reach:
        known[best + way] = function(best + way)
        if known[best + way] > known[best]:
            break
        best += way
    for neighbour in (best - 1, best + 1):
        known[neighbour] = function(neighbour)
    best = min(known, key=known.__getitem__)
    left, right = known.get(best - 1, math.inf), known.get(best + 1, math.inf)
    bend = left - 2 * known[best] + right
    if not (math.isfinite(bend) and bend > 0):
        return float(best), known[best]
    return best + 0.5 * (left - right) / bend, known[best]


def _short_loss(
    model: FM, data: Dataset, rule: Rule, seed: int, batch: int, threads: int | None
) -> float:
    """Return the loss on held-out rows after some steps."""
    engine = engine_for(
        model,
        rule,
        seed=seed,
        batch_size=batch,
        threads=threads,
        frequencies=frequencies_for(data, rule),
    )
    order = np.resize(data.splits.train, STEPS * batch)  # goes round where there are fewer
    rates = np.full(STEPS, rule.lr)
    weight = 1.0 if data.weights is None else float(data.weights[order].mean())
    try:
        for losses in engine.train(data.ids, data.labels, order, rates, weights=data.weights):
            # Held-out rows of tokens that training does not hold would not show a divergence.
            check_loss(losses[-1], weight * math.log(2), engine.steps - 1)
    except DivergedError:
        return math.inf
    return _held_out_loss(engine, data)


def _held_out_loss(predictor: Predictor, data: Dataset) -> float:
    rows = data.splits.validation
    weights = None if data.weights is None else data.weights[rows]
    loss = cross_entropy(predictor.predict(data.ids, rows), data.labels[rows], weights)
    return loss if math.isfinite(loss) else math.inf


def _sample(data: Dataset, batch: int, seed: int) -> Dataset:
    """Take some training rows, shuffled, with only the tokens that they hold.

    So the search is cheap even where tables are large or an optimizer changes all rows.
    """
    train = data.splits.train
    chosen = np.random.Generator(np.random.PCG64([seed, 0, 1])).permutation(len(train))
    chosen = train[chosen[: (STEPS + HELD_OUT) * batch]]
    held_out = max(1, len(chosen) * HELD_OUT // (STEPS + HELD_OUT))
    fields, ids = _only_used(data, np.ascontiguousarray(data.ids[chosen]))
    places = np.arange(len(chosen))
    return Dataset(
        data.name,
        fields,
        ids,
        data.labels[chosen],
        Splits(places[held_out:], places[:held_out], places[:0]),
        weights=None if data.weights is None else data.weights[chosen],
    )


def _only_used(
    data: Dataset, ids: NDArray[np.int32]
) -> tuple[tuple[Field, ...], NDArray[np.int32]]:
    """Number the tokens of each field anew, without those that do not occur."""
    fields, column = [], 0
    for field in data.fields:
        place = ids[:, column : column + field.width]
        tokens, numbers = np.unique(place, return_inverse=True)
        absent = int(tokens[0] == ABSENT)  # which comes first, and stays
        place[:] = numbers.reshape(place.shape) - absent
        fields.append(replace(field, size=max(1, len(tokens) - absent)))
        column += field.width
    return tuple(fields), ids
