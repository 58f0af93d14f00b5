"""Encode files to arrays of ids and labels on disk, in bounded memory."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from freqsgd.errors import DataError, DataWarning
from freqsgd.files import read_json
from freqsgd.tables.cache import cached
from freqsgd.tables.coding import MalformedRows, SampleReader, Samples, TokenCoder
from freqsgd.tables.dataset import Dataset
from freqsgd.tables.encoder import Encoder
from freqsgd.tables.fields import (
    ABSENT,
    Field,
    Splits,
    split_at_random,
    split_by_part,
    split_by_time,
    split_column,
)
from freqsgd.tables.prefetch import ahead
from freqsgd.tables.sources import Request
from freqsgd.tables.tokens import Vocabulary, to_ids
from freqsgd.tables.unknown import UnknownValues

if TYPE_CHECKING:
    from freqsgd.tables.spec import DataOptions

Progress = Callable[[str, int, int | None], None]  # stage, done, total

IDS, LABELS, ORDER = "ids.bin", "labels.bin", "order.bin"  # int32, uint8, float64
SUMMARY = "summary.json"
_BLOCK_BYTES = 1 << 24


def encode(source: Request, folder: Path, progress: Progress | None = None) -> None:
    """Write ids, labels, what the split goes by, the encoder and a summary into the folder.

    The summary has the numbers of rows of the source's files, of its validation files and of its
    test files, and says what was dropped and what values of the latter two are unknown.
    """
    malformed = MalformedRows(source.options.max_bad_rows)
    with _Writer(folder) as writer:
        encoder = _encode_and_rank(source, writer, malformed, progress)
        rows, warned = [writer.rows], []
        for files in (source.validation, source.test):
            unknown = UnknownValues(str(_place(files)) if files else "")
            for samples in encoder.read(files, malformed, unknown, source.target):
                writer.write(samples)
            warned += unknown.messages()
            rows.append(writer.rows - sum(rows))
            if files and rows[-1] == 0:
                raise DataError(f"{files[0]}: there are no rows")
    encoder.save(folder)
    summary = {"rows": rows, "dropped": malformed.dropped(), "unknown": warned}
    (folder / SUMMARY).write_text(json.dumps(summary), encoding="utf-8")


class _Writer:
    """The files of encoded samples while they grow."""

    def __init__(self, folder: Path) -> None:
        self.rows = self.positives = 0
        self._files = [(folder / name).open("w+b") for name in (IDS, LABELS, ORDER)]

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files:
            file.close()

    def write(self, samples: Samples) -> None:
        """Append samples."""
        arrays = (samples.codes, samples.labels, samples.order)
        for file, array in zip(self._files, arrays, strict=True):
            file.write(np.ascontiguousarray(array).data)
        self.rows += len(samples.codes)
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
            file.write(to_ids(codes, ids).data)


def _encode_and_rank(
    source: Request, writer: _Writer, malformed: MalformedRows, progress: Progress | None
) -> Encoder:
    """Write the samples of the source's files, and number their tokens."""
    vocabulary = Vocabulary()
    coder = TokenCoder(source.columns, vocabulary.table, add=True)
    reader = SampleReader(source.columns, coder, malformed, source.target)
    sizes = [path.stat().st_size for path in source.files]
    for index, path in enumerate(source.files):
        for samples in ahead(reader.read(source.open(path))):
            vocabulary.count(samples.codes)
            writer.write(samples)
            if progress:
                done = sum(sizes[:index]) + round(samples.done * sizes[index])
                progress("encoding", done, sum(sizes))
    _check_labels(source, writer)
    tokens, ids = vocabulary.rank(source.columns, source.min_count)
    del vocabulary, coder, reader  # which hold every text
    writer.number(ids, sum(column.width for column in source.columns), progress)
    return Encoder(source.kind, source.columns, tokens, source.min_count, source.options.dialect)


def _place(files: Sequence[Path]) -> Path:
    return files[0] if len(files) == 1 else files[0].parent


def _check_labels(source: Request, writer: _Writer) -> None:
    place = _place(source.files)
    if writer.rows == 0:
        raise DataError(f"{place}: there are no rows")
    if writer.positives in (0, writer.rows):
        label = int(writer.positives > 0)
        raise DataError(
            f"{place}: all {writer.rows:,} labels ({source.target.label!r}) are {label}, so there "
            "is nothing to learn; is this the right column?"
        )


_PARTS = ("train", "validation", "test")
_AT_ONCE = 1 << 20  # rows that are looked at


def load_files(options: DataOptions, progress: Progress | None = None) -> Dataset:
    """Load what the options name."""
    request = Request.of(options)
    folder = encoded_folder(request, progress)
    summary = read_json((folder / SUMMARY).read_bytes(), dict)
    if summary["dropped"]:
        warnings.warn(summary["dropped"], DataWarning, stacklevel=3)
    for message in summary["unknown"]:
        warnings.warn(message, DataWarning, stacklevel=3)
    encoder = Encoder.load(folder)
    ids, labels = _mapped(folder, encoder.fields)
    return Dataset(
        request.name,
        encoder.fields,
        ids,
        labels,
        _splits(request, folder, summary["rows"]),
        encoder,
    )


def encoded_folder(request: Request, progress: Progress | None = None) -> Path:
    """The folder of the encoded samples."""
    return cached(
        request.name,
        request.key(),
        lambda folder: encode(request, folder, progress),
        check_samples,
    )


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
