"""Options that say what to inspect."""

from __future__ import annotations

from dataclasses import dataclass

from freqsgd.errors import DataError
from freqsgd.tables.catalog import known_dataset
from freqsgd.tables.checks import (
    check_columns,
    refuse_options,
    whole_number,
)
from freqsgd.tables.dialect import Dialect

__all__ = ["InspectionOptions"]


@dataclass(frozen=True)
class InspectionOptions:
    """A dataset that is known by name, or files of one's own; no label is needed.

    Args:
        dataset: "synthetic" (if there is no path), "movielens-1m", "criteo", "zipf-text", ...
        path: files of one's own, as ``DataOptions`` and, with ``text``, ``TextOptions`` take them
        text: whether the path is plain text
        label: a column that is no field
        features: columns of categories; without any, all columns but the label and numeric ones
        numeric: columns of numbers, which are put into bins
        numeric_rule: how: "log" or "quantiles"
        min_count: tokens that were seen less often count as one token, words are left out; None:
            what training takes, 10 for criteo, 50 for wikitext, 5 for other text, otherwise 1
        max_bad_rows: malformed rows that are left out
        dim: size of the vectors whose memory is reckoned
        separator: what stands between the cells of a table's text files; None: what the end of the
            name tells
        columns: names of all columns, of a table's text files without a header
    """

    dataset: str | None = None
    path: str | None = None
    text: bool = False
    label: str | None = None
    features: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    numeric_rule: str = "log"
    min_count: int | None = None
    max_bad_rows: int = 0
    dim: int = 64
    separator: str | None = None
    columns: tuple[str, ...] = ()

    @property
    def dialect(self) -> Dialect:
        """How text files of a table are laid out."""
        return Dialect(self.separator, self.columns)

    @property
    def is_text(self) -> bool:
        """Whether words are looked at, not the columns of a table."""
        return self.text or (self.path is None and known_dataset(self.name).text)

    @property
    def name(self) -> str:
        """The dataset that is known by name, if there is no path."""
        return "synthetic" if self.dataset is None else self.dataset

    def check(self) -> None:
        """Raise unless the options fit together."""
        columns = ("label", "features", "numeric", "numeric_rule", "separator", "columns")
        if self.path == "":
            raise DataError("the path of the data is empty: name a file or folder")
        if self.path is not None:
            refuse_options(self, "own files", "dataset")
        else:
            known_dataset(self.name)
            refuse_options(self, f"the dataset {self.name}", "text", *columns)
        if self.is_text:
            refuse_options(self, "text", *columns, "max_bad_rows")
        if self.label == "":
            raise DataError(f"{self.path}: the name of the label is empty")
        check_columns(self.path, self.features, self.numeric, self.numeric_rule, self.label)
        whole_number("dim", self.dim, least=1)
        if self.min_count is not None:
            whole_number("min count", self.min_count, least=1)
        whole_number("max bad rows", self.max_bad_rows, least=0)
