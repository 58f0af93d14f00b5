"""Encode the files that options name, once: ids and labels on disk, in bounded memory."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from freqsgd.errors import DataError, DataWarning
from freqsgd.files import read_json
from freqsgd.prefetch import ahead
from freqsgd.tables.cache import Progress, cached, file_key
from freqsgd.tables.catalog import known_dataset, locate
from freqsgd.tables.dataset import Dataset
from freqsgd.tables.encoders.columns import Column, Target, check_table, table_columns
from freqsgd.tables.encoders.encoder import Encoder
from freqsgd.tables.encoders.samples import MalformedRows, read_files
from freqsgd.tables.encoders.vocabulary import Vocabulary
from freqsgd.tables.fields import (
    ABSENT,
    Chunk,
    Field,
    Splits,
    split_at_random,
    split_by_part,
    split_by_time,
    split_column,
)
from freqsgd.tables.readers.files import data_name, open_reader, open_tables
from freqsgd.tables.readers.reader import Reader

if TYPE_CHECKING:
    from freqsgd.tables.spec import DataOptions

_FORMAT = 5  # of the encoded samples: raised when they change, so that old ones are made anew

IDS, LABELS, ORDER = "ids.bin", "labels.bin", "order.bin"  # int32, uint8, float64
SUMMARY = "summary.json"
_BLOCK_BYTES = 1 << 24


@dataclass(frozen=True)
class Request:
    """The files that options name; what is in them is looked at only for the columns.

    Attributes:
        options: what the files hold; of a known dataset, as the catalog says
        name: of the data
        kind: the layout of the files, as for an Encoder
        parts: tables to learn from, to validate on and to test on
        integers: columns of integers of a known dataset
    """

    options: DataOptions
    name: str
    kind: str
    parts: tuple[tuple[Reader, ...], ...]
    integers: tuple[str, ...] = ()

    @classmethod
    def of(cls, options: DataOptions) -> Request:
        """Find the files."""
        above, min_count = options.positive_above, options.min_count
        if options.path is None:
            known = known_dataset(str(options.name))
            options = replace(
                options,
                label=known.label,
                features=known.features,
                positive_above=known.positive_above if above is None else above,
                min_count=known.min_count if min_count is None else min_count,
            )
            table = open_reader(locate(known), kind=known.name)
            return cls(options, known.name, known.name, ((table,), (), ()), known.integers)
        paths = (options.path, options.validation_path, options.test_path)
        parts = tuple(open_tables(path, options.dialect) if path else () for path in paths)
        options = options.without_types(parts[0][0])
        return cls(replace(options, min_count=min_count or 1), data_name(paths[0]), "table", parts)

    def key(self) -> dict[str, Any]:
        """Return what the encoded samples depend on."""
        options = self.options
        same = ("label", "features", "numeric", "numeric_rule", "positive_above", "split")
        return {
            "format": _FORMAT,
            "kind": self.kind,
            "files": [[file_key(table.path) for table in tables] for tables in self.parts],
            **{name: getattr(options, name) for name in same},
            "min_count": options.min_count,
            "max_bad_rows": options.max_bad_rows,
            "dialect": asdict(options.dialect),
        }

    @cached_property
    def target(self) -> Target:
        """What labels and splits are made from."""
        by, column = split_column(self.options.split)
        return Target(
            str(self.options.label),
            self.options.positive_above,
            time=column if by == "time" else None,
            part=column if by == "column" else None,
        )

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """How columns become fields, by a look into the files."""
        options, others = self.options, self.target.columns()
        tables, *held_out = self.parts
        if self.kind != "table":
            check_table(tables[0], (), others)
            integers = (Column(name, "integer") for name in self.integers)
            return (*integers, *map(Column, options.features))
        columns = table_columns(
            tables, options.features, options.numeric, options.numeric_rule, others
        )
        for table in chain(*held_out):
            check_table(table, columns, others)
        return columns


def encode(request: Request, folder: Path, progress: Progress | None = None) -> None:
    """Write ids, labels, what the split goes by, the encoder and a summary into the folder.

    The summary has the numbers of rows of the request's files, of its validation files and of its
    test files, and warnings of what was dropped and of unknown values in the latter two.
    """
    malformed = MalformedRows(request.options.max_bad_rows)
    with closing(_Writer(folder)) as writer:
        encoder = _encode_and_rank(request, writer, malformed, progress)
        rows, warned = [writer.rows], []
        for tables in request.parts[1:]:
            if tables:
                coder = encoder.coder(str(_place(tables)))
                for samples in read_files(tables, coder, malformed, request.target):
                    writer.write(samples)
                warned += coder.messages()
                if writer.rows == sum(rows):
                    raise DataError(f"{tables[0].path}: there are no rows")
            rows.append(writer.rows - sum(rows))
    encoder.save(folder)
    summary = {"rows": rows, "warnings": malformed.messages() + warned}
    (folder / SUMMARY).write_text(json.dumps(summary), encoding="utf-8")


class _Writer:
    """The files of encoded samples while they grow."""

    def __init__(self, folder: Path) -> None:
        self.rows = self.positives = 0
        self._files = [(folder / name).open("w+b") for name in (IDS, LABELS, ORDER)]

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            file.close()

    def write(self, samples: Chunk) -> None:
        """Append samples."""
        arrays = (samples.ids, samples.labels, samples.order)
        for file, array in zip(self._files, arrays, strict=True):
            file.write(np.ascontiguousarray(array).data)
        self.rows += len(samples.ids)
        self.positives += int(samples.labels.sum())

    def number(self, ids: NDArray[np.int32], width: int, progress: Progress | None) -> None:
        """Replace the codes that were written by their ids."""
        file = self._files[0]
        step = max(1, _BLOCK_BYTES // (4 * width))
        for start in range(0, self.rows, step):
            if progress:
                progress("numbering tokens", start, self.rows)
            file.seek(4 * width * start)
            codes = np.frombuffer(file.read(4 * width * step), np.int32)
            file.seek(4 * width * start)
            file.write(ids[codes].data)


def _encode_and_rank(
    request: Request, writer: _Writer, malformed: MalformedRows, progress: Progress | None
) -> Encoder:
    """Write the samples of the request's files, and number their tokens."""
    tables, columns, options = request.parts[0], request.columns, request.options
    min_count, place = options.min_count or 1, _place(tables)
    vocabulary = Vocabulary(columns)
    size = sum(table.path.stat().st_size for table in tables)
    chunks = read_files(tables, vocabulary, malformed, request.target)
    for samples in ahead(chunks):
        vocabulary.count(samples.ids)
        writer.write(samples)
        if progress:
            progress("encoding", round(samples.done * size), size)
    if writer.rows == 0:
        raise DataError(f"{place}: there are no rows")
    if writer.positives in (0, writer.rows):
        label = int(writer.positives > 0)
        raise DataError(
            f"{place}: all {writer.rows:,} labels ({request.target.label!r}) are {label}, so there "
            "is nothing to learn; is this the right column?"
        )
    tokens, ids = vocabulary.rank(min_count)
    width = vocabulary.starts[-1]
    del vocabulary, chunks  # which hold every text
    writer.number(ids, width, progress)
    return Encoder(request.kind, columns, tokens, min_count, options.dialect)


