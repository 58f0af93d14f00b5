"""Folders of results that are built once and found again by what they were built from."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from freqsgd.errors import DataError, DataWarning
from freqsgd.files import read_json, write_whole
from freqsgd.tables.catalog import cache_folder

_FORMAT = 2  # of the seal: folders of another are built anew
_SEAL = "whole.json"  # written last: what the folder was built from, and the digests of its files
_SEEN = "seen.json"  # files as they were when they were last found to be those of the seal
_SETTLED_SECONDS = 2.0  # a younger change may have the time of an older one: clocks tick
_ABANDONED_SECONDS = 3600

Check = Callable[[Path], None]
Progress = Callable[[str, int, int | None], None]  # stage, done, total


def file_key(path: Path) -> list[Any]:
    """Return what tells a file from a changed one."""
    stat = path.stat()
    return [str(path.resolve()), stat.st_size, stat.st_mtime_ns]


def cached(
    name: str, key: dict[str, Any], build: Callable[[Path], None], check: Check | None = None
) -> Path:
    """Return the folder that was built from ``key``, built now if there is none.

    ``build`` fills a temporary folder, which gets its name when it is whole. So processes that
    build the same at once do not disturb each other, and one that is killed leaves nothing that
    looks whole.

    A folder that was found is used if each file has the digest that it was built with. That is
    found out once: files whose numbers, sizes and times the system has not changed since are not
    read again. What was changed is built anew, with a warning.

    Args:
        name: begins the name of the folder
        key: what its content depends on
        build: fills a folder
        check: raises ValueError if what is in a folder cannot be; called when digests are compared
    """
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:20]
    folder = cache_folder() / "encoded" / f"{name}-{digest}"
    damage = _damage(folder, key, check)
    if damage is None:
        return folder
    if damage:
        warnings.warn(
            f"{folder}: {damage}; what it was made from is encoded anew", DataWarning, stacklevel=2
        )
    temporary = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(folder.parent)
        temporary = Path(tempfile.mkdtemp(prefix=".building-", dir=folder.parent))
        build(temporary)
        files = sorted(temporary.iterdir())
        sealed = {file.name: [file.stat().st_size, _digest(file)] for file in files}
        seal = {"format": _FORMAT, "key": key, "files": sealed}
        write_whole(temporary / _SEAL, json.dumps(seal).encode())
        _rename(temporary, folder, key, check)
    except OSError as error:
        raise unwritable(folder.parent, error) from error
    finally:
        if temporary:
            shutil.rmtree(temporary, ignore_errors=True)
    return folder


def unwritable(folder: Path, error: OSError) -> DataError:
    """Return what to say of a folder below that of the cache which cannot be written."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    fault = "the disk is full" if full else f"cannot be written ({error})"
    return DataError(
        f"{folder}: {fault}; make room, or name another folder with the environment variable "
        "FREQSGD_CACHE"
    )


def _damage(folder: Path, key: dict[str, Any], check: Check | None) -> str | None:
    """Say what is wrong with a folder; None: nothing; "": it is not there, or too old."""
    if not folder.exists():
        return ""
    try:
        seal = read_json((folder / _SEAL).read_bytes(), dict)
        if seal.get("format") != _FORMAT and "sizes" in seal:
            return ""
        if seal["key"] != json.loads(json.dumps(key)):
            return f"{_SEAL} is of another folder"
        now = {name: _identity(folder / name) for name in seal["files"]}
        if now != _seen(folder):
            for name, (size, digest) in seal["files"].items():
                if now[name][1] != size or _digest(folder / name) != digest:
                    return f"{name} was changed after it was written"
            if check is not None:
                check(folder)
            _remember(folder, now)
    except FileNotFoundError as error:
        return f"there is no {Path(error.filename).name}"
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"it is damaged ({error})"
    return None


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _identity(path: Path) -> list[int]:
    """Return what changes with every change of a file: the time of the last one cannot be set."""
    stat = path.stat()
    return [stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]


def _seen(folder: Path) -> dict[str, Any] | None:
    try:
        return read_json((folder / _SEEN).read_bytes(), dict)
    except (OSError, ValueError):
        return None


def _remember(folder: Path, files: dict[str, list[int]]) -> None:
    """Write down files that were compared, unless they may change without a change of time."""
    last = max(changed for *_, changed in files.values())
    if time.time_ns() - last > _SETTLED_SECONDS * 1e9:
        with contextlib.suppress(OSError):  # a cache that cannot be written is compared each time
            write_whole(folder / _SEEN, json.dumps(files).encode())


def _rename(temporary: Path, folder: Path, key: dict[str, Any], check: Check | None) -> None:
    """Give a folder its name, in place of a damaged one; another process may have been first."""
    try:
        temporary.rename(folder)
    except OSError:
        if _damage(folder, key, check) is None:
            return
        damaged = Path(tempfile.mkdtemp(prefix=".building-", dir=folder.parent))
        folder.rename(damaged / "damaged")
        shutil.rmtree(damaged, ignore_errors=True)
        temporary.rename(folder)


def _remove_abandoned(parent: Path) -> None:
    """Remove what killed processes left: folders in which nothing was written for an hour."""
    for folder in parent.glob(".building-*"):
        try:
            last = max(entry.stat().st_mtime for entry in [folder, *folder.iterdir()])
        except OSError:
            continue
        if time.time() - last > _ABANDONED_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)
