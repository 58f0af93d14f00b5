"""Sources of samples: generated clicks, MovieLens, Criteo, and tables of your own."""

from freqsgd.data.dataset import ABSENT, RARE, DataError, Dataset, DataWarning, Field, Splits

__all__ = ["ABSENT", "RARE", "DataError", "DataWarning", "Dataset", "Field", "Splits"]
