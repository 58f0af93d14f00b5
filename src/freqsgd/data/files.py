"""Files: written so that they are either whole or not there; read though they be packed."""

from __future__ import annotations

import contextlib
import gzip
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from freqsgd.data.dataset import DataError

__all__ = ["make_folder", "open_text", "replacing", "write_whole"]


def make_folder(folder: Path) -> list[Path]:
    """Make a folder, or say why that cannot be; return those that were not there, itself first."""
    try:
        made = [each for each in (folder, *folder.parents) if not each.exists()]
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot make the folder {folder}: {error.strerror}") from error
    return made


def open_text(path: Path) -> BinaryIO:
    """Open a file to read its bytes, unpacked if its name ends with .gz."""
    try:
        return cast(BinaryIO, gzip.open(path)) if path.suffix.lower() == ".gz" else path.open("rb")
    except OSError as error:
        raise DataError(f"{path}: cannot be opened: {error.strerror}") from error


@contextlib.contextmanager
def replacing(path: Path, temporary: Path | None = None) -> Iterator[Path]:
    """Give a name to write under; the file gets its own once it is on the disk.

    The temporary name is one of this process unless another is given.
    """
    temporary = temporary or path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes) -> None:
    """Write all of a file, or nothing."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)
