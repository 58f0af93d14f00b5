"""Files: written so that they are either whole or not there; packed ones can be read."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from freqsgd.errors import DataError

_Kind = TypeVar("_Kind", dict[str, Any], list[Any])


def make_folder(folder: Path) -> list[Path]:
    """Make a folder, or say why that cannot be; return those that were not there, itself first."""
    try:
        made = [each for each in (folder, *folder.parents) if not each.exists()]
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot make the folder {folder}: {error.strerror}") from error
    return made


# ---- reading -------------------------------------------------------------------------------------


def no_file(path: Path) -> DataError:
    """Return the error about a path that is neither a file nor a folder.

    Files are read more than once, so that pipes cannot take their place.
    """
    kinds = {
        "a pipe": path.is_fifo(),
        "a device": path.is_char_device() or path.is_block_device(),
        "a socket": path.is_socket(),
    }
    for kind, found in kinds.items():
        if found:
            return DataError(f"{path}: this is {kind}; write what it gives to a file first")
    return DataError(f"{path}: there is no such file or folder")


def open_text(path: Path) -> BinaryIO:
    """Open a file to read its bytes, unpacked if its name ends with .gz."""
    try:
        return cast(BinaryIO, gzip.open(path)) if path.suffix.lower() == ".gz" else path.open("rb")
    except OSError as error:
        raise DataError(f"{path}: cannot be opened: {error.strerror}") from error


def read_file(path: Path) -> bytes:
    """Return the content of a file; refuse a pipe, which could keep a command waiting.

    Raises:
        DataError: it is there, but is not a file
        OSError: it cannot be read
    """
    if path.exists() and not path.is_file():
        raise no_file(path)
    return path.read_bytes()


def read_json(content: bytes | str, kind: type[_Kind]) -> _Kind:
    """Return the JSON object (``dict``) or list that a file holds.

    Raises:
        ValueError: it is not JSON, is something else, or is nested too deeply to be read
    """
    try:
        found = json.loads(content)
    except RecursionError:
        raise ValueError("its JSON is nested too deeply") from None
    if not isinstance(found, kind):
        what = {dict: "object", list: "list"}[kind]
        raise ValueError(f"its JSON is not one {what} but of type {type(found).__name__}")
    return found


# ---- what may be written -------------------------------------------------------------------------


def check_target(path: Path, *, force: bool, inputs: Iterable[Path] = ()) -> None:
    """Refuse a file that must not or cannot be written; nothing is made yet.

    Args:
        path: the file, or a link to it
        force: whether a file that exists may be replaced
        inputs: files, and folders of files, that are read: they are never replaced
    """
    try:
        if path.is_dir():
            raise DataError(f"cannot write {path}: it is a folder; name a file in it")
        for each in inputs:
            if _is_input(path, each):
                raise DataError(
                    f"cannot write {path}: {each} is an input, which is never replaced; name "
                    "another file"
                )
        if is_stream(path):
            return
        if path.exists() and not force:
            raise DataError(
                f"cannot write {path}: it exists already; use --force (force=True in Python) to "
                "replace it"
            )
        real = _real(path)
        folder = next(each for each in real.parents if each.exists())
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror}") from error
    if not folder.is_dir():
        raise DataError(f"cannot write {path}: {folder} is no folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise DataError(f"cannot write {path}: no permission to write in {folder}")


def is_stream(path: Path) -> bool:
    """Tell whether a path is written into, not replaced.

    It is a pipe or a device, or the file that this process prints to (``/dev/stdout``).
    """
    try:
        found = path.stat()
    except OSError:
        return False
    return not stat.S_ISREG(found.st_mode) or _printed(found) is not None


def _is_input(path: Path, source: Path) -> bool:
    """Tell whether a path is a file that is read, or in a folder of such files."""
    if not path.exists() or path.is_char_device() or not source.exists():
        return False
    if source.is_dir():
        return _real(path).is_relative_to(_real(source))
    return path.samefile(source)


def _printed(found: os.stat_result) -> int | None:
    """Return the descriptor of stdout or stderr if it is this file."""
    for descriptor in (1, 2):
        with contextlib.suppress(OSError):
            if os.path.samestat(found, os.fstat(descriptor)):
                return descriptor
    return None


def _real(path: Path) -> Path:
    """Return where links lead to; the file need not be there."""
    return Path(os.path.realpath(path))


# ---- writing -------------------------------------------------------------------------------------


@contextlib.contextmanager
def replacing(path: Path, *, one_name: bool = False) -> Iterator[Path]:
    """Give a name to write under; the file gets its own once it is on the disk.

    A link stays, and the file that it names is replaced. A pipe or a device stays too: what was
    written is copied into it.

    Args:
        path: the file
        one_name: the temporary name is not one of this process, so that processes which are killed
            leave one file; only one of them may write at a time
    """
    if is_stream(path):
        with tempfile.TemporaryDirectory(prefix="freqsgd-") as folder:
            yield (temporary := Path(folder) / "written")
            with temporary.open("rb") as source, _open_stream(path) as target:
                shutil.copyfileobj(source, target)
        return
    path = _real(path)
    temporary = path.with_name(f".{path.name}.{'' if one_name else f'{os.getpid()}.'}tmp")
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _open_stream(path: Path) -> BinaryIO:
    descriptor = _printed(path.stat())
    if descriptor is None:
        return path.open("wb")
    for each in (sys.stdout, sys.stderr):  # what was printed before comes first
        each.flush()
    return os.fdopen(os.dup(descriptor), "wb")  # goes on where it is: opened anew, it would be cut


@contextlib.contextmanager
def writing(path: Path) -> Iterator[Path]:
    """Do the same as :func:`replacing`, with an error that names the file.

    Raises:
        DataError: it cannot be written, as on a full disk
        BrokenPipeError: it is a pipe, and its reader has gone
    """
    try:
        with replacing(path) as temporary:
            yield temporary
    except BrokenPipeError:
        raise
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}") from error


def write_whole(path: Path, content: bytes) -> None:
    """Write all of a file, or nothing."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Write a document, whole or not at all; make its folder where there is none."""
    make_folder(path.parent)
    with writing(path) as temporary:
        temporary.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n", "utf-8")


LOCK = ".lock"
_LEAVING_SECONDS = 0.1  # in which a run that is ending removes its lock


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
    from filelock import FileLock, Timeout  # here, since most commands lock nothing

    path, made = folder / LOCK, make_folder(folder)
    lock = FileLock(path, thread_local=False, fallback_to_soft=False)
    try:
        lock.acquire(timeout=_LEAVING_SECONDS)
    except Timeout:
        raise DataError(
            f"{folder} is being used by another run{_owner(path)}: wait until it ends, or use "
            "another folder"
        ) from None
    except OSError as error:
        raise DataError(f"cannot use the folder {folder}: {error.strerror}") from error
    try:
        with contextlib.suppress(OSError):  # on a full disk: it only tells others who is here
            path.write_text(str(os.getpid()))
        yield
    finally:
        with contextlib.suppress(OSError):  # Windows removes it when the lock is released
            path.unlink(missing_ok=True)
        lock.release()
        with contextlib.suppress(OSError):
            for each in made:  # the innermost first: what is not empty stays
                each.rmdir()


def _owner(path: Path) -> str:
    try:
        number = path.read_text().strip()
    except OSError:
        number = ""
    return f" (process {number})" if number else ""
