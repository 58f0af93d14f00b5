"""The paper's problem where everything is known, and its algorithms run on it.

Pairs (i, j) of a user and an item are drawn from a joint distribution D, a label y from the chance
that belongs to the pair; the loss of a pair is the logistic one, log(1 + exp(-y u_i . v_j)). Users
come first in all arrays over tokens, then items. Several problems that share D may be held and
computed with at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from freqsgd.errors import DataError
from freqsgd.kernels.simulation import advance
from freqsgd.rates import RateLaw
from freqsgd.theory.checks import Array, per_token

OPTIMIZERS = ("sgd", "fasgd", "cfsgd", "sbcd")
HIDDEN_NORM, START_NORM = 0.625, 0.375  # of rows, as parts of the radius
_ROUNDS = 10_000  # of fitting marginals, at most
_CALL = 5_000_000  # iterations between two looks at what else there is to do


@dataclass(frozen=True)
class Problem:
    """Minimise f(Theta) = E[log(1 + exp(-y u_i . v_j))], problem 1 of the paper, in a ball.

    The dots stand for axes over problems. Methods take rows of shape (..., tokens, dim) whose other
    axes broadcast with these.
    """

    pairs: Array  # (users, items): D(i, j)
    positive: Array  # (..., users, items): the chance of the label +1
    start: Array  # (..., tokens, dim): Theta^0
    radius: float  # of the ball that the rows must not leave

    def __post_init__(self) -> None:
        largest = np.linalg.norm(self.start, axis=-1).max()
        if not largest <= self.radius:
            raise DataError(
                f"rows start at up to {largest:g} from 0, outside the ball of radius {self.radius}"
            )

    @property
    def users(self) -> int:
        """Number of tokens that are users."""
        return len(self.pairs)

    @cached_property
    def frequencies(self) -> Array:
        """p_k of all tokens, equation 2: the marginals of D."""
        return np.concatenate([self.pairs.sum(1), self.pairs.sum(0)])

    @property
    def smoothness(self) -> float:
        """L of Assumption 2 in the ball: 1 + R^2 / 4.

        With s = sigmoid(u.v), the blocks of the loss's Hessian are s (1 - s) v v' and
        s (1 - s) v u' + (s - y) I.
        """
        return 1 + self.radius**2 / 4

    @property
    def gradient_bound(self) -> float:
        """G of Theorem 3: row k of the gradient is at most p_k R long in the ball."""
        return float(self.radius * np.sqrt((self.frequencies**2).sum()))

    @cached_property
    def lowest(self) -> Array:
        """The loss of the true chances, which f* cannot be below."""
        entropy = _plogp(self.positive) + _plogp(1 - self.positive)
        return np.asarray(-(self.pairs * entropy).sum((-2, -1)))

    @property
    def gap(self) -> float:
        """f(Theta^0) - f*, the mean over problems: it enters the bounds linearly."""
        return float((self.loss(self.start) - self.lowest).mean())

    @cached_property
    def start_norms2(self) -> Array:
        """|grad f_k|^2 of each token at the start."""
        return self.gradient_norms2(self.start)

    def loss(self, rows: Array) -> Array:
        """Return f(Theta), by summation over all pairs and labels."""
        logits = self._logits(rows)
        loss = np.logaddexp(0, logits) - self.positive * logits
        return np.asarray((self.pairs * loss).sum((-2, -1)))

    def gradient(self, rows: Array) -> Array:
        """Return the gradient of f, by summation over all pairs and labels."""
        users, items = rows[..., : self.users, :], rows[..., self.users :, :]
        residuals = self.pairs * (_sigmoid(self._logits(rows)) - self.positive)
        parts = residuals @ items, residuals.swapaxes(-2, -1) @ users
        return np.concatenate(parts, axis=-2)

    def gradient_norms2(self, rows: Array) -> Array:
        """Return |grad f_k|^2 of each token."""
        return np.asarray((self.gradient(rows) ** 2).sum(-1))

    def conditional_variance(self, rows: Array) -> Array:
        """Return E[|g_k - grad f_k / p_k|^2 | k is drawn] of each token, which sigma_k^2 bounds.

        By enumeration of what it may be drawn with, and of both labels (equation 5).
        """
        p = self.frequencies
        return self._second_moments(rows) / p - self.gradient_norms2(rows) / p**2

    def gradient_variance(self, rows: Array) -> Array:
        """Return Var(g) = E|g - grad f|^2 by enumeration of all pairs and labels.

        The sampled gradient of (i, j) with residual r has the rows r v_j and r u_i, and is
        r^2 (|u_i|^2 + |v_j|^2) - 2 r (v_j . grad f_i + u_i . grad f_j) + |grad f|^2 away.
        """
        users, items = rows[..., : self.users, :], rows[..., self.users :, :]
        mean, chance = self.gradient(rows), _sigmoid(self._logits(rows))
        squares = (users**2).sum(-1)[..., :, None] + (items**2).sum(-1)[..., None, :]
        products = mean[..., : self.users, :] @ items.swapaxes(-2, -1)
        products += users @ mean[..., self.users :, :].swapaxes(-2, -1)
        total = np.zeros(rows.shape[:-2])
        for residual, weight in ((chance - 1, self.positive), (chance, 1 - self.positive)):
            distance = residual**2 * squares - 2 * residual * products
            total += (self.pairs * weight * distance).sum((-2, -1))
        return np.asarray(total + (mean**2).sum((-2, -1)))

    def _second_moments(self, rows: Array) -> Array:
        """Return E[|g_k|^2; k is drawn]: |g_i| is |residual| |v_j|, |g_j| is |residual| |u_i|."""
        chance = _sigmoid(self._logits(rows))
        squares = self.positive * (1 - chance) ** 2 + (1 - self.positive) * chance**2
        weights, norms2 = self.pairs * squares, (rows**2).sum(-1)
        users, items = norms2[..., : self.users, None], norms2[..., self.users :, None]
        parts = weights @ items, weights.swapaxes(-2, -1) @ users
        return np.concatenate(parts, axis=-2)[..., 0]

    def _logits(self, rows: Array) -> Array:
        users, items = rows[..., : self.users, :], rows[..., self.users :, :]
        return np.asarray(users @ items.swapaxes(-2, -1))


def planted_problem(
    users: Array, items: Array, dim: int, radius: float, seed: int, *, problems: int
) -> Problem:
    """Make problems with given frequencies whose labels follow hidden rows: f* is known.

    Args:
        users, items: frequencies of the tokens; each sum to 1
        dim: length of a row
        radius: of the ball; hidden rows and those at the start lie well inside it
        seed: of the dependence between users and items, the hidden rows and the start
        problems: how many; they differ in hidden rows and start
    """
    generator = np.random.default_rng(seed)
    pairs = joint_distribution(users, items, generator)
    shape = (problems, len(users) + len(items), dim)
    hidden = HIDDEN_NORM * radius * _directions(generator, shape)
    start = START_NORM * radius * _directions(generator, shape)
    logits = hidden[:, : len(users)] @ hidden[:, len(users) :].swapaxes(1, 2)
    return Problem(pairs, _sigmoid(logits), start, radius)


def joint_distribution(users: Array, items: Array, generator: np.random.Generator) -> Array:
    """Draw D(i, j) with the given marginals: a random table scaled by rows and columns."""
    table = np.exp(generator.standard_normal((len(users), len(items))))
    for _ in range(_ROUNDS):
        table *= (users / table.sum(1))[:, None]
        table *= items / table.sum(0)
        if np.allclose(table.sum(1), users, rtol=1e-12, atol=0):
            return table
    raise DataError("frequencies of users and items must each sum to 1")


def _directions(generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
    vectors = generator.standard_normal(shape)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))


def _plogp(p: Array) -> Array:
    return np.asarray(p * np.log(np.where(p > 0, p, 1)))


def _sigmoid(x: Array) -> Array:
    return np.asarray(0.5 * (1 + np.tanh(0.5 * x)))


# ---- runs ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Method:
    """The rule by which an iteration moves the rows of the pair that it drew.

    Args:
        optimizer: "sgd" or "fasgd" (Algorithm 1: a step size for each token), "cfsgd" (Algorithm 2:
            the law decides, with frequencies counted so far, the current pair included) or "sbcd"
            (stochastic block coordinate descent: one token of all is drawn beside the pair, and
            moves if it is one of the pair)
        steps: of each token; of cfsgd the law
        alpha: the constant of its theorem, which steps or law were made with
        bound: of its theorem, for each token
    """

    optimizer: str
    steps: Array | RateLaw
    alpha: float = math.nan
    bound: Array | None = None

    def __post_init__(self) -> None:
        if self.optimizer not in OPTIMIZERS:
            raise DataError(
                f"unknown optimizer {self.optimizer!r}: known are {', '.join(OPTIMIZERS)}"
            )
        counts = self.optimizer == "cfsgd"
        if counts != isinstance(self.steps, RateLaw):
            raise DataError(
                f"{self.optimizer} takes {'a law, no' if counts else 'no law, but'} steps"
            )


@dataclass(frozen=True)
class Runs:
    """Results of the repetitions of one method."""

    iterates: Array  # (outputs, repetitions, tokens, dim)
    counts: NDArray[np.int64]  # (repetitions, tokens): how often CF-SGD saw them
    left: NDArray[np.int64]  # (repetitions,): the iteration in which a row left the ball, or -1


def simulate(
    problem: Problem,
    method: Method,
    times: NDArray[np.int64],
    seed: int,
    *,
    threads: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Runs:
    """Run a method from the problem's start, once for each row of ``times``.

    Args:
        problem: what to minimise; if it holds several, each repetition has its own
        method: how
        times: (repetitions, outputs): the iterations, in ascending order, after which the rows are
            put out; a repetition ends with the last
        seed: repetitions of the same number see the same pairs, whatever the method
        threads: None for torch's number; the result does not depend on it
        progress: called now and then with the number of iterations made, of all repetitions
    """
    repetitions, outputs = times.shape
    if not (np.diff(times, axis=1, prepend=0) >= 0).all():
        raise DataError("times must be numbers of iterations in ascending order, row by row")
    tokens, dim = problem.start.shape[-2:]
    law, steps = RateLaw(0.0), method.steps
    if isinstance(steps, RateLaw):
        law, steps = steps, np.zeros(tokens)
    keep, other = _alias_table(problem.pairs.ravel())
    chances = (repetitions, *problem.pairs.shape)
    seeds = np.random.SeedSequence(seed).generate_state(repetitions, np.uint64)
    state = {
        "repetitions": repetitions,
        "users": problem.users,
        "items": tokens - problem.users,
        "dim": dim,
        "outputs": outputs,
        "keep": keep,
        "other": other,
        "positive": np.array(np.broadcast_to(problem.positive, chances), order="C"),
        "steps": np.array(per_token("steps", steps, problem.frequencies)),
        "counting": law is method.steps,
        "lr": law.lr,
        "power": law.power,
        "cap": law.cap,
        "blocks": method.optimizer == "sbcd",
        "radius2": problem.radius**2,
        "rows": np.array(np.broadcast_to(problem.start, (repetitions, tokens, dim)), order="C"),
        "counts": np.zeros((repetitions, tokens), np.int64),
        "randoms": seeds,
        "times": np.ascontiguousarray(times, np.int64),
        "taken": np.zeros(repetitions, np.int64),
        "iterates": np.empty((repetitions, outputs, tokens, dim)),
        "left": np.full(repetitions, -1),
    }
    iterations, part = int(times.max()), max(1, _CALL // repetitions)
    for first in range(0, max(iterations, 1), part):
        last = min(first + part, iterations)
        advance(state, first, last, threads or torch.get_num_threads())
        if progress:
            progress(last * repetitions)
    return Runs(state["iterates"].swapaxes(0, 1), state["counts"], state["left"])


def spread_evenly(
    generator: np.random.Generator, low: int, high: int, repetitions: int
) -> NDArray[np.int64]:
    """Draw iterations uniformly from [low, high], one from each of as many equal parts.

    Each is uniform over the whole range, as the algorithms say; together they cover it, which
    makes means over repetitions more exact.
    """
    places = generator.permutation(repetitions) + generator.random(repetitions)
    return low + np.floor(places / repetitions * (high - low + 1)).astype(np.int64)


def _alias_table(weights: Array) -> tuple[Array, NDArray[np.int64]]:
    """Return Walker's table: draw a place, keep it with its chance, or else take the other."""
    keep = weights * (len(weights) / weights.sum())
    other = np.arange(len(weights))
    small, large = list(np.flatnonzero(keep < 1)), list(np.flatnonzero(keep >= 1))
    while small and large:
        low, high = small.pop(), large[-1]
        other[low] = high
        keep[high] -= 1 - keep[low]
        if keep[high] < 1:
            small.append(large.pop())
    keep[np.array(small + large, np.int64)] = 1  # but for rounding they are
    return keep, other
