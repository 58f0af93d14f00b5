"""How raw columns become ids: saved with a model, so that it can be given raw rows."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.data.columns import MISSING, Column
from freqsgd.data.dataset import DataError, DataWarning, Field
from freqsgd.data.files import write_whole
from freqsgd.data.formats import format_for, list_files
from freqsgd.data.malformed import MalformedRows
from freqsgd.data.samples import SampleReader, Samples
from freqsgd.data.schema import check_file
from freqsgd.data.target import Target
from freqsgd.data.token_table import TokenTable
from freqsgd.data.vocabulary import known_table, to_ids

__all__ = ["DESCRIPTION", "TOKENS", "Encoder"]

FORMAT = 1
DESCRIPTION, TOKENS = "encoder.json", "tokens.parquet"


class Encoder:
    """The tokens of every field, and how to find them in raw files.

    Args:
        kind: the layout of the raw files: "movielens-1m", "criteo", or "table" for files that name
            their columns
        columns: the raw columns, one for each field
        tokens: field, token, id and count of every token that has an id of its own, sorted by
            field and id
        min_count: that these were seen at least
    """

    def __init__(
        self, kind: str, columns: Sequence[Column], tokens: pl.DataFrame, min_count: int = 1
    ) -> None:
        self.kind, self.min_count = kind, min_count
        self.columns = tuple(columns)
        sizes = np.bincount(tokens["field"].to_numpy(), minlength=len(self.columns)) + 1
        self.fields = tuple(
            Field(column.name, int(size), column.width)
            for column, size in zip(self.columns, sizes, strict=True)
        )
        self._tokens = tokens

    def save(self, folder: Path) -> None:
        """Write ``encoder.json`` and ``tokens.parquet`` into the folder."""
        packed = io.BytesIO()
        self._tokens.write_parquet(packed)
        description = {
            "format": FORMAT,
            "kind": self.kind,
            "columns": [asdict(column) for column in self.columns],
            "min_count": self.min_count,
            "tokens_sha256": sha256(packed.getvalue()).hexdigest(),
        }
        write_whole(folder / TOKENS, packed.getvalue())
        write_whole(folder / DESCRIPTION, json.dumps(description, indent=1).encode())

    @classmethod
    def load(cls, folder: Path) -> Encoder:
        """Read what ``save`` wrote.

        Raises:
            DataError: it is not there, is damaged, or was written in another format
        """
        path = folder / DESCRIPTION
        try:
            description = json.loads(path.read_bytes())
            found = description["format"]
            if found != FORMAT:
                raise DataError(
                    f"{path}: the format is {found!r}, this version of freqsgd reads {FORMAT}; "
                    "use the version that wrote it, or train again"
                )
            columns = [
                Column(**{**column, "edges": tuple(column["edges"])})
                for column in description["columns"]
            ]
            kind, digest = description["kind"], description["tokens_sha256"]
            path = folder / TOKENS
            packed = path.read_bytes()
            if sha256(packed).hexdigest() != digest:
                raise ValueError(f"its checksum is not the one in {DESCRIPTION}")
            tokens, min_count = pl.read_parquet(packed), description.get("min_count", 1)
            return cls(kind, columns, tokens, min_count)
        except FileNotFoundError:
            raise DataError(f"{path}: there is no such file; train again") from None
        except DataError:
            raise
        except (OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError) as error:
            what = {KeyError: f"it has no {error}", TypeError: "it describes no columns"}.get(
                type(error), str(error)
            )
            raise DataError(f"{path}: the file is damaged ({what}); train again") from error

    def tokens(self, field: int) -> list[str]:
        """What the tokens of a field are called, by id: their texts, ``<rare>``, ``<missing>``.

        Where a text is ``<rare>`` or ``<missing>`` itself, it is the other that gets more brackets.
        """
        texts = self.texts()[field]
        missing = _unlike(texts, "<missing>")
        named = (missing if text == MISSING else text for text in texts)
        return [_unlike(texts, "<rare>"), *named]

    def called(self, field: int, text: str | None) -> str:
        """What the token of a text is called; None is a missing value."""
        return text or _unlike(self.texts()[field], "<missing>")

    @cached_property
    def known(self) -> tuple[TokenTable, NDArray[np.int32]]:
        """A table of the tokens, and the ids of their codes for ``to_ids``."""
        return known_table(self.texts())

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "known"}

    def encode_file(self, path: str, *, max_bad_rows: int = 0) -> Iterator[NDArray[np.int32]]:
        """Ids of the rows of a file or folder, in order and a bounded number at a time.

        The files have the columns of those that the encoder was made from; labels may be missing.
        Tokens that are not known are rare; of a bag, tokens beyond the field's width are cut off.
        Malformed rows are an error above ``max_bad_rows``; below it they are left out, and a
        warning says where they are.
        """
        malformed = MalformedRows(max_bad_rows)
        files = list_files(Path(path))
        for file in files:
            check_file(file, format_for(self.kind, file), self.columns)
        for ids, _ in self.read(files, malformed):
            yield ids
        if malformed.count:
            warnings.warn(malformed.dropped(), DataWarning, stacklevel=2)

    def read(
        self, files: Sequence[Path], malformed: MalformedRows, target: Target | None = None
    ) -> Iterator[tuple[NDArray[np.int32], Samples]]:
        """Ids of the samples of files, and the samples."""
        table, known = self.known
        reader = SampleReader(self.columns, table, malformed, target, add=False)
        for file in files:
            for samples in reader.read(file, format_for(self.kind, file)):
                yield to_ids(samples.codes, known), samples

    def texts(self) -> list[pl.Series]:
        """The tokens of each field in the order of their ids, from 1 on."""
        return self._by_field("token")

    def counts(self) -> list[pl.Series]:
        """How often these tokens were seen."""
        return self._by_field("count")

    def _by_field(self, name: str) -> list[pl.Series]:
        sizes = [field.size - 1 for field in self.fields]
        starts = np.cumsum([0, *sizes]).tolist()
        values = self._tokens[name]
        return [values.slice(start, size) for start, size in zip(starts, sizes, strict=False)]


def _unlike(texts: pl.Series, name: str) -> str:
    """The name, in as many more brackets as it takes to be none of the texts."""
    while name in texts:
        name = f"<{name}>"
    return name
