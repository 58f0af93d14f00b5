"""How raw columns become ids: saved with a model, so that it can be given raw rows."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.data.coding import TokenCoder
from freqsgd.data.columns import MISSING, Column
from freqsgd.data.description import DESCRIPTION, Description, refusing_damage, write_description
from freqsgd.data.dialect import BY_NAME, Dialect
from freqsgd.data.file_encoder import FileEncoder
from freqsgd.data.files import read_file, write_whole
from freqsgd.data.token_table import TokenTable
from freqsgd.data.unknown import UnknownValues
from freqsgd.data.vocabulary import known_table

__all__ = ["DESCRIPTION", "TOKENS", "Encoder"]

TOKENS = "tokens.parquet"


class Encoder(FileEncoder):
    """The tokens of every field, and how to find them in raw files.

    Tokens that are not known are rare.

    Args:
        kind: the layout of the raw files: "movielens-1m", "criteo", or "table" for files that name
            their columns
        columns: the raw columns, one for each field
        tokens: field, token, id and count of every token that has an id of its own, sorted by
            field and id
        min_count: that these were seen at least
        dialect: how the raw files are laid out, where they are text
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
        super().__init__(kind, columns, sizes.tolist(), dialect)
        self.min_count, self._tokens = min_count, tokens

    def coder(self, unknown: UnknownValues | None = None) -> TokenCoder:
        """Turns the columns of a block into ids."""
        table, ids = self.known
        return TokenCoder(self.columns, table, add=False, ids=ids, unknown=unknown)

    @property
    def fingerprint(self) -> str:
        """Tells it from others."""
        tokens = self._tokens.hash_rows(0).to_numpy().tobytes()
        return sha256(repr((self.kind, self.columns)).encode() + tokens).hexdigest()

    def save(self, folder: Path) -> str:
        """Write ``encoder.json`` and ``tokens.parquet`` into the folder; return their checksum."""
        packed = io.BytesIO()
        self._tokens.write_parquet(packed)
        digest = sha256(packed.getvalue()).hexdigest()
        write_whole(folder / TOKENS, packed.getvalue())
        more = {"min_count": self.min_count, "tokens_sha256": digest}
        return write_description(folder, self.kind, self.columns, more, self.dialect)

    @classmethod
    def load(cls, folder: Path) -> Encoder:
        """Read what ``save`` wrote.

        Raises:
            DataError: it is not there, is damaged, or was written in another format
        """
        description = Description.read(folder)
        with refusing_damage(folder / DESCRIPTION):
            digest, min_count = description["tokens_sha256"], description.get("min_count", 1)
        with refusing_damage(folder / TOKENS):
            packed = read_file(folder / TOKENS)
            if sha256(packed).hexdigest() != digest:
                raise ValueError(f"its checksum is not the one in {DESCRIPTION}")
            tokens = pl.read_parquet(packed)
            return cls(
                description.kind, description.columns, tokens, min_count, description.dialect
            )

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
