"""Factorization machines, plain and deep: training, one pass, search, prediction."""

from typing import TYPE_CHECKING

from freqsgd._lazy import lazy_names

if TYPE_CHECKING:
    from freqsgd.recommender.engine import Engine
    from freqsgd.recommender.one_pass import fit_stream
    from freqsgd.recommender.predict import Predictor
    from freqsgd.recommender.settings import Pass, Settings
    from freqsgd.recommender.training import fit

__all__ = ["Engine", "Pass", "Predictor", "Settings", "fit", "fit_stream"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        engine="Engine",
        one_pass="fit_stream",
        predict="Predictor",
        settings="Pass Settings",
        training="fit",
    )
