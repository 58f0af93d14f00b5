"""A learning rate that finds itself."""

from __future__ import annotations

from freqsgd.data.dataset import Dataset
from freqsgd.training.presets import preset_rate
from freqsgd.training.rules import Rule
from freqsgd.training.settings import Settings

__all__ = ["find_lr"]


def find_lr(data: Dataset, rule: Rule, settings: Settings, *, threads: int | None = None) -> float:
    """The learning rate for a rule, whose own is ignored."""
    return preset_rate(None, settings.model, rule.optimizer)
