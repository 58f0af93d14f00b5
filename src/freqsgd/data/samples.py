"""Rows of raw files, checked: codes of their tokens, labels, and what the split goes by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.data.ahead import ahead
from freqsgd.data.blocks import Block, read_blocks
from freqsgd.data.coding import code_block
from freqsgd.data.columns import Column, is_unreadable
from freqsgd.data.formats import Parquet, TextFormat
from freqsgd.data.malformed import MalformedRows
from freqsgd.data.target import Target
from freqsgd.data.token_table import TokenTable

__all__ = ["SampleReader", "Samples"]


@dataclass(frozen=True)
class Samples:
    """Consecutive well-formed rows."""

    codes: NDArray[np.int32]  # of their tokens in the table
    labels: NDArray[np.uint8]  # empty without a target
    order: NDArray[np.float64]  # what the split goes by; empty if it goes by nothing
    done: float  # the part of the file that is read, from 0 to 1


class SampleReader:
    """Reads samples from files, a bounded number of rows at a time.

    Args:
        columns: the fields of a sample
        table: gives tokens their codes
        malformed: takes in the malformed rows, which are left out
        target: what labels and splits are made from; None: neither is wanted
        add: whether tokens that are not in the table are added to it
    """

    def __init__(
        self,
        columns: Sequence[Column],
        table: TokenTable,
        malformed: MalformedRows,
        target: Target | None = None,
        *,
        add: bool,
    ) -> None:
        self.columns, self.table, self.malformed = columns, table, malformed
        self.target, self.add = target, add
        # An integer may be left as text until all are known; then its bin is found once for each
        # distinct text. Tokens that are looked up must be bins.
        kinds = ("category", "integer") if add else ("category",)
        self._raw = [column.name for column in columns if column.kind in kinds]
        self._unreadable = np.empty(0, np.int64)  # codes of texts that are no integers

    def read(self, path: Path, form: TextFormat | Parquet) -> Iterator[Samples]:
        """The samples of a file."""
        parsed = [column.name for column in self.columns if column.name not in self._raw]
        parsed += self.target.columns() if self.target else []
        for block in ahead(read_blocks(path, form, parsed, self._raw)):
            before = len(self.table)
            codes = code_block(block, self.columns, self._raw, self.table, add=self.add)
            faults = [*self._parsed_faults(block), *self._raw_faults(block, codes, before)]
            rows, frame = len(codes) + len(block.malformed), block.frame
            if faults:
                keep = np.ones(len(codes), np.bool_)
                keep[[row for row, _ in faults]] = False
                codes, frame = codes[keep], frame.filter(pl.Series(keep))
            self.malformed.add(path, rows, _places(block, faults))
            labels, order = np.empty(0, np.uint8), np.empty(0)
            if self.target:
                labels, order = self.target.labels(frame), self.target.order(frame)
            yield Samples(codes, labels, order, block.done)

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

    def _raw_faults(
        self, block: Block, codes: NDArray[np.int32], before: int
    ) -> Iterator[tuple[int, str]]:
        """Rows whose integers, left as text, are none; ``before`` codes were checked before."""
        integers = [n for n, column in enumerate(self.columns) if column.kind == "integer"]
        if block.raw is None or not self.add or not integers:
            return
        new = before + np.flatnonzero(np.isin(self.table.fields(before), integers))
        texts = pl.DataFrame({"text": self.table.texts(new)})
        bad = texts.select(is_unreadable(Column("text", "integer"), pl.String())).to_series()
        self._unreadable = np.concatenate([self._unreadable, new[bad.to_numpy()]])
        if len(self._unreadable) == 0:
            return
        for row, place in np.argwhere(np.isin(codes[:, integers], self._unreadable)).tolist():
            column = self.columns[integers[place]]
            text = self.table.texts(codes[row, [integers[place]]].astype(np.int64)).item()
            yield row, f"{column.name} is {text!r}, not an integer"


def _places(block: Block, faults: list[tuple[int, str]]) -> list[tuple[str, str]]:
    """Place and fault of all malformed rows of a block, in order; one fault for each row."""
    found = {number: (place, fault) for number, place, fault in block.malformed}
    for row, fault in faults:
        number = int(block.numbers[row])
        found.setdefault(number, (f"{block.unit} {number}", fault))
    return [found[number] for number in sorted(found)]
