"""One run at a time in a folder."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from freqsgd.data.dataset import DataError
from freqsgd.data.files import make_folder

__all__ = ["locked"]

LOCK = ".lock"


@contextlib.contextmanager
def locked(folder: Path | None) -> Iterator[None]:
    """Keep other runs out of a folder, which is made if need be; None: there is none.

    A folder that was made and has nothing in it in the end, as after a refusal, is removed again.
    The lock belongs to the process and ends with it, however it ends; the file that is left behind
    by one that was killed keeps nobody out.
    """
    if folder is None:
        yield
        return
    path, made = folder / LOCK, make_folder(folder)
    try:
        file = _lock(path)
    except BlockingIOError:
        raise DataError(
            f"{folder} is being used by another run{_owner(path)}: wait until it ends, or use "
            "another folder"
        ) from None
    except OSError as error:
        raise DataError(f"cannot use the folder {folder}: {error.strerror}") from error
    try:
        with contextlib.suppress(OSError):  # on a full disk: it only tells others who is here
            os.ftruncate(file, 0)
            os.write(file, str(os.getpid()).encode())
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
            for each in made:  # the innermost first: what is not empty stays
                each.rmdir()
        os.close(file)


def _lock(path: Path) -> int:
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is(path, file):  # and not one that its owner has just removed
                return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)


def _is(path: Path, file: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file))
    except FileNotFoundError:
        return False


def _owner(path: Path) -> str:
    try:
        number = path.read_text().strip()
    except OSError:
        number = ""
    return f" (process {number})" if number else ""
