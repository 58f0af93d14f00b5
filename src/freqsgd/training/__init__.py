"""Training recommenders and word vectors: the loop, its metrics, checkpoints and results."""

from freqsgd.training.compare import compare
from freqsgd.training.engine import Engine
from freqsgd.training.fit import fit
from freqsgd.training.fit_text import fit_text
from freqsgd.training.predictor import Predictor
from freqsgd.training.rules import OPTIMIZERS, Rule
from freqsgd.training.settings import Settings
from freqsgd.training.text_settings import TextSettings

__all__ = [
    "OPTIMIZERS",
    "Engine",
    "Predictor",
    "Rule",
    "Settings",
    "TextSettings",
    "compare",
    "fit",
    "fit_text",
]
