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
from freqsgd.data.dataset import DataWarning, Field
from freqsgd.data.formats import format_for, list_files
from freqsgd.data.malformed import MalformedRows
from freqsgd.data.samples import SampleReader, Samples
from freqsgd.data.schema import check_file
from freqsgd.data.target import Target

__all__ = ["FileEncoder"]


class FileEncoder(ABC):
    """Finds the tokens of every field in raw files, and gives them ids.

    Args:
        kind: the layout of the raw files: "movielens-1m", "criteo", or "table" for files that name
            their columns
        columns: the raw columns, one for each field
        sizes: the number of ids of each field
    """

    def __init__(self, kind: str, columns: Sequence[Column], sizes: Sequence[int]) -> None:
        self.kind, self.columns = kind, tuple(columns)
        self.fields = tuple(
            Field(column.name, int(size), column.width)
            for column, size in zip(self.columns, sizes, strict=True)
        )

    @abstractmethod
    def coder(self) -> Coder:
        """Turns the columns of a block into ids."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Tells it from others."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write it into the folder."""

    def encode_file(self, path: str, *, max_bad_rows: int = 0) -> Iterator[NDArray[np.int32]]:
        """Ids of the rows of a file or folder, in order and a bounded number at a time.

        The files have the columns of those that the encoder was made from; labels may be missing.
        Of a bag, tokens beyond the field's width are cut off. Malformed rows are an error above
        ``max_bad_rows``; below it they are left out, and a warning says where they are.
        """
        malformed = MalformedRows(max_bad_rows)
        files = list_files(Path(path))
        for file in files:
            check_file(file, format_for(self.kind, file), self.columns)
        for samples in self.read(files, malformed):
            yield samples.codes
        if malformed.count:
            warnings.warn(malformed.dropped(), DataWarning, stacklevel=2)

    def read(
        self, files: Sequence[Path], malformed: MalformedRows, target: Target | None = None
    ) -> Iterator[Samples]:
        """The samples of files, whose codes are ids."""
        reader = SampleReader(self.columns, self.coder(), malformed, target)
        for file in files:
            yield from reader.read(file, format_for(self.kind, file))
