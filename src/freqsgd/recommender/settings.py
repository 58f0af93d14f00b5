"""What all optimizers of a comparison share."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["MODELS", "Settings"]

MODELS = {"fm": 64, "deepfm": 16}  # and their dimensions in the paper


@dataclass(frozen=True)
class Settings:
    """What all optimizers of a comparison share.

    Args:
        model: "fm" or "deepfm"
        dim: size of the vectors; None for the paper's, 64 for FM and 16 for DeepFM
        hidden, dropout: of DeepFM's network
        init_scale: times the xavier-uniform start of the vectors
        epochs: at most
        patience: stop after so many epochs without a better validation AUC, and keep the best;
            None to train for all epochs and keep the last
        batch_size: samples of a step
        lr_decay: "constant", or "linear": to 0 over all ``epochs``, step by step
        seed: of the start, the order of the samples, and dropout
        checkpoint_steps: write a checkpoint after so many steps too, not only after each epoch
    """

    model: str = "fm"
    dim: int | None = None
    hidden: tuple[int, ...] = (16, 16)
    dropout: float = 0.2
    init_scale: float = 1.0
    epochs: int = 60
    patience: int | None = 5
    batch_size: int = 1024
    lr_decay: str = "constant"
    seed: int = 0
    checkpoint_steps: int | None = None

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise ValueError(f"unknown model {self.model!r}; known: {', '.join(MODELS)}")
        if self.lr_decay not in ("constant", "linear"):
            raise ValueError(f"lr_decay must be constant or linear, got {self.lr_decay!r}")
        for name in ("epochs", "patience", "batch_size", "dim", "checkpoint_steps"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        if any(size < 1 for size in self.hidden):
            raise ValueError(f"hidden must be sizes of at least 1, got {list(self.hidden)}")
        if not 0 < self.init_scale <= 1e6:
            raise ValueError(f"init_scale must be a number > 0, at most 1e6, got {self.init_scale}")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must lie in [0, 1), got {self.dropout}")
        if not 0 <= self.seed < 2**31:
            raise ValueError(f"seed must be a number from 0 to 2^31 - 1, got {self.seed}")

    @property
    def vector_dim(self) -> int:
        """The size of the vectors."""
        return MODELS[self.model] if self.dim is None else self.dim

    @property
    def about_model(self) -> dict[str, Any]:
        """The model, as ``results.json`` describes it."""
        hidden = list(self.hidden) if self.model == "deepfm" else []
        return {"name": self.model, "dim": self.vector_dim, "hidden": hidden}

    @property
    def plain(self) -> dict[str, Any]:
        """The settings that apply to the model, as JSON reads them back: lists for tuples."""
        only_deep = () if self.model == "deepfm" else ("hidden", "dropout")
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in asdict(self).items()
            if key not in only_deep
        }
