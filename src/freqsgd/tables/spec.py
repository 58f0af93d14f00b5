"""Options that say which table or stream to read, and how to use its columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from freqsgd.checks import refuse_options
from freqsgd.errors import DataError
from freqsgd.tables.catalog import known_dataset
from freqsgd.tables.fields import split_column
from freqsgd.tables.generated.synthetic import TAILS
from freqsgd.tables.readers.dialect import Dialect, split_type

if TYPE_CHECKING:
    from freqsgd.tables.generated.click_log import ClickLog
    from freqsgd.tables.readers.reader import Reader

_NUMERIC_RULES = ("log", "quantiles")


@dataclass(frozen=True)
class TableOptions:
    """What all options say: which data to read, and what its columns are for."""

    dataset: str | None = None  # known by name
    path: str | None = None  # a file, a folder of files, days of these, or wildcards
    label: str | None = None
    features: tuple[str, ...] = ()  # columns of categories of any type; lists are bags
    numeric: tuple[str, ...] = ()  # columns of numbers, which are put into bins
    max_bad_rows: int = 0
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
        """Raise if a column has two uses, or a value is out of range."""
        for name, times in Counter([*self.features, *self.numeric]).items():
            if times > 1:
                raise DataError(f"{self.path}: the column {name!r} is named twice as a feature")
            if name == self.label:
                raise DataError(f"{self.path}: the column {name!r} cannot be feature and label")
        rule = getattr(self, "numeric_rule", "log")
        if rule not in _NUMERIC_RULES:
            known = ", ".join(_NUMERIC_RULES)
            raise DataError(f"unknown numeric rule {rule!r}: known are {known}")
        min_count = getattr(self, "min_count", None)
        if min_count is not None and min_count < 1:
            raise DataError(f"min count must be at least 1, not {min_count}")
        for name in ("split_seed", "max_bad_rows"):
            if (value := getattr(self, name, 0)) < 0:
                raise DataError(f"{name.replace('_', ' ')} must not be negative, as {value} is")

    def without_types(self, reader: Reader) -> Self:
        """Return options that name columns of a typed file without their types.

        In a file with the header ``user_id:token``, both this and ``user_id`` name the column.
        """
        if not reader.typed:
            return self
        named: dict[str, Any] = {
            name: tuple(split_type(column)[0] for column in getattr(self, name))
            for name in ("features", "numeric")
        }
        if self.label:
            named["label"] = split_type(self.label)[0]
        by, column = split_column(getattr(self, "split", "random"))
        if column:
            named["split"] = f"{by}:{split_type(column)[0]}"
        changed = replace(self, **named)
        changed.check()  # a column may be named both ways
        return changed

    def _check_label(self) -> None:
        if self.label is None:
            raise DataError(f"{self.path}: name the column that holds the label")

    def _check_features(self) -> None:
        if not (self.features or self.numeric):
            raise DataError(f"{self.path}: name the columns that are features, or numeric ones")


@dataclass(frozen=True)
class DataOptions(TableOptions):
    """A dataset that is known by name, or files of one's own and how to use their columns.

    ``dataset`` is "synthetic" (if there is no path), "movielens-1m" or "criteo". Misused options
    raise ``DataError`` when the data is loaded.
    """

    numeric_rule: str = "log"  # floor(log(x)^2) for x > 2, else floor(x) - 2; or "quantiles"
    positive_above: float | None = None  # the label is 1 where its column is above this
    min_count: int | None = None  # tokens seen less often are rare; 10 for criteo, otherwise 1
    split: str = "random"  # or "time:COLUMN", "column:COLUMN"
    validation_path: str | None = None
    test_path: str | None = None
    split_seed: int = 0
    tail: str = "polynomial"  # of the synthetic tokens' frequencies, or "exponential"
    samples: int = 450_000  # how many synthetic ones

    @property
    def name(self) -> str | None:
        """The dataset that is known by name; None for files of one's own."""
        return self.dataset or ("synthetic" if self.path is None else None)

    def check(self) -> None:
        """Raise unless the options fit together."""
        if self.path is not None:
            refuse_options(self, "own files", "dataset", "tail", "samples")
            self._check_label()
            self._check_features()
        else:
            self._check_known()
        super().check()
        split_column(self.split)
        if self.split != "random" and (self.validation_path or self.test_path):
            raise DataError(
                f"the split {self.split!r} does not go with files for validation or testing"
            )

    def _check_known(self) -> None:
        dataset = known_dataset(self.dataset or "synthetic", "table")
        refused = ["label", "features", "numeric", "numeric_rule", "validation_path", "test_path"]
        refused += ["separator", "columns"]
        if dataset.file is None:
            refused += ["positive_above", "min_count", "max_bad_rows", "split"]
        else:
            refused += ["tail", "samples"]
            refused += ["positive_above"] if dataset.positive_above is None else []
        refuse_options(self, f"the dataset {dataset.name}", *refused)
        if self.tail not in TAILS:
            raise DataError(f"unknown tail {self.tail!r}: known are {', '.join(TAILS)}")


