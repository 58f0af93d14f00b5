"""Sources of samples, generated or of files: tables for recommenders, text for word vectors."""

from typing import TYPE_CHECKING

from freqsgd._lazy import lazy_names

if TYPE_CHECKING:
    from freqsgd.data.corpus import Corpus, Paragraphs
    from freqsgd.data.dataset import DataError, Dataset, DataWarning
    from freqsgd.data.fields import ABSENT, RARE, Field
    from freqsgd.data.options import DataOptions, load
    from freqsgd.data.splits import Splits
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

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "ABSENT": "freqsgd.data.fields",
            "Corpus": "freqsgd.data.corpus",
            "DataError": "freqsgd.data.dataset",
            "DataOptions": "freqsgd.data.options",
            "DataWarning": "freqsgd.data.dataset",
            "Dataset": "freqsgd.data.dataset",
            "Field": "freqsgd.data.fields",
            "Paragraphs": "freqsgd.data.corpus",
            "RARE": "freqsgd.data.fields",
            "Splits": "freqsgd.data.splits",
            "TextOptions": "freqsgd.data.text_options",
            "load": "freqsgd.data.options",
            "load_text": "freqsgd.data.text_options",
        },
    )