def _place(tables: Sequence[Reader]) -> Path:
    return tables[0].path if len(tables) == 1 else tables[0].path.parent


_PARTS = ("train", "validation", "test")
_AT_ONCE = 1 << 20  # rows that are looked at


def load_files(options: DataOptions, progress: Progress | None = None) -> Dataset:
    """Load what the options name."""
    request = Request.of(options)
    folder = encoded_folder(request, progress)
    summary = read_json((folder / SUMMARY).read_bytes(), dict)
    for message in summary["warnings"]:
        warnings.warn(message, DataWarning, stacklevel=3)
    encoder = Encoder.load(folder)
    ids, labels = _mapped(folder, encoder.fields)
    splits = _splits(request, folder, summary["rows"])
    return Dataset(request.name, encoder.fields, ids, labels, splits, encoder)


def encoded_folder(request: Request, progress: Progress | None = None) -> Path:
    """Return the folder of the encoded samples, encoding them now if need be."""

    def build(folder: Path) -> None:
        encode(request, folder, progress)

    return cached(request.name, request.key(), build, check_samples)


def check_samples(folder: Path) -> None:
    """Raise ValueError if there are ids or labels that training cannot use."""
    fields = Encoder.load(folder).fields
    ids, labels = _mapped(folder, fields)
    rows = sum(read_json((folder / SUMMARY).read_bytes(), dict)["rows"])
    if not len(ids) == len(labels) == rows:
        raise ValueError(f"{len(ids)} rows of ids, {len(labels)} labels, {rows} rows")
    if labels.max(initial=0) > 1:
        raise ValueError(f"{LABELS} has a label of {labels.max()}")
    widths = [field.width for field in fields]
    lowest = np.repeat([0 if width == 1 else ABSENT for width in widths], widths)
    sizes = np.repeat([field.size for field in fields], widths)
    for start in range(0, rows, _AT_ONCE):
        some = ids[start : start + _AT_ONCE]
        if (some.min(0) < lowest).any() or (some.max(0) >= sizes).any():
            raise ValueError(f"{IDS} has an id that is out of range")


def _mapped(folder: Path, fields: Sequence[Field]) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    ids = np.memmap(folder / IDS, np.int32, "r")
    width = sum(field.width for field in fields)
    return ids.reshape(-1, width), np.memmap(folder / LABELS, np.uint8, "r")


def _splits(request: Request, samples: Path, rows: list[int]) -> Splits:
    seed = request.options.split_seed

    def build(folder: Path) -> None:
        by, _ = split_column(request.options.split)
        if by == "random":
            splits = split_at_random(rows[0], seed, own=(rows[1], rows[2]))
        else:
            order = np.fromfile(samples / ORDER)
            splits = split_by_time(order) if by == "time" else split_by_part(order)
        for part in _PARTS:
            np.save(folder / f"{part}.npy", getattr(splits, part))

    def check(folder: Path) -> None:
        for part in _load_splits(folder):
            if len(part) and not 0 <= part.min() <= part.max() < sum(rows):
                raise ValueError("its splits name a row that is not there")

    key = {"samples": samples.name, "seed": seed}
    return Splits(*_load_splits(cached(f"{request.name}-split", key, build, check)))


def _load_splits(folder: Path) -> list[NDArray[np.int64]]:
    return [np.load(folder / f"{part}.npy", mmap_mode="r") for part in _PARTS]
