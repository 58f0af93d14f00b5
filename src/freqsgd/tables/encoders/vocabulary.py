"""Vocabularies: give tokens codes and ids while data is read, and look up those of known ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.errors import DataError
from freqsgd.tables.encoders.columns import MISSING, Column, is_unreadable, tokens
from freqsgd.tables.encoders.samples import Coder
from freqsgd.tables.encoders.tokens import UNKNOWN, TokenTable, count_codes
from freqsgd.tables.fields import ABSENT, RARE
from freqsgd.tables.readers.reader import Block, RawText


class TableCoder(Coder):
    """Looks up tokens in a table, or adds them to it.

    Args:
        columns: the fields of a sample
        table: gives tokens their codes
        add: whether tokens that are not in the table are added
    """

    def __init__(self, columns: Sequence[Column], table: TokenTable, *, add: bool) -> None:
        # An integer may be left as text until all are known; then its bin is found once for each
        # distinct text. Tokens that are looked up must be bins.
        super().__init__(columns, "category", *(["integer"] if add else []))
        self.table, self._add = table, add

    def _code_text(
        self, text: RawText, places: NDArray[np.int64], codes: NDArray[np.int32]
    ) -> None:
        self.table.code_rows(text.data, text.stops, places, codes, add=self._add)

    def _values(self, column: Column, frame: pl.DataFrame) -> pl.Expr:
        return tokens(column, frame.schema[column.name])

    def _code(self, values: pl.Series, field: int) -> NDArray[np.int32]:
        return self.table.code_texts(values, field, add=self._add)


class Vocabulary(TableCoder):
    """Gives every token of the rows that are read a code, and counts how often each was seen.

    Args:
        columns: the fields of a sample
        table: gives tokens their codes; it may hold some already
        counts: how often the tokens of the table were seen
    """

    def __init__(
        self,
        columns: Sequence[Column],
        table: TokenTable | None = None,
        counts: NDArray[np.int64] | None = None,
    ) -> None:
        super().__init__(columns, TokenTable() if table is None else table, add=True)
        self._counts = np.zeros(0, np.int64) if counts is None else counts.copy()
        self._checked = 0  # codes of the table that are known to be integers, or not
        self._unreadable = np.empty(0, np.int64)  # codes of texts that are no integers

    def code(self, block: Block) -> NDArray[np.int32]:
        """Return codes of the tokens of all rows."""
        self._checked = len(self.table)
        return super().code(block)

    def faults(self, block: Block, codes: NDArray[np.int32]) -> Iterator[tuple[int, str]]:
        """Find rows of the block last coded whose integers, left as text, are none."""
        integers = [n for n, column in enumerate(self.columns) if column.kind == "integer"]
        if block.raw is None or not integers:
            return
        begin = self._checked
        new = begin + np.flatnonzero(np.isin(self.table.fields(begin), integers))
        texts = pl.DataFrame({"text": self.table.texts(new)})
        bad = texts.select(is_unreadable(Column("text", "integer"), pl.String())).to_series()
        self._unreadable = np.concatenate([self._unreadable, new[bad.to_numpy()]])
        if len(self._unreadable) == 0:
            return
        for row, place in np.argwhere(np.isin(codes[:, integers], self._unreadable)).tolist():
            column = self.columns[integers[place]]
            text = self.table.texts(codes[row, [integers[place]]].astype(np.int64)).item()
            yield row, f"{column.name} is {text!r}, not an integer"

    def count(self, codes: NDArray[np.int32]) -> None:
        """Count the tokens of more samples."""
        self._make_room()
        count_codes(codes, self._counts)

    @property
    def counts(self) -> NDArray[np.int64]:
        """How often the token of each code was seen."""
        self._make_room()
        return self._counts[: len(self.table)]

    def _make_room(self) -> None:
        """Make room for the counts of all tokens of the table."""
        known = len(self._counts)
        if known < len(self.table):
            grown = np.zeros(max(len(self.table), 2 * known), np.int64)
            grown[:known] = self._counts
            self._counts = grown

    def rank(self, min_count: int) -> tuple[pl.DataFrame, NDArray[np.int32]]:
        """Give ids to the tokens of each field that were seen ``min_count`` times.

        The ids of a field start at 1 with its most frequent token; ties go by text.

        Returns:
            field, token, id and count of these tokens, and the ids of all codes, as ``known_table``
            returns them
        """
        ids = np.full(len(self.table) + 3, RARE, np.int32)
        ids[-1] = ABSENT  # where code -1 leads
        counts, of_fields = self.counts, codes_by_field(self.table, len(self.columns))
        ranked = []
        for field, column in enumerate(self.columns):
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
    """Return the codes of the tokens of each field, ascending."""
    of_codes = table.fields()
    ends = np.cumsum(np.bincount(of_codes, minlength=fields))
    return np.split(np.argsort(of_codes, kind="stable"), ends[:-1])


def known_table(tokens: Sequence[pl.Series]) -> tuple[TokenTable, NDArray[np.int32]]:
    """Make a table of the known tokens of each field, given in the order of their ids.

    Returns:
        the table, and the ids of its codes: ``ids[codes]`` holds for the codes of absent and of
        unknown tokens too, which are negative and lead to the last ids
    """
    table = TokenTable()
    for field, texts in enumerate(tokens):
        table.code_texts(texts, field, add=True)
    ids = [np.arange(1, len(texts) + 1) for texts in tokens]
    return table, np.concatenate([*ids, [RARE, RARE, ABSENT]]).astype(np.int32)


SHARE = 0.5
"""The share of a column's values that may be unknown without a warning."""
ENOUGH = 100
"""The values of a column that must be unknown before anything is refused."""
FEW = 10
"""The values of a column from which on a warning is given: fewer may be rows of new users.

Values that the model knows in another spelling are warned of however few they are.
"""
_LOOKED_AT = 100  # unknown values that are compared with known ones
_SHOWN = 5  # columns that are warned of


