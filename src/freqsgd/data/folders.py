"""Where datasets are looked for, and where what is made of them is kept."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["cache_folder", "data_folders", "find_file"]


def cache_folder() -> Path:
    """The folder for downloads and encoded samples: FREQSGD_CACHE, or the platform's."""
    own = os.environ.get("FREQSGD_CACHE")
    if own:
        return Path(own)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "freqsgd"


def data_folders() -> list[Path]:
    """Folders that may hold datasets, in the order in which they are searched."""
    own = os.environ.get("FREQSGD_DATA")
    return [*([Path(own)] if own else []), cache_folder() / "data"]


def find_file(relative: str) -> Path | None:
    """The first of the data folders' files of this name; None if there is none."""
    candidates = (folder / relative for folder in data_folders())
    return next((path for path in candidates if path.is_file()), None)
