"""Train embedding tables with a learning rate per token that follows how often it is seen."""

from typing import Any

from freqsgd.optim import CFSGD, FASGD, param_groups, watch
from freqsgd.rates import RateLaw, paper_rates, token_frequencies

__version__ = "0.1.0"
__all__ = ["CFSGD", "FASGD", "RateLaw", "paper_rates", "param_groups", "token_frequencies", "watch"]


def __getattr__(name: str) -> Any:
    if name == "nn":  # loads Numba, which the optimizers load when they first need it
        import importlib

        return importlib.import_module("freqsgd.nn")
    if name in ("FMClassifier", "DeepFMClassifier"):
        try:
            import freqsgd.sklearn
        except ImportError as error:
            missing = str(error.name).partition(".")[0]
            raise ImportError(
                f"freqsgd.{name} needs {missing}: pip install 'freqsgd[sklearn]'"
            ) from error
        return getattr(freqsgd.sklearn, name)
    raise AttributeError(f"module 'freqsgd' has no attribute {name!r}")
