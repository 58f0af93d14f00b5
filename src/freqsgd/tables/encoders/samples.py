"""Read samples from the rows of tables: codes, labels and parts, with malformed rows counted."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.errors import DataError
from freqsgd.prefetch import ahead
from freqsgd.tables.encoders.columns import Column, Target, is_unreadable
from freqsgd.tables.encoders.values import NotWholeError, categories
from freqsgd.tables.fields import ABSENT, Chunk
from freqsgd.tables.readers.reader import Block, RawText, Reader


class Coder(ABC):
    """Turns the columns of a block into numbers: codes or ids.

    Args:
        columns: the fields of a sample
        raw_kinds: kinds of columns that it takes as raw text, where there is any
        tile: rows that are coded at once, so that they stay in the cache for all columns

    Attributes:
        columns: the fields of a sample
        raw: names of the columns that it takes as raw text
        starts: where the numbers of each column start in a row, and where the last ones end
    """

    def __init__(self, columns: Sequence[Column], *raw_kinds: str, tile: int = sys.maxsize) -> None:
        self.columns = tuple(columns)
        self.raw = frozenset(column.name for column in columns if column.kind in raw_kinds)
        self.starts: list[int] = np.cumsum([0, *(c.width for c in columns)]).tolist()
        self._tile = tile

    def code(self, block: Block) -> NDArray[np.int32]:
        """Return the numbers of all rows: a column each, and ``width`` columns for a bag."""
        codes = np.empty((len(block.numbers), self.starts[-1]), np.int32)
        raw = self.raw if block.raw is not None else frozenset()
        if block.raw is not None and raw:
            self._code_text(block.raw, self._places(block.raw), codes)
        parsed = [(n, column) for n, column in enumerate(self.columns) if column.name not in raw]
        frame = block.frame.select(self._values(column, block.frame) for _, column in parsed)
        for start in range(0, len(codes) if parsed else 0, self._tile):
            some, place = frame.slice(start, self._tile), codes[start : start + self._tile]
            for field, column in parsed:
                values, first = some[column.name], self.starts[field]
                if isinstance(values.dtype, pl.List):
                    _fill_bag(
                        place[:, first : first + column.width],
                        values,
                        partial(self._code, field=field),
                    )
                else:
                    place[:, first] = self._code(values, field)
        return codes

    def _places(self, text: RawText) -> NDArray[np.int64]:
        """Return for each column of the text: its field or -1, where it goes, if it is a value."""
        fields = {c.name: field for field, c in enumerate(self.columns) if c.name in self.raw}
        chosen = [fields.get(name, -1) for name in text.names]
        # Integers are checked as text.
        values = [self.columns[field].kind == "category" for field in chosen]
        return np.array([chosen, [self.starts[field] for field in chosen], values])

    @abstractmethod
    def _code_text(
        self, text: RawText, places: NDArray[np.int64], codes: NDArray[np.int32]
    ) -> None:
        """Fill in the numbers of raw columns."""

    @abstractmethod
    def _values(self, column: Column, frame: pl.DataFrame) -> pl.Expr:
        """Return the values of another column that get numbers; lists of them for a bag."""

    @abstractmethod
    def _code(self, values: pl.Series, field: int) -> NDArray[np.int32]:
        """Return the numbers of these values."""

    def faults(self, block: Block, codes: NDArray[np.int32]) -> Iterator[tuple[int, str]]:
        """Find rows of the block last coded whose raw text cannot be used, and say why."""
        return iter(())

    def messages(self) -> list[str]:
        """Return what to warn of, once all rows are read."""
        return []


def _fill_bag(
    place: NDArray[np.int32], lists: pl.Series, code: Callable[[pl.Series], NDArray[np.int32]]
) -> None:
    """Put the codes of the values in lists into the columns of a bag."""
    lengths = lists.list.len().to_numpy()
    place[:] = ABSENT
    flat = lists.filter(pl.Series(lengths > 0)).explode()
    place[np.arange(place.shape[1]) < lengths[:, None]] = code(flat)


def read_samples(
    table: Reader,
    coder: Coder,
    malformed: MalformedRows,
    target: Target | None = None,
    after: int = 0,
) -> Iterator[Chunk]:
    """Read the samples of a table, a bounded number of rows at a time.

    Args:
        table: what is read
        coder: gives tokens their codes
        malformed: takes in the malformed rows, which are left out
        target: what labels and splits are made from; None: neither is wanted
        after: samples whose number is not above it are left out
    """
    parsed = [column.name for column in coder.columns if column.name not in coder.raw]
    parsed += target.columns() if target else []
    for read in ahead(table.blocks(parsed, list(coder.raw), after)):
        block = _with_categories(table.place, read, coder.columns)
        codes = coder.code(block)
        faults = [*_parsed_faults(block, coder.columns, target), *coder.faults(block, codes)]
        rows, frame, numbers = len(codes) + len(block.malformed), block.frame, block.numbers
        if faults:
            keep = np.ones(len(codes), np.bool_)
            keep[[row for row, _ in faults]] = False
            codes, frame, numbers = codes[keep], frame.filter(pl.Series(keep)), numbers[keep]
        places = _places(block, faults)
        malformed.add(table.place, rows, places.values())
        yield Chunk(
            ids=codes,
            labels=target.labels(frame) if target else np.empty(0, np.uint8),
            day=0,
            file=0,
            numbers=numbers,
            done=block.done,
            dropped=malformed.count,
            malformed=np.array(list(places), np.int64),
            order=target.order(frame) if target else np.empty(0),
        )


def read_files(
    tables: Sequence[Reader],
    coder: Coder,
    malformed: MalformedRows,
    target: Target | None = None,
) -> Iterator[Chunk]:
    """Read the samples of files one after the other, as ``read_samples`` does.

    What is done is the part of the bytes of all files.
    """
    sizes = [table.path.stat().st_size for table in tables]
    total, before = max(sum(sizes), 1), 0
    for number, (table, size) in enumerate(zip(tables, sizes, strict=True)):
        for chunk in read_samples(table, coder, malformed, target):
            yield replace(chunk, file=number, done=(before + chunk.done * size) / total)
        before += size


def _with_categories(table: str, block: Block, columns: Sequence[Column]) -> Block:
    """Turn the values of categories and bags into those whose text is the token."""
    found = []
    for column in columns:
        if column.is_number or column.name not in block.frame.columns:
            continue
        try:
            found.append(categories(block.frame[column.name]))
        except NotWholeError as error:
            place = f"{table}, {block.unit} {block.numbers[error.row]}"
            raise DataError(f"{place}: column {column.name!r} {error}") from None
    return replace(block, frame=block.frame.with_columns(found))


def _parsed_faults(
    block: Block, columns: Sequence[Column], target: Target | None
) -> Iterator[tuple[int, str]]:
    """Find rows with values that cannot be used, and say what is wrong with them."""
    frame, schema = block.frame, block.frame.schema
    checks = list(target.checks(schema)) if target else []
    for column in columns:
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
    """Return place and fault of all malformed rows of a block by number; one fault for each row."""
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
                f"{self._message()}\nMend them or take them out. Commands that train leave "
                f"out up to --max-bad-rows ({self.allowed} here)."
            )

    def messages(self) -> list[str]:
        """Return what to warn of, once all rows are read."""
        return [f"{self._message()}\nThey were dropped."] if self.count > self.earlier else []

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
