"""What is asked to be looked at."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.errors import DataError, DataWarning
from freqsgd.inspection.options import InspectionOptions
from freqsgd.tables.catalog import known_dataset, locate
from freqsgd.tables.coding import MalformedRows, SampleReader, TokenCoder
from freqsgd.tables.columns import Column
from freqsgd.tables.days import data_name, find_days, list_files
from freqsgd.tables.fields import Field
from freqsgd.tables.formats import open_reader, refuse_parquet
from freqsgd.tables.frames import code_frame, shown
from freqsgd.tables.hashing import HashEncoder
from freqsgd.tables.prefetch import ahead
from freqsgd.tables.readers import Reader
from freqsgd.tables.sources import Request, table_columns
from freqsgd.tables.spec import DataOptions, parse_rows
from freqsgd.tables.synthetic import generate_clicks
from freqsgd.tables.tokens import TokenTable
from freqsgd.words.files import has_text_name, text_name
from freqsgd.words.loading import replaced_warning
from freqsgd.words.spec import default_min_count, files_of_parts, is_wikitext
from freqsgd.words.tokenizer import WordReader
from freqsgd.words.zipf import zipf_text

__all__ = ["Source", "hashed_fields", "open_source"]


_LONGEST = 256  # words of a piece of text, which do not matter here


class Source(Protocol):
    """Rows of tokens.

    Attributes:
        name: of the data
        place: where it is, for messages
        columns: the fields of a row
        table: gives tokens their codes
        min_count: tokens seen less often are rare, in training
        drops_rare: whether training leaves rare tokens out, as it does with words
    """

    name: str
    place: str
    min_count: int
    drops_rare: bool
    columns: tuple[Column, ...]
    table: TokenTable

    def read(self) -> Iterator[tuple[NDArray[np.int32], float]]:
        """Codes of consecutive rows, and the part of all rows up to here, from 0 to 1."""


class _TableFiles:
    """Files whose rows are samples."""

    drops_rare = False

    def __init__(
        self,
        name: str,
        readers: Sequence[Reader],
        columns: Sequence[Column],
        bad_rows: int,
        min_count: int = 1,
    ) -> None:
        self.name, self.columns, self.table = name, tuple(columns), TokenTable()
        self._files = [Path(reader.place) for reader in readers]
        self.place = str(self._files[0] if len(readers) == 1 else self._files[0].parent)
        self.min_count, self._readers, self._bad_rows = min_count, readers, bad_rows

    def read(self) -> Iterator[tuple[NDArray[np.int32], float]]:
        malformed = MalformedRows(self._bad_rows)
        coder = TokenCoder(self.columns, self.table, add=True)
        reader = SampleReader(self.columns, coder, malformed)
        shares = _with_shares(self._files)
        for table, (_, before, share) in zip(self._readers, shares, strict=True):
            for samples in ahead(reader.read(table)):
                yield samples.codes, before + share * samples.done
        if malformed.count:
            warnings.warn(malformed.dropped(), DataWarning, stacklevel=2)


class _TextFiles:
    """Files whose words are samples; the word <unk> is left out, as in training."""

    drops_rare = True

    def __init__(self, name: str, place: Path, *, lowercase: bool) -> None:
        self.name, self.place, self.min_count = name, str(place), default_min_count(place)
        self.columns: tuple[Column, ...] = (Column("word"),)
        self._files = files_of_parts(place)[0]
        self._reader = WordReader("whitespace", lowercase=lowercase, longest=_LONGEST)
        self.table = self._reader.table

    def read(self) -> Iterator[tuple[NDArray[np.int32], float]]:
        for path, before, share in _with_shares(self._files):
            for codes, _, done in self._reader.read(path):
                yield codes[codes != 0].reshape(-1, 1), before + share * done
        if self._reader.replaced:
            warning = replaced_warning([(str(k), n) for k, n in self._reader.replaced.items()])
            warnings.warn(warning, DataWarning, stacklevel=2)
        if len(self.table) == 1:  # which is <unk>
            raise DataError(f"{self.place}: there are no words in it")


class _Generated:
    """A frame in memory."""

    def __init__(
        self, name: str, frame: pl.DataFrame, min_count: int = 1, *, drops_rare: bool = False
    ) -> None:
        self.name = self.place = name
        self.min_count, self.drops_rare = min_count, drops_rare
        self.columns, self.table = tuple(map(Column, frame.columns)), TokenTable()
        self._frame = frame

    def read(self) -> Iterator[tuple[NDArray[np.int32], float]]:
        yield code_frame(self._frame, self.columns, self.table, add=True), 1.0


def _with_shares(files: Sequence[Path]) -> Iterator[tuple[Path, float, float]]:
    """Each file, the part of all bytes that come before it, and the part that it holds."""
    sizes = [path.stat().st_size for path in files]
    total, before = max(sum(sizes), 1), 0
    for path, size in zip(files, sizes, strict=True):
        yield path, before / total, size / total
        before += size


def open_source(options: InspectionOptions) -> Source:
    """Find what the options name, and say which columns are looked at."""
    options.check()
    if options.path is not None:
        return _own_text(Path(options.path)) if options.text else _own_table(options)
    name = options.name
    if name == "synthetic":
        ids = generate_clicks().ids.numpy()
        return _Generated(name, pl.DataFrame({"field1": ids[:, 0], "field2": ids[:, 1]}))
    if name == "zipf-text":
        words = pl.Series("word", zipf_text()).str.split(" ").explode()
        return _Generated(name, words.to_frame(), default_min_count(None), drops_rare=True)
    if known_dataset(name).text:
        return _TextFiles(name, locate(known_dataset(name)).parent, lowercase=True)
    known = Request.of(DataOptions(dataset=name))
    readers = [known.open(path) for path in known.files]
    return _TableFiles(name, readers, known.columns, options.max_bad_rows, known.min_count)


def _own_text(path: Path) -> Source:
    return _TextFiles(text_name(path), path, lowercase=is_wikitext(path))


def _own_table(options: InspectionOptions) -> Source:
    path = str(options.path)
    files = list_files(path, options.dialect)
    refuse_parquet(files, options.dialect)
    readers = [open_reader(file, options.dialect) for file in files]
    options = options.without_types(readers[0])
    others = [options.label] if options.label else []
    features = options.features or _all_but(readers[0], [*options.numeric, *others])
    if not (features or options.numeric):
        raise DataError(f"{path}: there is no column but the label")
    columns = table_columns(readers, features, options.numeric, options.numeric_rule, others)
    return _TableFiles(data_name(path), readers, columns, options.max_bad_rows)


def _all_but(reader: Reader, used: Sequence[str]) -> tuple[str, ...]:
    """The columns of a table that have no other use."""
    found = list(reader.schema())
    if not any(found):
        raise DataError(f"{reader.place}: the first line names no columns")
    if len(found) == 1 and not used:
        _refuse_one_column(reader, found[0])
    return tuple(name for name in found if name not in used)


def _refuse_one_column(reader: Reader, name: str) -> None:
    """Raise if what looks like one column is more likely something else."""
    advice = [reader.hint([name])]
    if has_text_name(Path(reader.place)):
        advice.append("If the file is text, not a table, say --text")
    if any(advice):
        said = "; ".join(filter(None, advice))
        raise DataError(
            f"{reader.place}: this is one column, {shown(name)}. {said}; else name the column "
            "(--features)"
        )


def hashed_fields(options: InspectionOptions, hash_rows: str) -> tuple[Field, ...]:
    """The fields of files whose tokens are hashed, by a look at the first of them."""
    days = find_days(str(options.path), allow_missing=True, dialect=options.dialect)
    readers = [open_reader(file, options.dialect) for day in days for file in day.files]
    options = options.without_types(readers[0])
    rows = parse_rows(hash_rows, [*options.features, *options.numeric])
    columns = table_columns(readers, options.features, options.numeric, whole=False)
    return HashEncoder(columns, rows).fields
