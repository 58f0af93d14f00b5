"""How raw columns become ids without a dictionary: saved with a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from freqsgd.data.columns import Column
from freqsgd.data.dataset import DataError
from freqsgd.data.description import (
    DESCRIPTION,
    Description,
    refusing_damage,
    write_description,
)
from freqsgd.data.dialect import BY_NAME, Dialect
from freqsgd.data.encoder import Encoder
from freqsgd.data.file_encoder import FileEncoder
from freqsgd.data.unknown import UnknownValues
from freqsgd.streams.hash_coder import HashCoder
from freqsgd.streams.hashing import VERSION

__all__ = ["HashEncoder", "open_encoder"]


class HashEncoder(FileEncoder):
    """Hashes the tokens of each field to a number of rows; what they were called is not kept.

    Args:
        columns: the raw columns, one for each field
        rows: of the table of each field
        kind: the layout of the raw files, as for ``FileEncoder``
        dialect: of the raw files, where they are text
    """

    def __init__(
        self,
        columns: Sequence[Column],
        rows: Sequence[int],
        kind: str = "table",
        dialect: Dialect = BY_NAME,
    ) -> None:
        super().__init__(kind, columns, rows, dialect)

    def coder(self, unknown: UnknownValues | None = None) -> HashCoder:
        """Turns the columns of a block into ids; no token is unknown."""
        return HashCoder(self.columns, [field.size for field in self.fields])

    @property
    def fingerprint(self) -> str:
        """Tells it from others."""
        return repr(("hash", VERSION, self.kind, self.columns, self.fields))

    def save(self, folder: Path) -> str:
        """Write ``encoder.json`` into the folder; return its checksum."""
        rows = [field.size for field in self.fields]
        more = {"encoding": "hash", "version": VERSION, "rows": rows}
        return write_description(folder, self.kind, self.columns, more, self.dialect)

    @classmethod
    def load(cls, folder: Path) -> HashEncoder:
        """Read what ``save`` wrote.

        Raises:
            DataError: it is not there, is damaged, or tokens were hashed in another way
        """
        description = Description.read(folder)
        with refusing_damage(folder / DESCRIPTION):
            if description["version"] != VERSION:
                raise DataError(
                    f"{folder / DESCRIPTION}: tokens were hashed by version "
                    f"{description['version']!r}, this version of freqsgd hashes by {VERSION}; use "
                    "the version that wrote it, or train again"
                )
            rows = description["rows"]
            return cls(description.columns, rows, description.kind, description.dialect)


def open_encoder(folder: Path) -> Encoder | HashEncoder:
    """What turns raw columns into the ids of a model, of either kind."""
    hashed = Description.read(folder).get("encoding") == "hash"
    return HashEncoder.load(folder) if hashed else Encoder.load(folder)