_CLICKS = "clicks-small"


@dataclass(frozen=True)
class StreamOptions(TableOptions):
    """A generated click log, or days of files of one's own and how to use their columns.

    ``dataset`` is "clicks-small". Numbers are put into bins by the log rule, and ``max_bad_rows``
    are those of the whole stream. Misused options raise ``DataError`` when the stream is opened.
    """

    positive_above: float | None = None  # the label is 1 where its column is above this
    hash_rows: str = ""  # rows of the table of each field: "1000000", or "user=1e5,item=1e6"
    dictionary: str | None = None  # a folder with the token dictionaries of a trained model
    skip_bad_files: bool = False
    allow_missing_days: bool = False
    clicks: ClickLog | None = None  # a click log of one's own

    def check(self) -> None:
        """Raise unless the options fit together."""
        if self.path is not None:
            self._check_own()
        else:
            self._check_generated()
        super().check()

    def _check_own(self) -> None:
        refuse_options(self, "own files", "dataset", "clicks")
        if self.dictionary is not None:
            refuse_options(self, "dictionary", "hash_rows", "features", "numeric")
        elif not self.hash_rows:
            raise DataError(
                f"{self.path}: say how many rows tokens are hashed to (--hash-rows 1000000), or "
                "name a model with the same features (--dictionary)"
            )
        else:
            self._check_features()
        self._check_label()

    def _check_generated(self) -> None:
        if self.clicks is None and self.dataset != _CLICKS:
            what = "name the files" if self.dataset is None else f"{self.dataset!r} is no stream"
            raise DataError(f"{what}; the generated stream is {_CLICKS!r}")
        if self.clicks is not None and self.dataset is not None:
            raise DataError(f"a click log of one's own does not go with the dataset {_CLICKS}")
        names = ("label", "features", "numeric", "positive_above", "max_bad_rows")
        more = ("dictionary", "skip_bad_files", "allow_missing_days", "separator", "columns")
        refuse_options(self, "generated clicks", *names, *more)


_MOST_ROWS = 2**31 - 1


def parse_rows(text: str, fields: Sequence[str]) -> list[int]:
    """Return the rows of each field: one number for all of them, or ``user=1e5,item=1e6``.

    Example:
        >>> parse_rows("user=1e5,item=1e6", ["item", "user"])
        [1000000, 100000]
    """
    if "=" not in text:
        return [_row_number(text)] * len(fields)
    stated: dict[str, int] = {}
    for part in text.split(","):
        name, _, number = (piece.strip() for piece in part.rpartition("="))
        if name not in fields:
            raise DataError(
                f"hash rows {text!r}: there is no feature {name!r}; the features are "
                f"{', '.join(fields)}"
            )
        if name in stated:
            raise DataError(f"hash rows {text!r}: {name!r} is named twice")
        stated[name] = _row_number(number)
    missing = [name for name in fields if name not in stated]
    if missing:
        raise DataError(f"hash rows {text!r}: say how many for {', '.join(missing)} too")
    return [stated[name] for name in fields]


def _row_number(text: str) -> int:
    try:
        value = float(text)
        rows = int(value)
    except (ValueError, OverflowError):
        raise DataError(f"hash rows: {text!r} is not a number such as 1000000 or 1e6") from None
    if rows != value or not 1 <= rows <= _MOST_ROWS:
        raise DataError(f"hash rows must be a whole number from 1 to {_MOST_ROWS:,}, not {text}")
    return rows
