"""Turn raw files into arrays of ids and labels on disk, in bounded memory.

Rows are read once. A token gets a code when it is first seen, and the codes are written to the
disk; when all tokens have been counted, their codes there are replaced by their ids.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from freqsgd.data.ahead import ahead
from freqsgd.data.coding import TokenCoder
from freqsgd.data.columns import Column
from freqsgd.data.dataset import DataError
from freqsgd.data.dialect import BY_NAME, Dialect
from freqsgd.data.encoder import Encoder
from freqsgd.data.formats import format_for
from freqsgd.data.malformed import MalformedRows
from freqsgd.data.samples import SampleReader, Samples
from freqsgd.data.target import Target
from freqsgd.data.unknown import UnknownValues
from freqsgd.data.vocabulary import Vocabulary, to_ids

__all__ = ["IDS", "LABELS", "ORDER", "SUMMARY", "Progress", "Source", "encode"]

Progress = Callable[[str, int, int | None], None]  # stage, done, total

IDS, LABELS, ORDER = "ids.bin", "labels.bin", "order.bin"  # int32, uint8, float64
SUMMARY = "summary.json"
_BLOCK_BYTES = 1 << 24


@dataclass(frozen=True)
class Source:
    """Raw files, and how their columns are to be used."""

    kind: str  # the layout of the files, as for an Encoder
    files: tuple[Path, ...]
    columns: tuple[Column, ...]
    target: Target
    min_count: int = 1
    max_bad_rows: int = 0
    validation: tuple[Path, ...] = ()
    test: tuple[Path, ...] = ()
    dialect: Dialect = BY_NAME


def encode(source: Source, folder: Path, progress: Progress | None = None) -> None:
    """Write ids, labels, what the split goes by, the encoder and a summary into the folder.

    The summary has the numbers of rows of the source's files, of its validation files and of its
    test files, and says what was dropped and what values of the latter two are unknown.
    """
    malformed = MalformedRows(source.max_bad_rows)
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
    source: Source, writer: _Writer, malformed: MalformedRows, progress: Progress | None
) -> Encoder:
    """Write the samples of the source's files, and number their tokens."""
    vocabulary = Vocabulary()
    coder = TokenCoder(source.columns, vocabulary.table, add=True)
    reader = SampleReader(source.columns, coder, malformed, source.target)
    sizes = [path.stat().st_size for path in source.files]
    for index, path in enumerate(source.files):
        for samples in ahead(reader.read(path, format_for(source.kind, path, source.dialect))):
            vocabulary.count(samples.codes)
            writer.write(samples)
            if progress:
                done = sum(sizes[:index]) + round(samples.done * sizes[index])
                progress("encoding", done, sum(sizes))
    _check_labels(source, writer)
    tokens, ids = vocabulary.rank(source.columns, source.min_count)
    del vocabulary, coder, reader  # which hold every text
    writer.number(ids, sum(column.width for column in source.columns), progress)
    return Encoder(source.kind, source.columns, tokens, source.min_count, source.dialect)


def _place(files: Sequence[Path]) -> Path:
    return files[0] if len(files) == 1 else files[0].parent


def _check_labels(source: Source, writer: _Writer) -> None:
    place = _place(source.files)
    if writer.rows == 0:
        raise DataError(f"{place}: there are no rows")
    if writer.positives in (0, writer.rows):
        label = int(writer.positives > 0)
        raise DataError(
            f"{place}: all {writer.rows:,} labels ({source.target.label!r}) are {label}, so there "
            "is nothing to learn; is this the right column?"
        )
