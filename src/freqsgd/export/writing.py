"""Files that are whole or not there; what prevents it, in one line."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from freqsgd.data.dataset import DataError
from freqsgd.data.files import replacing

__all__ = ["writing"]


@contextlib.contextmanager
def writing(path: Path) -> Iterator[Path]:
    """Give a name to write under; the file gets its own once it is on the disk."""
    try:
        with replacing(path) as temporary:
            yield temporary
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}") from error
