"""The description of an encoder as a file."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from freqsgd.data.columns import Column
from freqsgd.data.dataset import DataError
from freqsgd.data.files import write_whole

__all__ = ["DESCRIPTION", "Description", "refusing_damage", "write_description"]

FORMAT = 1
DESCRIPTION = "encoder.json"


@dataclass(frozen=True)
class Description:
    """What the file says."""

    kind: str
    columns: tuple[Column, ...]
    values: dict[str, Any]  # all that is in the file

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

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
            values = json.loads(path.read_bytes())
            found = values["format"]
            if found != FORMAT:
                raise DataError(
                    f"{path}: the format is {found!r}, this version of freqsgd reads {FORMAT}; "
                    "use the version that wrote it, or train again"
                )
            columns = [
                Column(**{**column, "edges": tuple(column["edges"])})
                for column in values["columns"]
            ]
            return cls(values["kind"], tuple(columns), values)


def write_description(
    folder: Path, kind: str, columns: Sequence[Column], more: dict[str, Any]
) -> None:
    """Write the file into a folder."""
    described = [asdict(column) for column in columns]
    values = {"format": FORMAT, "kind": kind, "columns": described, **more}
    write_whole(folder / DESCRIPTION, json.dumps(values, indent=1).encode())


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
