"""A click log written as Parquet: a folder per day."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import polars as pl

from freqsgd.data.dataset import DataError
from freqsgd.data.files import replacing
from freqsgd.streams.click_log import BLOCK_ROWS, ClickBlock, ClickLog
from freqsgd.streams.clicks import blocks_of

__all__ = ["PART_ROWS", "write_clicks"]

PART_ROWS = 1 << 20
_GROUP_ROWS = 1 << 18
_TILE = 1 << 11  # rows that stay in the cache while they become columns


def write_clicks(
    log: ClickLog, folder: Path, progress: Callable[[int, int], None] | None = None
) -> list[Path]:
    """Write ``day-00/part-000.parquet`` and so on, with the columns label, f01, f02, ...

    A file is written whole or not at all. Files hold a million rows at most.

    Args:
        log: what is written
        folder: made if need be; must be empty
        progress: called with the rows that are written and all there are

    Returns:
        the files
    """
    written: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise DataError(f"{folder} is not empty: name a new folder")
        for path, frame, done in _parts(log, folder):
            path.parent.mkdir(exist_ok=True)
            with replacing(path) as temporary:
                frame.write_parquet(temporary, compression="lz4", row_group_size=_GROUP_ROWS)
            written.append(path)
            if progress:
                progress(done, log.days * log.rows)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DataError(
            f"{folder}: cannot be written ({error}); {len(written)} files are there, each whole: "
            "make room, or name another folder"
        ) from error
    return written


def _parts(log: ClickLog, folder: Path) -> Iterator[tuple[Path, pl.DataFrame, int]]:
    """Each file, what goes into it, and how many rows there are up to its end."""
    done = 0
    for day, name in enumerate(log.day_names):
        blocks = blocks_of(log, day, day + 1)
        number = 0
        while some := list(islice(blocks, PART_ROWS // BLOCK_ROWS)):
            frame = _frame(log, some)
            done += len(frame)
            yield folder / name / f"part-{number:03}.parquet", frame, done
            number += 1


def _frame(log: ClickLog, blocks: list[ClickBlock]) -> pl.DataFrame:
    labels = np.concatenate([block.labels for block in blocks])
    columns = np.empty((len(log.sizes), len(labels)), np.int32)
    start = 0
    for block in blocks:
        for some in np.array_split(block.tokens, -(-len(block.tokens) // _TILE)):
            columns[:, start : start + len(some)] = some.T
            start += len(some)
    return pl.DataFrame({"label": labels, **dict(zip(log.feature_names, columns, strict=True))})
