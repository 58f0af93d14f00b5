"""The dictionary encoder: how raw columns become ids, saved with a model."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.errors import DataError, DataWarning
from freqsgd.files import read_file, read_json, write_whole
from freqsgd.tables.encoders.columns import MISSING, Column, check_table
from freqsgd.tables.encoders.samples import Coder, MalformedRows, read_files
from freqsgd.tables.encoders.tokens import TokenTable
from freqsgd.tables.encoders.vocabulary import Lookup, known_table
from freqsgd.tables.fields import Field
from freqsgd.tables.readers.dialect import BY_NAME, Dialect
from freqsgd.tables.readers.files import open_tables

FORMAT = 2  # 1: 3.0 and 3 in text were two tokens
DESCRIPTION = "encoder.json"
_CHECKSUM = "checksum"  # of everything else in the file


@dataclass(frozen=True)
class Description:
    """What the file says.

    Attributes:
        kind: the layout of the raw files
        columns: the raw columns
        dialect: how the raw files are laid out, where they are text
        checksum: tells the file from others
        values: all that is in the file
    """

    kind: str
    columns: tuple[Column, ...]
    dialect: Dialect
    checksum: str
    values: dict[str, Any]

    @classmethod
    def read(cls, folder: Path) -> Description:
        """Read the file in a folder.

        Raises:
            DataError: it is not there, is damaged, or was written in another format
        """
        path = folder / DESCRIPTION
        with refusing_damage(path):
            values = read_json(read_file(path), dict)
            if values["format"] != FORMAT:
                raise DataError(
                    f"{path}: the format is {values['format']!r}, this version of freqsgd reads "
                    f"{FORMAT}; use the version that wrote it, or train again"
                )
            columns = tuple(
                Column(**{**column, "edges": tuple(column["edges"])})
                for column in values["columns"]
            )
            dialect, checksum = Dialect(**values.get("dialect", {})), _checksum(values)
            if values[_CHECKSUM] != checksum:
                raise ValueError("it was changed after it was written: its checksum does not match")
            return cls(values["kind"], columns, dialect, checksum, values)


def _checksum(values: dict[str, Any]) -> str:
    content = {name: value for name, value in values.items() if name != _CHECKSUM}
    text = json.dumps(content, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@contextlib.contextmanager
def refusing_damage(path: Path) -> Iterator[None]:
    """Turn what goes wrong with a damaged file into an error that says so."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file; train again") from None
    except DataError:
        raise
    except (OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError) as error:
        what = {KeyError: f"it has no {error}", TypeError: "it describes no columns"}.get(
            type(error), str(error)
        )
        raise DataError(f"{path}: the file is damaged ({what}); train again") from error


class FileEncoder(ABC):
    """Finds the tokens of every field in raw files, and gives them ids.

    Args:
        columns: the raw columns, one for each field
        sizes: the number of ids of each field
        kind: the layout of the raw files: "movielens-1m", "criteo", or "table" for files that name
            their columns
        dialect: how the raw files are laid out, where they are text
    """

    def __init__(
        self,
        columns: Sequence[Column],
        sizes: Sequence[int],
        kind: str = "table",
        dialect: Dialect = BY_NAME,
    ) -> None:
        self.kind, self.columns, self.dialect = kind, tuple(columns), dialect
        self.fields = tuple(
            Field(column.name, int(size), column.width)
            for column, size in zip(self.columns, sizes, strict=True)
        )

    @abstractmethod
    def coder(self, place: str = "") -> Coder:
        """Return what turns the columns of a block into ids; ``place`` is for its messages."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Tells it from others."""

    @abstractmethod
    def save(self, folder: Path) -> str:
        """Write it into the folder; return the checksum of its files."""

    def write_description(self, folder: Path, more: dict[str, Any]) -> str:
        """Write ``encoder.json`` into the folder; return its checksum."""
        columns = [asdict(column) for column in self.columns]
        values = {"format": FORMAT, "kind": self.kind, "columns": columns, **more}
        if self.dialect != BY_NAME:
            values["dialect"] = asdict(self.dialect)
        values[_CHECKSUM] = _checksum(values)
        write_whole(folder / DESCRIPTION, json.dumps(values, indent=1).encode())
        return str(values[_CHECKSUM])

    def encode_file(
        self, path: str, *, max_bad_rows: int = 0, dialect: Dialect = BY_NAME
    ) -> Iterator[NDArray[np.int32]]:
        """Yield ids of the rows of a file, a folder or days in order, a bounded number at a time.

        The files have the columns of those that the encoder was made from; labels may be missing.
        They are laid out as those were, unless the dialect says otherwise (``Dialect.beside``).
        Of a bag, tokens beyond the field's width are cut off. Malformed rows are an error above
        ``max_bad_rows``; below it they are left out, and a warning says where they are. Values that
        are not known are warned of and refused as ``docs/data.md`` says.
        """
        readers = open_tables(path, dialect, self.dialect, self.kind)
        for reader in readers:
            check_table(reader, self.columns)
        malformed, coder = MalformedRows(max_bad_rows), self.coder(path)
        for samples in read_files(readers, coder, malformed):
            yield samples.ids
        for message in malformed.messages() + coder.messages():
            warnings.warn(message, DataWarning, stacklevel=2)


