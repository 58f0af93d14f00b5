"""Files that may be compressed."""

from __future__ import annotations

import contextlib
import gzip
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

__all__ = ["unpacked"]

_GZIP = b"\x1f\x8b"


@contextlib.contextmanager
def unpacked(path: Path) -> Iterator[BinaryIO]:
    """Open a file to read; one of gzip becomes a temporary one, which can be mapped too."""
    with path.open("rb") as file:
        packed = file.read(2) == _GZIP
        file.seek(0)
        if not packed:
            yield file
            return
        with tempfile.TemporaryFile() as plain:
            with gzip.open(file) as content:
                shutil.copyfileobj(content, plain)
            plain.seek(0)
            yield cast(BinaryIO, plain)
