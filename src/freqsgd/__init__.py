"""Train embedding tables with a learning rate per token that follows how often it is seen."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from freqsgd._lazy import lazy_names

if TYPE_CHECKING:
    from freqsgd import nn as nn
    from freqsgd import optim as optim
    from freqsgd import rates as rates
    from freqsgd.estimators.word2vec import Word2Vec as Word2Vec
    from freqsgd.optim import CFSGD, FASGD, CFAdam, param_groups
    from freqsgd.optim.watch import watch
    from freqsgd.rates import RateLaw, paper_rates, token_frequencies
    from freqsgd.sklearn import DeepFMClassifier as DeepFMClassifier
    from freqsgd.sklearn import FMClassifier as FMClassifier

__version__ = "0.1.0"
__all__ = [
    "CFSGD",
    "FASGD",
    "CFAdam",
    "RateLaw",
    "paper_rates",
    "param_groups",
    "token_frequencies",
    "watch",
]

_SUBPACKAGES = ("nn", "optim", "rates")
_EXTRAS = {  # the extra that installs what a name needs
    "FMClassifier": "sklearn",
    "DeepFMClassifier": "sklearn",
    "Word2Vec": "text",
}
_find, __dir__ = lazy_names(
    __name__,
    optim="CFAdam CFSGD FASGD param_groups watch",
    rates="RateLaw paper_rates token_frequencies",
    sklearn="DeepFMClassifier FMClassifier",
    **{"estimators.word2vec": "Word2Vec"},
)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _SUBPACKAGES:
            return import_module(f"freqsgd.{name}")
        try:
            return _find(name)
        except ImportError as error:
            if name not in _EXTRAS:
                raise
            missing = str(error.name).partition(".")[0]
            raise ImportError(
                f"freqsgd.{name} needs {missing}: pip install 'freqsgd[{_EXTRAS[name]}]'"
            ) from error