TOKENS = "tokens.parquet"


class Encoder(FileEncoder):
    """The tokens of every field, and how to find them in raw files.

    Tokens that are not known are rare.

    Args:
        kind: as for ``FileEncoder``; so are ``columns`` and ``dialect``
        columns: the raw columns
        tokens: field, token, id and count of every token that has an id of its own, sorted by
            field and id
        min_count: that these were seen at least
        dialect: of the raw files
    """

    def __init__(
        self,
        kind: str,
        columns: Sequence[Column],
        tokens: pl.DataFrame,
        min_count: int = 1,
        dialect: Dialect = BY_NAME,
    ) -> None:
        sizes = np.bincount(tokens["field"].to_numpy(), minlength=len(columns)) + 1
        super().__init__(columns, sizes.tolist(), kind, dialect)
        self.min_count, self._tokens = min_count, tokens

    def coder(self, place: str = "") -> Lookup:
        """Return what turns the columns of a block into ids; ``place`` is for its messages."""
        return Lookup(self.columns, *self.known, place)

    @property
    def fingerprint(self) -> str:
        """Tells it from others."""
        tokens = self._tokens.hash_rows(0).to_numpy().tobytes()
        return hashlib.sha256(repr((self.kind, self.columns)).encode() + tokens).hexdigest()

    def save(self, folder: Path) -> str:
        """Write ``encoder.json`` and ``tokens.parquet`` into the folder; return their checksum."""
        packed = io.BytesIO()
        self._tokens.write_parquet(packed)
        digest = hashlib.sha256(packed.getvalue()).hexdigest()
        write_whole(folder / TOKENS, packed.getvalue())
        more = {"min_count": self.min_count, "tokens_sha256": digest}
        return self.write_description(folder, more)

    @classmethod
    def load(cls, folder: Path) -> Encoder:
        """Read what ``save`` wrote.

        Raises:
            DataError: it is not there, is damaged, or was written in another format
        """
        found = Description.read(folder)
        with refusing_damage(folder / DESCRIPTION):
            digest, min_count = found.values["tokens_sha256"], found.values["min_count"]
        with refusing_damage(folder / TOKENS):
            packed = read_file(folder / TOKENS)
            if hashlib.sha256(packed).hexdigest() != digest:
                raise ValueError(f"its checksum is not the one in {DESCRIPTION}")
            return cls(found.kind, found.columns, pl.read_parquet(packed), min_count, found.dialect)

    def tokens(self, field: int) -> list[str]:
        """Return what the tokens of a field are called, by id: text, ``<rare>``, ``<missing>``.

        Where a text is ``<rare>`` or ``<missing>`` itself, it is the other that gets more brackets.
        """
        texts = self.texts()[field]
        missing = _unlike(texts, "<missing>")
        named = (missing if text == MISSING else text for text in texts)
        return [_unlike(texts, "<rare>"), *named]

    def called(self, field: int, text: str | None) -> str:
        """Return what the token of a text is called; None is a missing value."""
        return text or _unlike(self.texts()[field], "<missing>")

    @cached_property
    def known(self) -> tuple[TokenTable, NDArray[np.int32]]:
        """A table of the tokens, and the ids of its codes, as ``known_table`` says."""
        return known_table(self.texts())

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "known"}

    def texts(self) -> list[pl.Series]:
        """Return the tokens of each field in the order of their ids, from 1 on."""
        return self._by_field("token")

    def counts(self) -> list[pl.Series]:
        """Return how often these tokens were seen."""
        return self._by_field("count")

    def _by_field(self, name: str) -> list[pl.Series]:
        sizes = [field.size - 1 for field in self.fields]
        starts = np.cumsum([0, *sizes]).tolist()
        values = self._tokens[name]
        return [values.slice(start, size) for start, size in zip(starts, sizes, strict=False)]


def _unlike(texts: pl.Series, name: str) -> str:
    """Return the name, in as many more brackets as it takes to be none of the texts."""
    while name in texts:
        name = f"<{name}>"
    return name
