"""Training recommenders: the loop, its metrics, checkpoints and results."""

from freqsgd.training.compare import compare
from freqsgd.training.engine import Engine, Predictor
from freqsgd.training.fit import fit
from freqsgd.training.rules import OPTIMIZERS, Rule
from freqsgd.training.settings import Settings

__all__ = ["OPTIMIZERS", "Engine", "Predictor", "Rule", "Settings", "compare", "fit"]
