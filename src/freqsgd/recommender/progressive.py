"""Progressive validation: every example is scored before it is learned."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from freqsgd.tables.streaming_metrics import Tally, normalized

__all__ = ["Progressive"]


class Progressive:
    """Metrics of each window, of each day and of all examples so far.

    An example is tallied once, among the latest, which are added to the others where a window or a
    day ends.

    Args:
        window: examples of a window, which ends with the first batch that reaches a multiple of it
        days: their names

    Attributes:
        examples, positives: seen so far
        windows, of_days: what ``results.json`` says of those that have ended
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
        """The examples of a batch are all taken in: its window may have ended."""
        before = self.windows[-1]["examples"] if self.windows else 0
        if self.examples // self.window > before // self.window:
            self._end_window(seconds)

    def end(self, seconds: float) -> None:
        """All examples are taken in."""
        if self.examples > (self.windows[-1]["examples"] if self.windows else 0):
            self._end_window(seconds)
        self._end_day()
        self._day = -1

    def lifetime(self) -> dict[str, float | None]:
        """Metrics of all examples so far."""
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
        whole = {f"lifetime_{key}": value for key, value in self.lifetime().items()}
        del whole["lifetime_loss"]
        window = self._tallies["window"]
        self.windows.append(
            {"examples": self.examples, **window.metrics(), **whole, "seconds": seconds}
        )
        window.clear()

    def _end_day(self) -> None:
        self._fold()
        day = self._tallies["day"]
        examples = sum(day.counts)
        if examples:
            name = self._names[self._day]
            self.of_days.append({"day": name, "examples": examples, **day.metrics()})
        day.clear()

    def _fold(self) -> None:
        latest = self._tallies["latest"]
        for name in ("window", "day", "whole"):
            self._tallies[name].merge(latest)
        latest.clear()

    # ---- checkpoints -----------------------------------------------------------------------------

    @property
    def tensors(self) -> dict[str, Tensor]:
        """What it adds up, by name: its own memory."""
        return {
            f"{name}.{part}": torch.from_numpy(getattr(tally, part))
            for name, tally in self._tallies.items()
            for part in ("sums", "bins")
        }

    @property
    def state(self) -> dict[str, Any]:
        """What else it must be told to go on, as JSON has it."""
        return {
            "examples": self.examples,
            "positives": self.positives,
            "windows": self.windows,
            "of_days": self.of_days,
            "day": self._day,
        }

    def load(self, state: dict[str, Any]) -> None:
        """Go on from a state; its tensors have been loaded into :attr:`tensors`."""
        self.examples, self.positives = state["examples"], state["positives"]
        self.windows, self.of_days = state["windows"], state["of_days"]
        self._day = state["day"]
