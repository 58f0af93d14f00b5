"""Sources of samples, generated or of files: tables for recommenders, text for word vectors."""

from freqsgd.data.corpus import Corpus, Paragraphs
from freqsgd.data.dataset import ABSENT, RARE, DataError, Dataset, DataWarning, Field, Splits
from freqsgd.data.options import DataOptions, load
from freqsgd.data.text_options import TextOptions, load_text

__all__ = [
    "ABSENT",
    "RARE",
    "Corpus",
    "DataError",
    "DataOptions",
    "DataWarning",
    "Dataset",
    "Field",
    "Paragraphs",
    "Splits",
    "TextOptions",
    "load",
    "load_text",
]