class Lookup(TableCoder):
    """Looks up the ids of tokens, and counts the values that are not known.

    Missing values are not counted. Numbers are known by their bins.

    Args:
        columns: the fields of a sample
        table: holds the tokens that are known
        ids: of their codes, as ``known_table`` says
        place: where the values are, for messages; "" for a frame
    """

    def __init__(
        self,
        columns: Sequence[Column],
        table: TokenTable,
        ids: NDArray[np.int32],
        place: str = "",
    ) -> None:
        super().__init__(columns, table, add=False)
        self.ids = ids
        self._where = f"{place}: " if place else ""
        self._known, self._unknown = np.zeros((2, len(self.columns)), np.int64)
        # Of columns: an unknown value, from a block in which more than SHARE were unknown, and a
        # known value that differs from it in how it is written.
        self._examples: dict[int, str] = {}
        self._twins: dict[int, str] = {}
        nothing = pl.Series([MISSING])
        missing = [table.code_texts(nothing, n, add=False)[0] for n in range(len(columns))]
        self._missing = np.repeat(missing, [column.width for column in columns])

    def code(self, block: Block) -> NDArray[np.int32]:
        """Return ids of the tokens of all rows.

        Raises:
            DataError: there are values enough, and all so far are unknown: those of all columns,
                or those of one column, of which the table knows another spelling
        """
        codes, starts = super().code(block), self.starts
        is_unknown = codes == UNKNOWN
        is_known = (codes >= 0) & (codes != self._missing)
        unknown, known = (
            np.add.reduceat(flags.sum(0), starts[:-1]) for flags in (is_unknown, is_known)
        )
        self._unknown += unknown
        self._known += known
        for n in np.flatnonzero(unknown > SHARE * (unknown + known)).tolist():
            if n not in self._examples:
                rows, places = np.nonzero(is_unknown[:, starts[n] : starts[n + 1]])
                self._choose_example(n, block, rows[:_LOOKED_AT], places[:_LOOKED_AT])
        self._check()
        return self.ids[codes]

    def messages(self) -> list[str]:
        """Return what to warn of, once all rows are read: columns that are mostly unknown."""
        many = self._unknown > SHARE * (self._unknown + self._known)
        found = [
            n
            for n in np.flatnonzero(many).tolist()
            if not self.columns[n].is_number and (self._unknown[n] >= FEW or n in self._twins)
        ]
        messages = []
        for n in found[:_SHOWN]:
            unknown, total = self._unknown[n], self._unknown[n] + self._known[n]
            messages.append(
                f"{self._where}{unknown:,} of {total:,} values ({unknown / total:.0%}) of column "
                f"{self.columns[n].name!r} are unknown to the model, {self._compared(n)}"
            )
        if more := len(found[_SHOWN:]):
            messages.append(f"{self._where}so it is with {more:,} other columns")
        return messages

    def _check(self) -> None:
        many = np.flatnonzero((self._unknown >= ENOUGH) & (self._known == 0)).tolist()
        for n in many:
            if n in self._twins:
                raise DataError(
                    f"{self._where}none of the first {self._unknown[n]:,} values of column "
                    f"{self.columns[n].name!r} is known to the model, {self._compared(n)}"
                )
        if many and not self._known.any():
            named = [n for n in many if not self.columns[n].is_number] or many
            raise DataError(
                f"{self._where}the model knows no value of any column, so all rows would get the "
                f"same prediction; column {self.columns[named[0]].name!r} has values "
                f"{self._compared(named[0])}; is this the right file?"
            )

    def _compared(self, n: int) -> str:
        """Show an unknown value of a column beside a known one."""
        text, twin = f"such as {self._examples[n]!r}", self._twins.get(n)
        if twin is not None:
            return f"{text}; it knows {twin!r}: write the values as in training"
        codes = np.flatnonzero(self.table.fields() == n)[:2]
        known = [value for value in self.table.texts(codes).to_list() if value != MISSING]
        return f"{text}; it knows {repr(known[0]) if known else 'none'}"

    def _choose_example(
        self, n: int, block: Block, rows: NDArray[np.int64], places: NDArray[np.int64]
    ) -> None:
        """Keep an unknown value, if possible one that is known when it is written otherwise.

        Args:
            n: the column
            block: the rows that were just read
            rows: of values that are unknown
            places: of these in a bag
        """
        column = self.columns[n]
        if block.raw is not None and column.name in self.raw:
            texts = [block.raw.cell(row, column.name) for row in rows.tolist()]
        else:
            some, dtype = block.frame[rows], block.frame.schema[column.name]
            texts = some.select(tokens(column, dtype)).to_series().to_list()
            if column.kind == "bag":
                texts = [bag[place] for bag, place in zip(texts, places.tolist(), strict=True)]
        self._examples[n] = texts[0]
        if column.is_number:
            return
        for text in texts:
            others = [text.strip(), text.lower(), text.upper(), text.capitalize()]
            found = self.table.code_texts(pl.Series(others), n, add=False) >= 0
            for other, is_known in zip(others, found, strict=True):
                if is_known and other not in (text, MISSING):
                    self._examples[n], self._twins[n] = text, other
                    return
