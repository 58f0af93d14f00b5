"""Code the rows of a file: tokens, labels and parts, with malformed rows counted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.errors import DataError
from freqsgd.tables.columns import (
    Column,
    NotWholeError,
    Target,
    categories,
    is_unreadable,
    tokens,
)
from freqsgd.tables.fields import ABSENT
from freqsgd.tables.prefetch import ahead
from freqsgd.tables.readers import Block, RawText, Reader
from freqsgd.tables.tokens import TokenTable
from freqsgd.tables.unknown import UnknownValues


class Coder(Protocol):
    """Turns the columns of a block into numbers: codes or ids."""

    raw: list[str]  # columns that it takes as raw text, where there is any

    def code(self, block: Block) -> NDArray[np.int32]:
        """The numbers of all rows: a column each, and ``width`` columns for a bag."""

    def faults(self, block: Block, codes: NDArray[np.int32]) -> Iterator[tuple[int, str]]:
        """Rows of the block last coded whose raw text cannot be used, and why."""


class TokenCoder:
    """Codes of tokens in a table.

    Args:
        columns: the fields of a sample
        table: gives tokens their codes
        add: whether tokens that are not in the table are added to it
        ids: what becomes of the codes, as ``vocabulary.to_ids`` says; None: they stay codes
        unknown: counts the tokens that are not in the table
    """

    def __init__(
        self,
        columns: Sequence[Column],
        table: TokenTable,
        *,
        add: bool,
        ids: NDArray[np.int32] | None = None,
        unknown: UnknownValues | None = None,
    ) -> None:
        self.columns, self.table, self.add, self.ids = columns, table, add, ids
        self._unknown = unknown
        # An integer may be left as text until all are known; then its bin is found once for each
        # distinct text. Tokens that are looked up must be bins.
        kinds = ("category", "integer") if add else ("category",)
        self.raw = [column.name for column in columns if column.kind in kinds]
        self._checked = 0  # codes of the table that are known to be integers, or not
        self._unreadable = np.empty(0, np.int64)  # codes of texts that are no integers

    def code(self, block: Block) -> NDArray[np.int32]:
        """Codes of the tokens, or their ids."""
        self._checked = len(self.table)
        codes = code_block(block, self.columns, self.raw, self.table, add=self.add)
        if self._unknown is not None:
            texts = partial(_texts, block, self.columns, self.raw)
            self._unknown.add(codes, self.columns, self.table, texts)
        return codes if self.ids is None else self.ids[codes]

    def faults(self, block: Block, codes: NDArray[np.int32]) -> Iterator[tuple[int, str]]:
        """Rows whose integers, left as text, are none."""
        integers = [n for n, column in enumerate(self.columns) if column.kind == "integer"]
        if block.raw is None or not self.add or not integers:
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


def code_block(
    block: Block, columns: Sequence[Column], raw: Collection[str], table: TokenTable, *, add: bool
) -> NDArray[np.int32]:
    """Codes of all rows: a column each, and ``width`` columns for a bag.

    The columns named by ``raw`` are taken from raw text where the block has it.
    """
    starts = np.cumsum([0, *(column.width for column in columns)]).tolist()
    codes = np.empty((len(block.numbers), starts[-1]), np.int32)
    raw = set(raw)
    if block.raw is None:
        raw = set()
    elif raw:
        places = raw_places(block.raw, columns, raw, starts)
        table.code_rows(block.raw.data, block.raw.stops, places, codes, add=add)
    parsed = [(field, column) for field, column in enumerate(columns) if column.name not in raw]
    schema = block.frame.schema
    frame = block.frame.select(tokens(column, schema[column.name]) for _, column in parsed)
    for field, column in parsed:
        place = codes[:, starts[field] : starts[field + 1]]
        values = frame[column.name]
        if column.kind == "bag":
            fill_bags(values, place, partial(table.code_texts, field=field, add=add))
        else:
            place[:, 0] = table.code_texts(values, field, add=add)
    return codes


def _texts(
    block: Block,
    columns: Sequence[Column],
    raw: Collection[str],
    field: int,
    rows: NDArray[np.int64],
    places: NDArray[np.int64],
) -> list[str]:
    """The texts of tokens of a field, as ``code_block`` takes them; places are those in a bag."""
    column = columns[field]
    if block.raw is not None and column.name in raw:
        return [block.raw.cell(row, column.name) for row in rows.tolist()]
    some = block.frame[rows].select(tokens(column, block.frame.schema[column.name])).to_series()
    if column.kind != "bag":
        return some.to_list()
    return [texts[place] for texts, place in zip(some.to_list(), places.tolist(), strict=True)]


def raw_places(
    text: RawText, columns: Sequence[Column], raw: Collection[str], starts: list[int]
) -> NDArray[np.int64]:
    """The field of each column of the text, or -1, where its codes go, and if it is a value."""
    fields = {column.name: field for field, column in enumerate(columns) if column.name in raw}
    chosen = [fields.get(name, -1) for name in text.names]
    values = [columns[field].kind == "category" for field in chosen]  # integers are checked as text
    return np.array([chosen, [starts[field] for field in chosen], values])


def fill_bags(
    lists: pl.Series, place: NDArray[np.int32], code: Callable[[pl.Series], NDArray[np.int32]]
) -> None:
    """Put the codes of the values in lists into the columns of a bag."""
    lengths = lists.list.len().to_numpy()
    place[:] = ABSENT
    flat = lists.filter(pl.Series(lengths > 0)).explode()
    place[np.arange(place.shape[1]) < lengths[:, None]] = code(flat)


@dataclass(frozen=True)
class Samples:
    """Consecutive well-formed rows."""

    codes: NDArray[np.int32]  # of their tokens, or ids: what the coder gives
    labels: NDArray[np.uint8]  # empty without a target
    order: NDArray[np.float64]  # what the split goes by; empty if it goes by nothing
    done: float  # the part of the file that is read, from 0 to 1
    numbers: NDArray[np.int64]  # of the line (in Parquet: of the row) where each starts
    malformed: NDArray[np.int64]  # such numbers of the rows among them that were left out


class SampleReader:
    """Reads samples from files, a bounded number of rows at a time.

    Args:
        columns: the fields of a sample
        coder: gives tokens their codes
        malformed: takes in the malformed rows, which are left out
        target: what labels and splits are made from; None: neither is wanted
    """

    def __init__(
        self,
        columns: Sequence[Column],
        coder: Coder,
        malformed: MalformedRows,
        target: Target | None = None,
    ) -> None:
        self.columns, self.coder = columns, coder
        self.malformed, self.target = malformed, target

    def read(self, table: Reader, after: int = 0) -> Iterator[Samples]:
        """The samples of a table, without those whose number is not above ``after``."""
        raw = self.coder.raw
        left = set(raw)
        parsed = [column.name for column in self.columns if column.name not in left]
        parsed += self.target.columns() if self.target else []
        for read in ahead(table.blocks(parsed, raw, after)):
            block = self._with_categories(table.place, read)
            codes = self.coder.code(block)
            faults = [*self._parsed_faults(block), *self.coder.faults(block, codes)]
            rows, frame, numbers = len(codes) + len(block.malformed), block.frame, block.numbers
            if faults:
                keep = np.ones(len(codes), np.bool_)
                keep[[row for row, _ in faults]] = False
                codes, frame, numbers = codes[keep], frame.filter(pl.Series(keep)), numbers[keep]
            places = _places(block, faults)
            self.malformed.add(table.place, rows, places.values())
            labels, order = np.empty(0, np.uint8), np.empty(0)
            if self.target:
                labels, order = self.target.labels(frame), self.target.order(frame)
            left_out = np.array(list(places), np.int64)
            yield Samples(codes, labels, order, block.done, numbers, left_out)

    def _with_categories(self, table: str, block: Block) -> Block:
        """Turn the values of categories and bags into those whose text is the token."""
        frame, there, found = block.frame, set(block.frame.columns), []
        for column in self.columns:
            if column.is_number or column.name not in there:
                continue
            try:
                found.append(categories(frame[column.name]))
            except NotWholeError as error:
                place = f"{table}, {block.unit} {block.numbers[error.row]}"
                raise DataError(f"{place}: column {column.name!r} {error}") from None
        return replace(block, frame=frame.with_columns(found))

    def _parsed_faults(self, block: Block) -> Iterator[tuple[int, str]]:
        """Rows with values that cannot be used, and what is wrong with them."""
        frame, schema = block.frame, block.frame.schema
        checks = list(self.target.checks(schema)) if self.target else []
        for column in self.columns:
            if column.is_number and column.name in schema:
                kind = "an integer" if column.kind == "integer" else "a finite number"
                check = is_unreadable(column, schema[column.name])
                checks.append((column.name, check, f"not {kind}"))
        if not checks:
            return
        flags = frame.select(check.alias(str(n)) for n, (_, check, _) in enumerate(checks))
        for row in flags.select(pl.any_horizontal(pl.all())).to_series().arg_true().to_list():
            name, _, fault = checks[flags.row(row).index(True)]
            yield row, f"{name} is {frame[row, name]!r}, {fault}"


def _places(block: Block, faults: list[tuple[int, str]]) -> dict[int, tuple[str, str]]:
    """Place and fault of all malformed rows of a block by number; one fault for each row."""
    found = {number: (place, fault) for number, place, fault in block.malformed}
    for row, fault in faults:
        number = int(block.numbers[row])
        found.setdefault(number, (f"{block.unit} {number}", fault))
    return {number: found[number] for number in sorted(found)}


_SHOWN = 5


class MalformedRows:
    """Malformed rows found so far, and how many are allowed.

    Args:
        allowed: how many may be dropped
        earlier: how many of them were found before, of which nothing else is known

    Attributes:
        count: of all, the earlier ones included
        rows: taken in, well-formed ones included
    """

    def __init__(self, allowed: int, earlier: int = 0) -> None:
        self.allowed, self.earlier, self.count = allowed, earlier, earlier
        self.rows = 0
        self._first: list[str] = []

    def add(self, table: str, rows: int, found: Iterable[tuple[str, str]]) -> None:
        """Take in ``rows`` more rows of a table, and those of them found malformed: place, reason.

        Raises:
            DataError: there are more than allowed
        """
        self.rows += rows
        for place, reason in found:
            self.count += 1
            if len(self._first) < _SHOWN:
                self._first.append(f"  {table}, {place}: {reason}")
        if self.count > self.allowed:
            raise DataError(
                f"{self._message()}\nMend them or take them out. Training drops up to "
                f"--max-bad-rows ({self.allowed} now)."
            )

    def dropped(self) -> str:
        """What to warn of, once all rows are read; "" if none was dropped."""
        return f"{self._message()}\nThey were dropped." if self.count else ""

    def _message(self) -> str:
        rows, found = "row" if self.count == 1 else "rows", self.count - self.earlier
        head = f"{self.count:,} malformed {rows} among the first {self.rows:,}"
        if self.earlier:
            head = (
                f"{self.count:,} malformed {rows}: {self.earlier:,} earlier, and {found:,} among "
                f"the next {self.rows:,} rows"
            )
        if found > len(self._first):
            head += f"; the first {len(self._first)} of them"
        return "\n".join([f"{head}:", *self._first])
