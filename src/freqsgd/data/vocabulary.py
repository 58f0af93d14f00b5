"""From codes of tokens to ids: by how often they were seen, or as they are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.data.columns import Column, tokens
from freqsgd.data.fields import ABSENT, RARE
from freqsgd.data.hashing import count_codes
from freqsgd.data.token_table import TokenTable

__all__ = ["Vocabulary", "codes_by_field", "known_table", "to_ids"]


class Vocabulary:
    """The tokens of all fields, which may be in a table already, and how often each was seen."""

    def __init__(self, table: TokenTable | None = None) -> None:
        self.table = TokenTable() if table is None else table
        self._counts = np.zeros(0, np.int64)

    def count(self, codes: NDArray[np.int32]) -> None:
        """Count the tokens of more samples."""
        if len(self._counts) < len(self.table):
            grown = np.zeros(max(len(self.table), 2 * len(self._counts)), np.int64)
            grown[: len(self._counts)] = self._counts
            self._counts = grown
        count_codes(codes, self._counts)

    @property
    def counts(self) -> NDArray[np.int64]:
        """How often the token of each code was seen."""
        return self._counts[: len(self.table)]

    def rank(
        self, columns: Sequence[Column], min_count: int
    ) -> tuple[pl.DataFrame, NDArray[np.int32]]:
        """Give ids to the tokens of each field that were seen ``min_count`` times.

        The ids of a field start at 1 with its most frequent token; ties go by text.

        Returns:
            field, token, id and count of these tokens, and the ids of all codes for ``to_ids``
        """
        ids = np.full(len(self.table) + 3, RARE, np.int32)
        ids[-1] = ABSENT  # where code -1 leads
        counts, of_fields = self.counts, codes_by_field(self.table, len(columns))
        ranked = []
        for field, column in enumerate(columns):
            # The texts of integers are not yet tokens: those of one bin add up.
            enough = 1 if column.kind == "integer" else min_count
            codes = of_fields[field][counts[of_fields[field]] >= enough]
            seen = pl.DataFrame(
                {"token": self.table.texts(codes), "count": counts[codes], "code": codes}
            )
            if column.kind == "integer":
                seen = seen.with_columns(tokens(replace(column, name="token"), pl.String()))
            kept = (
                seen.group_by("token")
                .agg(pl.col("count").sum())
                .filter(pl.col("count") >= min_count)
                .sort("count", "token", descending=[True, False])
                .with_row_index("id", offset=1)
            )
            found = seen.join(kept.select("token", "id"), on="token")
            ids[found["code"].to_numpy()] = found["id"].to_numpy()
            ranked.append(
                kept.select(
                    pl.lit(field, pl.Int32).alias("field"),
                    "token",
                    pl.col("id").cast(pl.Int32),
                    pl.col("count").cast(pl.Int64),
                )
            )
        return pl.concat(ranked), ids


def codes_by_field(table: TokenTable, fields: int) -> list[NDArray[np.int64]]:
    """The codes of the tokens of each field, ascending."""
    of_codes = table.fields()
    ends = np.cumsum(np.bincount(of_codes, minlength=fields))
    return np.split(np.argsort(of_codes, kind="stable"), ends[:-1])


def known_table(tokens: Sequence[pl.Series]) -> tuple[TokenTable, NDArray[np.int32]]:
    """A table of the known tokens of each field in the order of their ids, and these ids."""
    table = TokenTable()
    for field, texts in enumerate(tokens):
        table.code_texts(texts, field, add=True)
    ids = [np.arange(1, len(texts) + 1) for texts in tokens]
    return table, np.concatenate([*ids, [RARE, RARE, ABSENT]]).astype(np.int32)


def to_ids(codes: NDArray[np.int32], ids: NDArray[np.int32]) -> NDArray[np.int32]:
    """The ids of codes: ABSENT is -1 and leads to the last, UNKNOWN codes to those before it."""
    return ids[codes]
