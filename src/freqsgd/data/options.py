"""What is asked for as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from freqsgd.data.catalogue import table_dataset
from freqsgd.data.dataset import DataError
from freqsgd.data.dialect import Dialect
from freqsgd.data.option_checks import check_columns, refuse_options
from freqsgd.data.splits import split_column
from freqsgd.data.synthetic import TAILS, clicks_dataset, generate_clicks

if TYPE_CHECKING:
    from freqsgd.data.dataset import Dataset

__all__ = ["DataOptions", "load"]


@dataclass(frozen=True)
class DataOptions:
    """A dataset that is known by name, or files of one's own and how to use their columns.

    Misused options raise ``DataError`` when the data is loaded.
    """

    dataset: str | None = None  # "synthetic" (if there is no path), "movielens-1m", "criteo"
    path: str | None = None  # .csv, .tsv, .inter, .parquet, ..., or a folder of one kind of these
    label: str | None = None
    features: tuple[str, ...] = ()  # columns of categories of any type; lists are bags
    numeric: tuple[str, ...] = ()  # columns of numbers, which are put into bins
    numeric_rule: str = "log"  # floor(log(x)^2) for x > 2, else floor(x) - 2; or "quantiles"
    positive_above: float | None = None  # the label is 1 where its column is above this
    min_count: int | None = None  # tokens seen less often are rare; 10 for criteo, otherwise 1
    max_bad_rows: int = 0
    split: str = "random"  # or "time:COLUMN", "column:COLUMN"
    validation_path: str | None = None
    test_path: str | None = None
    split_seed: int = 0
    tail: str = "polynomial"  # of the synthetic tokens' frequencies, or "exponential"
    samples: int = 450_000  # how many synthetic ones
    separator: str | None = None  # between the cells of text files; None: by the end of the name
    columns: tuple[str, ...] = ()  # names of all columns, of text files without a header

    def __post_init__(self) -> None:
        for name in ("features", "numeric", "columns"):  # lists, where the options come from JSON
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @property
    def name(self) -> str | None:
        """The dataset that is known by name; None for files of one's own."""
        return self.dataset or ("synthetic" if self.path is None else None)

    @property
    def dialect(self) -> Dialect:
        """How text files are laid out."""
        return Dialect(self.separator, self.columns)

    def check(self) -> None:
        """Raise unless the options fit together."""
        if self.path is not None:
            self._check_own()
        else:
            self._check_known()
        split_column(self.split)
        if self.min_count is not None and self.min_count < 1:
            raise DataError(f"min count must be at least 1, not {self.min_count}")
        if self.split_seed < 0:
            raise DataError(f"split seed must not be negative, as {self.split_seed} is")
        if self.max_bad_rows < 0:
            raise DataError(f"max bad rows must not be negative, as {self.max_bad_rows} is")

    def _check_own(self) -> None:
        refuse_options(self, "own files", "dataset", "tail", "samples")
        if self.label is None:
            raise DataError(f"{self.path}: name the column that holds the label")
        if not (self.features or self.numeric):
            raise DataError(f"{self.path}: name the columns that are features, or numeric ones")
        check_columns(self.path, self.features, self.numeric, self.numeric_rule, self.label)
        if self.split != "random" and (self.validation_path or self.test_path):
            raise DataError(
                f"the split {self.split!r} does not go with files for validation or testing"
            )

    def _check_known(self) -> None:
        name = table_dataset(self.dataset or "synthetic").name
        where = f"the dataset {name}"
        refuse_options(
            self,
            where,
            "label",
            "features",
            "numeric",
            "numeric_rule",
            "validation_path",
            "test_path",
            "separator",
            "columns",
        )
        if name == "synthetic":
            refuse_options(self, where, "positive_above", "min_count", "max_bad_rows", "split")
            if self.tail not in TAILS:
                raise DataError(f"unknown tail {self.tail!r}: known are {', '.join(TAILS)}")
        else:
            refuse_options(self, where, "tail", "samples")
        if name == "criteo":
            refuse_options(self, where, "positive_above")


def load(
    options: DataOptions, *, progress: Callable[[str, int, int | None], None] | None = None
) -> Dataset:
    """Load the data, encoding it first unless that was done before.

    Args:
        options: what to load
        progress: called now and then during long work with its stage, how much is done, and how
            much there is in all (None if unknown)

    Raises:
        DataError: it is not there, cannot be used, or the options do not fit together

    Example:
        >>> dataset = load(DataOptions(samples=1000))
        >>> dataset.ids.shape, len(dataset.splits.train)
        ((1000, 2), 800)
    """
    options.check()
    if options.path is None and options.dataset in (None, "synthetic"):
        clicks = generate_clicks(options.samples, tail=options.tail)
        return clicks_dataset(clicks, options.split_seed)
    try:
        from freqsgd.data.loading import load_files
    except ImportError as error:
        raise DataError(f"files are read with {error.name}: pip install 'freqsgd[cli]'") from error
    return load_files(options, progress)
