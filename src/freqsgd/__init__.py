"""Train embedding tables with a learning rate per token that follows how often it is seen."""

from typing import Any

from freqsgd.optim import CFSGD, FASGD, param_groups, watch
from freqsgd.rates import RateLaw, paper_rates, token_frequencies

__version__ = "0.1.0"
__all__ = ["CFSGD", "FASGD", "RateLaw", "paper_rates", "param_groups", "token_frequencies", "watch"]


_EXTRAS = {  # where a name comes from, and the extra that installs what it needs
    "FMClassifier": ("freqsgd.sklearn", "sklearn"),
    "DeepFMClassifier": ("freqsgd.sklearn", "sklearn"),
    "Word2Vec": ("freqsgd.word2vec", "text"),
}


def __getattr__(name: str) -> Any:
    import importlib

    if name == "nn":  # loads Numba, which the optimizers load when they first need it
        return importlib.import_module("freqsgd.nn")
    if name in _EXTRAS:
        module, extra = _EXTRAS[name]
        try:
            return getattr(importlib.import_module(module), name)
        except ImportError as error:
            missing = str(error.name).partition(".")[0]
            raise ImportError(
                f"freqsgd.{name} needs {missing}: pip install 'freqsgd[{extra}]'"
            ) from error
    raise AttributeError(f"module 'freqsgd' has no attribute {name!r}")
