"""Open the data that an inspection reads."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.errors import DataError, DataWarning
from freqsgd.inspection.options import InspectionOptions
from freqsgd.prefetch import ahead
from freqsgd.tables.catalog import known_dataset, locate
from freqsgd.tables.encoders.columns import Column, table_columns
from freqsgd.tables.encoders.frames import code_frame
from freqsgd.tables.encoders.hashing import HashEncoder
from freqsgd.tables.encoders.samples import MalformedRows, read_files
from freqsgd.tables.encoders.tokens import TokenTable
from freqsgd.tables.encoders.values import shown
from freqsgd.tables.encoders.vocabulary import Vocabulary
from freqsgd.tables.encoding import Request
from freqsgd.tables.fields import Field
from freqsgd.tables.generated.synthetic import generate_clicks
from freqsgd.tables.readers.files import (
    data_name,
    find_days,
    open_reader,
    open_tables,
)
from freqsgd.tables.readers.reader import Reader
from freqsgd.tables.spec import DataOptions, parse_rows
from freqsgd.words.files import has_text_name, text_name
from freqsgd.words.loading import replaced_warning
from freqsgd.words.spec import default_min_count, files_of_parts, is_wikitext
from freqsgd.words.tokenizer import WordReader
from freqsgd.words.zipf import zipf_text

_LONGEST = 256  # words of a piece of text, which do not matter here
Codes = Iterator[tuple[NDArray[np.int32], float]]  # of rows, and the part of all rows so far


@dataclass(frozen=True)
class Source:
    """Rows of tokens.

    Attributes:
        name: of the data
        place: where it is, for messages
        columns: the fields of a row
        table: gives tokens their codes
        read: yields codes of consecutive rows, and the part of all rows up to here, from 0 to 1
        min_count: tokens seen less often are rare, in training
        drops_rare: whether training leaves rare tokens out, as it does with words
    """

    name: str
    place: str
    columns: tuple[Column, ...]
    table: TokenTable
    read: Callable[[], Codes]
    min_count: int = 1
    drops_rare: bool = False


def open_source(options: InspectionOptions) -> Source:
    """Open what the options name, and say which columns are looked at."""
    options.check()
    if options.path is not None:
        if not options.text:
            return _own_table(options)
        path = Path(options.path)
        return _text(text_name(path), path, lowercase=is_wikitext(path))
    name = options.name
    if name == "synthetic":
        ids = generate_clicks().ids.numpy()
        return _frame(name, pl.DataFrame({"field1": ids[:, 0], "field2": ids[:, 1]}))
    if name == "zipf-text":
        words = pl.Series("word", zipf_text()).str.split(" ").explode().to_frame()
        return replace(_frame(name, words), min_count=default_min_count(None), drops_rare=True)
    known = known_dataset(name)
    if known.kind == "text":
        return _text(name, locate(known).parent, lowercase=True)
    request = Request.of(DataOptions(dataset=name))
    return _tables(name, request.parts[0], request.columns, options.max_bad_rows, known.min_count)


def _frame(name: str, frame: pl.DataFrame) -> Source:
    """Return the source of a frame in memory."""
    columns, table = tuple(map(Column, frame.columns)), TokenTable()

    def read() -> Codes:
        yield code_frame(frame, Vocabulary(columns, table)), 1.0

    return Source(name, name, columns, table, read)


def _tables(
    name: str,
    readers: Sequence[Reader],
    columns: Sequence[Column],
    bad_rows: int,
    min_count: int = 1,
) -> Source:
    """Return the source of files whose rows are samples."""
    table, files = TokenTable(), [Path(reader.place) for reader in readers]
    place = str(files[0] if len(files) == 1 else files[0].parent)

    def read() -> Codes:
        malformed = MalformedRows(bad_rows)
        coder = Vocabulary(columns, table)
        for samples in ahead(read_files(readers, coder, malformed)):
            yield samples.ids, samples.done
        for message in malformed.messages():
            warnings.warn(message, DataWarning, stacklevel=2)

    return Source(name, place, tuple(columns), table, read, min_count)


def _text(name: str, place: Path, *, lowercase: bool) -> Source:
    """Return the source of files of text; the word <unk> is left out, as in training."""
    words = WordReader("whitespace", lowercase=lowercase, longest=_LONGEST)
    files = files_of_parts(place)[0]

    def read() -> Codes:
        for path, before, share in _with_shares(files):
            for codes, _, done in words.read(path):
                yield codes[codes != 0].reshape(-1, 1), before + share * done
        if words.replaced:
            warning = replaced_warning([(str(k), n) for k, n in words.replaced.items()])
            warnings.warn(warning, DataWarning, stacklevel=2)
        if len(words.table) == 1:  # which is <unk>
            raise DataError(f"{place}: there are no words in it")

    columns, min_count = (Column("word"),), default_min_count(place)
    return Source(name, str(place), columns, words.table, read, min_count, drops_rare=True)


def _with_shares(files: Sequence[Path]) -> Iterator[tuple[Path, float, float]]:
    """Yield each file, the part of all bytes that come before it, and the part that it holds."""
    sizes = [path.stat().st_size for path in files]
    total, before = max(sum(sizes), 1), 0
    for path, size in zip(files, sizes, strict=True):
        yield path, before / total, size / total
        before += size


def _own_table(options: InspectionOptions) -> Source:
    path = str(options.path)
    readers = open_tables(path, options.dialect)
    options = options.without_types(readers[0])
    others = [options.label] if options.label else []
    features = options.features or _all_but(readers[0], [*options.numeric, *others])
    if not (features or options.numeric):
        raise DataError(f"{path}: there is no column but the label")
    columns = table_columns(readers, features, options.numeric, options.numeric_rule, others)
    return _tables(data_name(path), readers, columns, options.max_bad_rows)


def _all_but(reader: Reader, used: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of a table that have no other use."""
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
    """Return the fields of files whose tokens are hashed, by a look at the first of them."""
    days = find_days(str(options.path), allow_missing=True, dialect=options.dialect)
    readers = [open_reader(file, options.dialect) for day in days for file in day.files]
    options = options.without_types(readers[0])
    rows = parse_rows(hash_rows, [*options.features, *options.numeric])
    columns = table_columns(readers, options.features, options.numeric, whole=False)
    return HashEncoder(columns, rows).fields
