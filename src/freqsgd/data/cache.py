"""Folders of results that are built once and found again by what they were built from."""

from __future__ import annotations

import errno
import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from freqsgd.data.dataset import DataError
from freqsgd.data.files import write_whole
from freqsgd.data.folders import cache_folder

__all__ = ["cached", "file_key", "find_cached"]

_SEAL = "whole.json"  # written last: what the folder was built from, and the sizes of its files
_ABANDONED_SECONDS = 3600
_FULL = (errno.ENOSPC, errno.EDQUOT)


def file_key(path: Path) -> list[Any]:
    """What tells a file from a changed one."""
    stat = path.stat()
    return [str(path.resolve()), stat.st_size, stat.st_mtime_ns]


def find_cached(name: str, key: dict[str, Any]) -> Path | None:
    """The folder that was built from ``key``; None if there is none, or it is damaged."""
    folder = _folder(name, key)
    try:
        sizes = json.loads((folder / _SEAL).read_bytes())["sizes"]
        whole = all((folder / file).stat().st_size == size for file, size in sizes.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return folder if whole else None


def cached(name: str, key: dict[str, Any], build: Callable[[Path], None]) -> Path:
    """The folder that was built from ``key``, built now if there is none.

    ``build`` fills a temporary folder, which gets its name when it is whole. So processes that
    build the same at once do not disturb each other, and one that is killed leaves nothing that
    looks whole.
    """
    found = find_cached(name, key)
    if found:
        return found
    folder = _folder(name, key)
    temporary = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(folder.parent)
        temporary = Path(tempfile.mkdtemp(prefix=".building-", dir=folder.parent))
        build(temporary)
        sizes = {file.name: file.stat().st_size for file in temporary.iterdir()}
        write_whole(temporary / _SEAL, json.dumps({"key": key, "sizes": sizes}).encode())
        _rename(temporary, folder, name, key)
    except OSError as error:
        if error.errno not in _FULL:
            raise DataError(
                f"{folder.parent}: cannot be written ({error}); name another folder with the "
                "environment variable FREQSGD_CACHE"
            ) from error
        raise DataError(
            f"{folder.parent}: the disk is full; make room, or name a folder on another disk with "
            "the environment variable FREQSGD_CACHE"
        ) from error
    finally:
        if temporary:
            shutil.rmtree(temporary, ignore_errors=True)
    return folder


def _folder(name: str, key: dict[str, Any]) -> Path:
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:20]
    return cache_folder() / "encoded" / f"{name}-{digest}"


def _rename(temporary: Path, folder: Path, name: str, key: dict[str, Any]) -> None:
    """Give a folder its name, in place of a damaged one; another process may have been first."""
    try:
        temporary.rename(folder)
    except OSError:
        if find_cached(name, key):
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
