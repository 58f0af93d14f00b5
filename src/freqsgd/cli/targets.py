"""Files that a command will write, looked at before it works."""

from __future__ import annotations

import os
from pathlib import Path

from freqsgd.data.dataset import DataError

__all__ = ["check_target"]


def check_target(path: Path) -> None:
    """Refuse a file that cannot be written; nothing is made yet."""
    if path.is_dir():
        raise DataError(f"cannot write {path}: it is a folder; name a file in it")
    folder = next(each for each in path.absolute().parents if each.exists())
    if not folder.is_dir():
        raise DataError(f"cannot write {path}: {folder} is no folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise DataError(f"cannot write {path}: no permission to write in {folder}")
