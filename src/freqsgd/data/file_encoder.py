"""What turns raw files into ids."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from freqsgd.data.coding import Coder
from freqsgd.data.columns import Column
from freqsgd.data.dataset import DataWarning
from freqsgd.data.dialect import BY_NAME, Dialect
from freqsgd.data.fields import Field
from freqsgd.data.formats import Parquet, TextFormat, format_for, list_files, refuse_parquet
from freqsgd.data.malformed import MalformedRows
from freqsgd.data.samples import SampleReader, Samples
from freqsgd.data.schema import check_file
from freqsgd.data.target import Target
from freqsgd.data.unknown import UnknownValues

__all__ = ["FileEncoder"]


class FileEncoder(ABC):
    """Finds the tokens of every field in raw files, and gives them ids.

    Args:
        kind: the layout of the raw files: "movielens-1m", "criteo", or "table" for files that name
            their columns
        columns: the raw columns, one for each field
        sizes: the number of ids of each field
        dialect: how the raw files are laid out, where they are text
    """

    def __init__(
        self,
        kind: str,
        columns: Sequence[Column],
        sizes: Sequence[int],
        dialect: Dialect = BY_NAME,
    ) -> None:
        self.kind, self.columns, self.dialect = kind, tuple(columns), dialect
        self.fields = tuple(
            Field(column.name, int(size), column.width)
            for column, size in zip(self.columns, sizes, strict=True)
        )

    @abstractmethod
    def coder(self, unknown: UnknownValues | None = None) -> Coder:
        """Turns the columns of a block into ids; ``unknown`` counts tokens it does not know."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Tells it from others."""

    @abstractmethod
    def save(self, folder: Path) -> str:
        """Write it into the folder; return the checksum of its files."""

    def form(self, path: Path, given: Dialect = BY_NAME) -> TextFormat | Parquet:
        """The format of a file, whose dialect may be another one."""
        return format_for(self.kind, path, given.beside(self.dialect))

    def encode_file(
        self, path: str, *, max_bad_rows: int = 0, dialect: Dialect = BY_NAME
    ) -> Iterator[NDArray[np.int32]]:
        """Ids of the rows of a file or folder, in order and a bounded number at a time.

        The files have the columns of those that the encoder was made from; labels may be missing.
        They are laid out as those were, unless the dialect says otherwise (``Dialect.beside``).
        Of a bag, tokens beyond the field's width are cut off. Malformed rows are an error above
        ``max_bad_rows``; below it they are left out, and a warning says where they are. Values that
        are not known are warned of and refused as ``docs/data.md`` says.
        """
        malformed, unknown = MalformedRows(max_bad_rows), UnknownValues(path)
        files = list_files(Path(path))
        refuse_parquet(files, dialect)
        for file in files:
            check_file(file, self.form(file, dialect), self.columns)
        for samples in self.read(files, malformed, unknown, dialect=dialect):
            yield samples.codes
        if malformed.count:
            warnings.warn(malformed.dropped(), DataWarning, stacklevel=2)
        unknown.warn()

    def read(
        self,
        files: Sequence[Path],
        malformed: MalformedRows,
        unknown: UnknownValues,
        target: Target | None = None,
        dialect: Dialect = BY_NAME,
    ) -> Iterator[Samples]:
        """The samples of files, whose codes are ids."""
        reader = SampleReader(self.columns, self.coder(unknown), malformed, target)
        for file in files:
            yield from reader.read(file, self.form(file, dialect))
