"""Options that say which table or stream to read, and how to use its columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from freqsgd.errors import DataError
from freqsgd.tables.catalog import table_dataset
from freqsgd.tables.checks import check_columns, refuse_options
from freqsgd.tables.dialect import Dialect
from freqsgd.tables.splits import split_column
from freqsgd.tables.synthetic import TAILS

if TYPE_CHECKING:
    from freqsgd.tables.click_log import ClickLog

__all__ = ["DataOptions", "StreamOptions"]


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


_CLICKS = "clicks-small"


@dataclass(frozen=True)
class StreamOptions:
    """A generated click log, or days of files of one's own and how to use their columns.

    Misused options raise ``DataError`` when the stream is opened.
    """

    dataset: str | None = None  # "clicks-small"
    path: str | None = None  # days: a folder of folders or files, a file, or wildcards
    label: str | None = None
    features: tuple[str, ...] = ()  # columns of categories of any type; lists are bags
    numeric: tuple[str, ...] = ()  # columns of numbers, put into bins by the log rule
    positive_above: float | None = None  # the label is 1 where its column is above this
    max_bad_rows: int = 0  # of the whole stream
    hash_rows: str = ""  # rows of the table of each field: "1000000", or "user=1e5,item=1e6"
    dictionary: str | None = None  # a folder with the token dictionaries of a trained model
    skip_bad_files: bool = False
    allow_missing_days: bool = False
    clicks: ClickLog | None = None  # a click log of one's own
    separator: str | None = None  # between the cells of text files; None: by the end of the name
    columns: tuple[str, ...] = ()  # names of all columns, of text files without a header

    def __post_init__(self) -> None:
        for name in ("features", "numeric", "columns"):  # lists, where the options come from JSON
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @property
    def dialect(self) -> Dialect:
        """How text files are laid out."""
        return Dialect(self.separator, self.columns)

    def check(self) -> None:
        """Raise unless the options fit together."""
        if self.path is not None:
            self._check_own()
        else:
            self._check_generated()
        if self.max_bad_rows < 0:
            raise DataError(f"max bad rows must not be negative, as {self.max_bad_rows} is")

    def _check_own(self) -> None:
        refuse_options(self, "own files", "dataset", "clicks")
        if self.dictionary is not None:
            refuse_options(self, "--dictionary", "hash_rows", "features", "numeric")
        elif not self.hash_rows:
            raise DataError(
                f"{self.path}: say how many rows tokens are hashed to (--hash-rows 1000000), or "
                "name a model with the same features (--dictionary)"
            )
        elif not (self.features or self.numeric):
            raise DataError(f"{self.path}: name the columns that are features, or numeric ones")
        if self.label is None:
            raise DataError(f"{self.path}: name the column that holds the label")
        check_columns(self.path, self.features, self.numeric, "log", self.label)

    def _check_generated(self) -> None:
        if self.clicks is None and self.dataset != _CLICKS:
            what = "name the files" if self.dataset is None else f"{self.dataset!r} is no stream"
            raise DataError(f"{what}; the generated stream is {_CLICKS!r}")
        if self.clicks is not None and self.dataset is not None:
            raise DataError(f"a click log of one's own does not go with the dataset {_CLICKS}")
        names = ("label", "features", "numeric", "positive_above", "max_bad_rows")
        more = ("dictionary", "skip_bad_files", "allow_missing_days", "separator", "columns")
        refuse_options(self, "generated clicks", *names, *more)
