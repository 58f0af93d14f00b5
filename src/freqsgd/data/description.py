"""The description of an encoder as a file."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from freqsgd.data.columns import Column
from freqsgd.data.dataset import DataError
from freqsgd.data.dialect import BY_NAME, Dialect
from freqsgd.data.files import read_file, read_json, write_whole

__all__ = ["DESCRIPTION", "Description", "refusing_damage", "write_description"]

FORMAT = 1
DESCRIPTION = "encoder.json"
_CHECKSUM = "checksum"  # of everything else in the file


@dataclass(frozen=True)
class Description:
    """What the file says."""

    kind: str
    columns: tuple[Column, ...]
    values: dict[str, Any]  # all that is in the file
    dialect: Dialect = BY_NAME

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def checksum(self) -> str | None:
        """Tells the file from others; None if it was written before there was one."""
        found: str | None = self.values.get(_CHECKSUM)
        return found

    def get(self, name: str, default: Any = None) -> Any:
        """What stands under a name that need not be there."""
        return self.values.get(name, default)

    @classmethod
    def read(cls, folder: Path) -> Description:
        """Read the file in a folder.

        Raises:
            DataError: it is not there, is damaged, or was written in another format
        """
        path = folder / DESCRIPTION
        with refusing_damage(path):
            values = read_json(read_file(path), dict)
            found = values["format"]
            if found != FORMAT:
                raise DataError(
                    f"{path}: the format is {found!r}, this version of freqsgd reads {FORMAT}; "
                    "use the version that wrote it, or train again"
                )
            if _CHECKSUM in values and values[_CHECKSUM] != _checksum(values):
                raise ValueError("it was changed after it was written: its checksum does not match")
            columns = [
                Column(**{**column, "edges": tuple(column["edges"])})
                for column in values["columns"]
            ]
            dialect = Dialect(**values.get("dialect", {}))
            return cls(values["kind"], tuple(columns), values, dialect)


def write_description(
    folder: Path,
    kind: str,
    columns: Sequence[Column],
    more: dict[str, Any],
    dialect: Dialect = BY_NAME,
) -> str:
    """Write the file into a folder; return its checksum."""
    described = [asdict(column) for column in columns]
    if dialect != BY_NAME:
        more = {**more, "dialect": asdict(dialect)}
    values = {"format": FORMAT, "kind": kind, "columns": described, **more}
    values[_CHECKSUM] = _checksum(values)
    write_whole(folder / DESCRIPTION, json.dumps(values, indent=1).encode())
    return _checksum(values)


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
