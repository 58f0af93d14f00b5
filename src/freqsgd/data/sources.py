"""From data options to files and columns that can be encoded."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from freqsgd.data.cache import file_key
from freqsgd.data.catalogue import known_dataset, locate
from freqsgd.data.columns import Column
from freqsgd.data.encoding import Source
from freqsgd.data.formats import (
    CRITEO,
    CRITEO_COLUMNS,
    MOVIELENS,
    MOVIELENS_COLUMNS,
    format_of,
    list_files,
    refuse_parquet,
)
from freqsgd.data.option_checks import without_types
from freqsgd.data.schema import check_file, check_names
from freqsgd.data.splits import split_column
from freqsgd.data.tables import table_columns
from freqsgd.data.target import Target

if TYPE_CHECKING:
    from freqsgd.data.options import DataOptions

__all__ = ["Request"]

_FORMAT = 3  # of the encoded samples: raised when they change, so that old ones are made anew
_MIN_COUNT = {"criteo": 10}


@dataclass(frozen=True)
class Request:
    """The files that the options name; what is in them is looked at only by ``source``."""

    options: DataOptions
    name: str
    kind: str  # the layout of the files, as for an Encoder
    files: tuple[Path, ...]
    validation: tuple[Path, ...] = ()
    test: tuple[Path, ...] = ()

    @classmethod
    def of(cls, options: DataOptions) -> Request:
        """Find the files."""
        if options.path is None:
            dataset = known_dataset(options.dataset or "synthetic")
            return cls(options, dataset.name, dataset.name, (locate(dataset),))
        own = [
            list_files(Path(path)) if path else ()
            for path in (options.path, options.validation_path, options.test_path)
        ]
        refuse_parquet(chain(*own), options.dialect)
        name = Path(options.path).resolve().name.partition(".")[0]
        options = without_types(options, format_of(own[0][0], options.dialect))
        return cls(options, name, "table", *own)

    def key(self) -> dict[str, Any]:
        """What the encoded samples depend on."""
        options = self.options
        return {
            "format": _FORMAT,
            "kind": self.kind,
            "files": [
                [file_key(path) for path in files]
                for files in (self.files, self.validation, self.test)
            ],
            "label": options.label,
            "features": options.features,
            "numeric": options.numeric,
            "numeric_rule": options.numeric_rule,
            "positive_above": options.positive_above,
            "min_count": self._min_count(),
            "max_bad_rows": options.max_bad_rows,
            "split": options.split,
            "dialect": asdict(options.dialect),
        }

    def source(self) -> Source:
        """Look into the files, and say how their columns are to be used."""
        target = self._target()
        return Source(
            self.kind,
            self.files,
            self._columns(target),
            target,
            self._min_count(),
            self.options.max_bad_rows,
            self.validation,
            self.test,
            self.options.dialect,
        )

    def _min_count(self) -> int:
        own = self.options.min_count
        return _MIN_COUNT.get(self.kind, 1) if own is None else own

    def _target(self) -> Target:
        options = self.options
        by, column = split_column(options.split)
        label, above = options.label, options.positive_above
        if self.kind == "movielens-1m":
            label, above = "rating", 3.0 if above is None else above
        elif self.kind == "criteo":
            label = "label"
        assert label
        return Target(
            label,
            above,
            time=column if by == "time" else None,
            part=column if by == "column" else None,
        )

    def _columns(self, target: Target) -> tuple[Column, ...]:
        options, others = self.options, target.columns()
        if self.kind == "movielens-1m":
            check_names(self.files[0], MOVIELENS, list(MOVIELENS_COLUMNS), others)
            return Column("user"), Column("movie")
        if self.kind == "criteo":
            check_names(self.files[0], CRITEO, list(CRITEO_COLUMNS), others)
            integers, categories = CRITEO_COLUMNS[1:14], CRITEO_COLUMNS[14:]
            return (
                *(Column(name, "integer") for name in integers),
                *(Column(name) for name in categories),
            )
        columns = table_columns(
            self.files,
            options.features,
            options.numeric,
            options.numeric_rule,
            others,
            options.dialect,
        )
        for path in (*self.validation, *self.test):
            check_file(path, format_of(path, options.dialect), columns, others)
        return columns
