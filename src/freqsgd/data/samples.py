"""Rows of raw files, checked: codes of their tokens, labels, and what the split goes by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.data.ahead import ahead
from freqsgd.data.blocks import Block, read_blocks
from freqsgd.data.coding import Coder
from freqsgd.data.columns import Column, is_unreadable
from freqsgd.data.dataset import DataError
from freqsgd.data.formats import Parquet, TextFormat
from freqsgd.data.malformed import MalformedRows
from freqsgd.data.target import Target
from freqsgd.data.whole import NotWholeError, whole_floats

__all__ = ["SampleReader", "Samples"]


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

    def read(self, path: Path, form: TextFormat | Parquet, after: int = 0) -> Iterator[Samples]:
        """The samples of a file, without those whose number is not above ``after``."""
        raw = self.coder.raw
        left = set(raw)
        parsed = [column.name for column in self.columns if column.name not in left]
        parsed += self.target.columns() if self.target else []
        for read in ahead(read_blocks(path, form, parsed, raw, after)):
            block = self._with_whole_floats(path, read)
            codes = self.coder.code(block)
            faults = [*self._parsed_faults(block), *self.coder.faults(block, codes)]
            rows, frame, numbers = len(codes) + len(block.malformed), block.frame, block.numbers
            if faults:
                keep = np.ones(len(codes), np.bool_)
                keep[[row for row, _ in faults]] = False
                codes, frame, numbers = codes[keep], frame.filter(pl.Series(keep)), numbers[keep]
            places = _places(block, faults)
            self.malformed.add(path, rows, places.values())
            labels, order = np.empty(0, np.uint8), np.empty(0)
            if self.target:
                labels, order = self.target.labels(frame), self.target.order(frame)
            left_out = np.array(list(places), np.int64)
            yield Samples(codes, labels, order, block.done, numbers, left_out)

    def _with_whole_floats(self, path: Path, block: Block) -> Block:
        """Turn the floats of categories and bags into integers."""
        frame, there, whole = block.frame, set(block.frame.columns), []
        for column in self.columns:
            if column.is_number or column.name not in there:
                continue
            try:
                whole.append(whole_floats(frame[column.name]))
            except NotWholeError as error:
                place = f"{path}, {block.unit} {block.numbers[error.row]}"
                raise DataError(f"{place}: column {column.name!r} {error}") from None
        return replace(block, frame=frame.with_columns(whole))

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
