"""How raw columns become ids: saved with a model, so that it can be given raw rows."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.data.columns import MISSING, Column
from freqsgd.data.dataset import DataError, DataWarning, Field
from freqsgd.data.files import write_whole
from freqsgd.data.formats import format_for, list_files
from freqsgd.data.malformed import MalformedRows
from freqsgd.data.samples import read_samples
from freqsgd.data.schema import check_file
from freqsgd.data.vocabulary import KnownTokens, token_codes

__all__ = ["Encoder"]

FORMAT = 1
_DESCRIPTION, _TOKENS = "encoder.json", "tokens.parquet"


class Encoder:
    """The tokens of every field, and how to find them in raw files.

    Args:
        kind: the layout of the raw files: "movielens-1m", "criteo", or "table" for files that name
            their columns
        columns: the raw columns, one for each field
        tokens: field, token, id and count of every token that has an id of its own, sorted by
            field and id
    """

    def __init__(self, kind: str, columns: Sequence[Column], tokens: pl.DataFrame) -> None:
        self.kind = kind
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
            "tokens": len(self._tokens),
        }
        write_whole(folder / _TOKENS, packed.getvalue())
        write_whole(folder / _DESCRIPTION, json.dumps(description, indent=1).encode())

    @classmethod
    def load(cls, folder: Path) -> Encoder:
        """Read what ``save`` wrote.

        Raises:
            DataError: it is not there, is damaged, or was written in another format
        """
        path = folder / _DESCRIPTION
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
            path = folder / _TOKENS
            tokens = pl.read_parquet(path, columns=["field", "token", "id", "count"], glob=False)
            if len(tokens) != description["tokens"]:
                raise ValueError(f"{len(tokens)} tokens instead of {description['tokens']}")
            return cls(description["kind"], columns, tokens)
        except FileNotFoundError:
            raise DataError(f"{path}: there is no such file; train again") from None
        except DataError:
            raise
        except (OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError) as error:
            raise DataError(f"{path}: the file is damaged ({error}); train again") from error

    def tokens(self, field: int) -> list[str]:
        """The text of each token of a field, by id."""
        texts = self._texts[field].to_list()
        return ["<rare>", *("<missing>" if text == MISSING else text for text in texts)]

    def encode_file(self, path: str, *, max_bad_rows: int = 0) -> Iterator[NDArray[np.int32]]:
        """Ids of the rows of a file or folder, in order and a bounded number at a time.

        The files have the columns of those that the encoder was made from; labels may be missing.
        Tokens that are not known are rare; of a bag, tokens beyond the field's width are cut off.
        Malformed rows are an error above ``max_bad_rows``; below it they are left out, and a
        warning says where they are.
        """
        malformed = MalformedRows(max_bad_rows)
        known = self.known_tokens()
        for file in list_files(Path(path)):
            form = format_for(self.kind, file)
            check_file(file, form, self.columns)
            for samples in read_samples(file, form, self.columns, malformed):
                yield self.encode(samples.frame, known)
        if malformed.count:
            warnings.warn(malformed.dropped(), DataWarning, stacklevel=2)

    def encode(self, frame: pl.DataFrame, known: Sequence[KnownTokens]) -> NDArray[np.int32]:
        """Ids of rows whose tokens are given as text."""
        ids = token_codes(frame, self.columns, known)
        start = 0
        for column, tokens in zip(self.columns, known, strict=True):
            place = ids[:, start : start + column.width]
            place[:] = tokens.ids(place)
            start += column.width
        return ids

    def known_tokens(self) -> list[KnownTokens]:
        """The tokens of each field, ready to be looked up."""
        return [KnownTokens(texts) for texts in self._texts]

    @property
    def _texts(self) -> list[pl.Series]:
        ends = np.cumsum([field.size - 1 for field in self.fields])
        texts = self._tokens["token"]
        return [
            texts[int(end) - field.size + 1 : int(end)]
            for field, end in zip(self.fields, ends, strict=True)
        ]
