"""Sources of samples: generated clicks, MovieLens, Criteo, and tables of your own."""

from freqsgd.data.dataset import ABSENT, RARE, DataError, Dataset, DataWarning, Field, Splits
from freqsgd.data.options import DataOptions, load

__all__ = [
    "ABSENT",
    "RARE",
    "DataError",
    "DataOptions",
    "DataWarning",
    "Dataset",
    "Field",
    "Splits",
    "load",
]
