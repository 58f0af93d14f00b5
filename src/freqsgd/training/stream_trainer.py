"""What a pass over a stream trains with: here one process; ranks of several have their own."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from freqsgd.nn.fm import FM
from freqsgd.streams.stream import Stream
from freqsgd.training import checkpoint, model_folder
from freqsgd.training.engine import engine_for
from freqsgd.training.memory_plan import check_memory
from freqsgd.training.prepare import new_model
from freqsgd.training.reading_memory import stream_plan
from freqsgd.training.resuming import CHECKPOINT, in_parts, part_of
from freqsgd.training.rules import Rule
from freqsgd.training.settings import Settings

__all__ = ["LocalTrainer", "StreamTrainer"]


class StreamTrainer(Protocol):
    """Model, optimizer and their files.

    Attributes:
        leads: whether this process writes what belongs to the run as a whole, and tells of it
        torch_threads: on which the result depends, if any
        samples, steps: learned so far
    """

    leads: bool
    torch_threads: int | None

    @property
    def model(self) -> nn.Module:
        """That is trained."""

    @property
    def samples(self) -> int: ...  # noqa: D102

    @property
    def steps(self) -> int: ...  # noqa: D102

    @property
    def about(self) -> dict[str, Any]:
        """What the record tells of it: bytes, and how it is spread."""

    def begin(self) -> None:
        """Build everything anew, or refuse what does not fit."""

    def learn(
        self, ids: NDArray[np.int32], labels: NDArray[np.uint8], logits: NDArray[np.float32]
    ) -> None:
        """Take one step; ``logits`` takes the log odds before it."""

    def predict(self, ids: NDArray[np.int32]) -> NDArray[np.float32]:
        """Log odds of samples."""

    def finite(self) -> bool:
        """Whether all weights are numbers."""

    def agreed(self, flag: bool) -> bool:
        """Whether any process has the flag."""

    def save(self, folder: Path, tensors: dict[str, Tensor], description: dict[str, Any]) -> None:
        """Write a checkpoint, with some tensors of the run."""

    def load(self, folder: Path, tensors: dict[str, Tensor]) -> dict[str, Any]:
        """Go on from a checkpoint; the run's tensors are read in place."""

    def save_model(self, folder: Path, description: dict[str, Any]) -> None:
        """Write what is left in the end."""

    def load_model(self, folder: Path) -> None:
        """Take what a run that came to its end has left."""


class LocalTrainer:
    """Training in this process."""

    leads = True

    def __init__(self, stream: Stream, rule: Rule, settings: Settings, threads: int | None) -> None:
        self.stream, self.rule, self.settings, self.threads = stream, rule, settings, threads
        self.torch_threads: int | None = None
        self.order = np.arange(settings.batch_size)
        self.lrs = np.array([rule.law.lr])

    def begin(self) -> None:
        """Build everything anew, or refuse what does not fit."""
        settings = self.settings
        check_memory(stream_plan(self.stream, self.rule, settings))
        self.model: FM = new_model(self.stream.fields, settings)
        self.engine = engine_for(
            self.model,
            self.rule,
            seed=settings.seed,
            batch_size=settings.batch_size,
            threads=self.threads,
            expected=self.stream.summary()["rows"] or 0,
        )
        self.torch_threads = self.engine.torch_threads

    @property
    def samples(self) -> int:
        """Learned so far."""
        return self.engine.samples

    @property
    def steps(self) -> int:
        """Taken so far."""
        return self.engine.steps

    @property
    def about(self) -> dict[str, Any]:
        """What the record tells of it."""
        return {
            "state_bytes": self.engine.state_bytes,
            "state_rule": self.rule.keeps,
            "parameter_bytes": sum(p.nbytes for p in self.model.parameters()),
        }

    def learn(
        self, ids: NDArray[np.int32], labels: NDArray[np.uint8], logits: NDArray[np.float32]
    ) -> None:
        """Take one step; ``logits`` takes the log odds before it."""
        for _ in self.engine.train(ids, labels, self.order[: len(labels)], self.lrs, logits=logits):
            pass

    def predict(self, ids: NDArray[np.int32]) -> NDArray[np.float32]:
        """Log odds of samples."""
        return self.engine.predict(ids)

    def finite(self) -> bool:
        """Whether all weights are numbers."""
        norms = (torch.linalg.vector_norm(each.detach()) for each in self.model.parameters())
        return all(math.isfinite(norm) for norm in norms)

    def agreed(self, flag: bool) -> bool:
        """The flag: there is no other process."""
        return flag

    def save(self, folder: Path, tensors: dict[str, Tensor], description: dict[str, Any]) -> None:
        """Write a checkpoint, with some tensors of the run; without, the weights stay behind."""
        whole = {**self._tensors(), **tensors} if tensors else {}
        checkpoint.save(folder / CHECKPOINT, whole, description)

    def load(self, folder: Path, tensors: dict[str, Tensor]) -> dict[str, Any]:
        """Go on from a checkpoint, whose tensors are read into those of the run."""
        path = folder / CHECKPOINT
        model_folder.check_whole(path, checkpoint.describe(path))
        loaded, saved = checkpoint.load(path, {**self._tensors(), **tensors})
        if loaded:
            self.model.load_state_dict(part_of(loaded, "model"))
            state = part_of(loaded, "optimizer")
            self.engine.load_state(state, saved["samples"], saved["steps"])
        return saved

    def save_model(self, folder: Path, description: dict[str, Any]) -> None:
        """Write the model's folder."""
        model_folder.save_model(folder, self.model, self.stream, description)

    def load_model(self, folder: Path) -> None:
        """Take the model of a run that came to its end."""
        self.model = model_folder.load_model(folder)[0]

    def _tensors(self) -> dict[str, Tensor]:
        return in_parts(model=self.model.state_dict(), optimizer=self.engine.state)
