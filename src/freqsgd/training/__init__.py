"""Training recommenders and word vectors: the loop, its metrics, checkpoints and results."""

from typing import TYPE_CHECKING

from freqsgd._lazy import lazy_names

if TYPE_CHECKING:
    from freqsgd.training.comparison import compare
    from freqsgd.training.engine import Engine
    from freqsgd.training.predictor import Predictor
    from freqsgd.training.recommender_fit import fit
    from freqsgd.training.rules import OPTIMIZERS, Rule
    from freqsgd.training.settings import Settings
    from freqsgd.training.text_settings import TextSettings
    from freqsgd.training.words_fit import fit_text

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

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Engine": "freqsgd.training.engine",
            "OPTIMIZERS": "freqsgd.training.rules",
            "Predictor": "freqsgd.training.predictor",
            "Rule": "freqsgd.training.rules",
            "Settings": "freqsgd.training.settings",
            "TextSettings": "freqsgd.training.text_settings",
            "compare": "freqsgd.training.comparison",
            "fit": "freqsgd.training.recommender_fit",
            "fit_text": "freqsgd.training.words_fit",
        },
    )
