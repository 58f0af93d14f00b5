"""Metrics of predictions, all at once or as they are made, and rank correlation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from freqsgd.documents import written
from freqsgd.documents.results import Day, Window
from freqsgd.tables.streaming_metrics import Tally, normalized, ranked

CLASSES = ("head", "torso", "tail")
SHARES = (0.80, 0.95)  # of a field's occurrences, that head and torso reach up to
_FEWEST = 3  # pairs: of two, any order is all or nothing


def auc(scores: NDArray[Any], labels: NDArray[Any]) -> float | None:
    """Return the chance that a positive scores above a negative, ties counting half.

    None where there are no positives or no negatives, or a score is not a number.

    Example:
        >>> auc(np.array([0.1, 0.4, 0.4, 0.8]), np.array([0, 0, 1, 1]))
        0.875
    """
    order = np.argsort(scores)
    scores, positive = scores[order], labels[order].astype(np.int64)
    if not len(labels) or np.isnan(scores[-1]):  # NaN comes last
        return None
    ties = np.flatnonzero(np.concatenate([[True], scores[1:] != scores[:-1]]))
    won = np.add.reduceat(positive, ties)  # positives of each score
    lost = np.diff(np.append(ties, len(labels))) - won
    return ranked(lost, won)


def cross_entropy(
    logits: NDArray[Any], labels: NDArray[Any], weights: NDArray[Any] | None = None
) -> float:
    """Return the mean loss of log odds, in nats."""
    z = logits.astype(np.float64)
    return float(np.average(np.logaddexp(0.0, np.where(labels == 1, -z, z)), weights=weights))


def normalized_entropy(loss: float, labels: NDArray[Any]) -> float | None:
    """Return a loss over that of always predicting the base rate; below 1 is better."""
    return normalized(loss, int(labels.sum()), len(labels))


def frequency_classes(counts: NDArray[Any], sizes: list[int]) -> NDArray[np.int8]:
    """Tell whether each row of a table is head (0), torso (1) or tail (2) of its field.

    The tokens that cover the first 80% of a field's occurrences are its head, those of the next
    15% its torso, the rest its tail.
    """
    classes = np.empty(len(counts), np.int8)
    start = 0
    for size in sizes:
        of_field = counts[start : start + size]
        order = np.argsort(-of_field, kind="stable")
        covered = np.cumsum(of_field[order]) - of_field[order]
        total = max(int(of_field.sum()), 1)
        kind = np.searchsorted(np.array(SHARES) * total, covered, side="right")
        kind[of_field[order] == 0] = 2  # never seen
        classes[start + order] = kind
        start += size
    return classes


def auc_by_frequency(
    logits: NDArray[Any], labels: NDArray[Any], classes: NDArray[np.int8]
) -> dict[str, float | None]:
    """Return the AUC of each class; a sample's is that of its rarest token."""
    chosen = ((name, classes == k) for k, name in enumerate(CLASSES))
    return {name: auc(logits[rows], labels[rows]) for name, rows in chosen}


def spearman(a: NDArray[Any], b: NDArray[Any]) -> float | None:
    """Return the rank correlation, tied values sharing the mean of their ranks.

    None for fewer than three pairs, and where all values are the same or one is not finite.

    Example:
        >>> spearman(np.array([1, 2, 2, 9]), np.array([0.1, 0.3, 0.3, 0.4]))
        1.0
    """
    if len(a) < _FEWEST or not (np.isfinite(a).all() and np.isfinite(b).all()):
        return None
    x, y = _ranks(a), _ranks(b)
    x, y = x - x.mean(), y - y.mean()
    length = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / length if length else None


def _ranks(values: NDArray[Any]) -> NDArray[np.float64]:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: NDArray[np.float64] = np.cumsum(counts) - (counts - 1) / 2
    return ranks[place]


class Progressive:
    """Progressive validation: metrics of predictions that are made before they are learned from.

    There are metrics of each window, of each day and of all examples so far.

    An example is tallied once, among the latest, which are added to the others where a window or a
    day ends.

    Args:
        window: examples of a window, which ends with the first batch that reaches a multiple of it
        days: their names

    Attributes:
        examples, positives: seen so far
        windows, of_days: those that have ended, as ``results.json`` has them
    """

    def __init__(self, window: int, days: tuple[str, ...]) -> None:
        self.window, self._names = window, days
        self.examples = self.positives = 0
        self.windows: list[dict[str, Any]] = []
        self.of_days: list[dict[str, Any]] = []
        self._day = -1  # that of the latest examples
        self._tallies = {name: Tally() for name in ("latest", "window", "day", "whole")}

    def add(self, logits: NDArray[np.float32], labels: NDArray[np.uint8], day: int) -> None:
        """Take in consecutive examples of one day, of one batch."""
        if day != self._day:
            self._end_day()
            self._day = day
        self._tallies["latest"].add(logits, labels)
        self.examples += len(labels)
        self.positives += int(labels.sum())

    def end_batch(self, seconds: float) -> None:
        """End the window, if the examples of a batch complete it."""
        before = self.windows[-1]["examples"] if self.windows else 0
        if self.examples // self.window > before // self.window:
            self._end_window(seconds)

    def end(self, seconds: float) -> None:
        """End the last window and day."""
        if self.examples > (self.windows[-1]["examples"] if self.windows else 0):
            self._end_window(seconds)
        self._end_day()
        self._day = -1

    def lifetime(self) -> dict[str, float | None]:
        """Return metrics of all examples so far."""
        self._fold()
        return self._tallies["whole"].metrics()

    @property
    def ne(self) -> float | None:
        """Normalized entropy of all examples so far."""
        loss = self._tallies["whole"].sums[0] + self._tallies["latest"].sums[0]
        if self.examples == 0:
            return None
        return normalized(float(loss) / self.examples, self.positives, self.examples)

    def _end_window(self, seconds: float) -> None:
        whole = {f"lifetime_{name}": value for name, value in self.lifetime().items()}
        del whole["lifetime_loss"]
        metrics = self._tallies["window"].metrics()
        self.windows.append(written(Window(self.examples, **metrics, **whole, seconds=seconds)))
        self._tallies["window"].clear()

    def _end_day(self) -> None:
        self._fold()
        tally = self._tallies["day"]
        if examples := sum(tally.counts):
            self.of_days.append(written(Day(self._names[self._day], examples, **tally.metrics())))
        tally.clear()

    def _fold(self) -> None:
        latest = self._tallies["latest"]
        for name in ("window", "day", "whole"):
            self._tallies[name].merge(latest)
        latest.clear()

    # ---- checkpoints -----------------------------------------------------------------------------

    @property
    def sums(self) -> dict[str, NDArray[Any]]:
        """The sums and bins of all tallies, by name; not copies."""
        return {
            f"{name}.{part}": getattr(tally, part)
            for name, tally in self._tallies.items()
            for part in ("sums", "bins")
        }

    @property
    def state(self) -> dict[str, int]:
        """The numbers to continue from, beside the windows and days that have ended."""
        return {"examples": self.examples, "positives": self.positives, "day": self._day}

    def load(
        self, state: dict[str, int], windows: list[dict[str, Any]], days: list[dict[str, Any]]
    ) -> None:
        """Go on from a state; its sums have been loaded into :attr:`sums`."""
        self.examples, self.positives = state["examples"], state["positives"]
        self._day, self.windows, self.of_days = state["day"], windows, days
