"""Files of a report: written whole, with errors that say what to do."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from freqsgd.errors import DataError
from freqsgd.files import write_whole

__all__ = ["needs", "write_file"]


def needs(package: str, what: str) -> None:
    """Raise if a package is missing, with the command that installs it."""
    if find_spec(package) is None:
        raise ModuleNotFoundError(
            f'{what} needs {package}: pip install "freqsgd[cli]"', name=package
        )


def write_file(path: Path, content: bytes, what: str) -> None:
    """Write all of a file, or nothing."""
    try:
        write_whole(path, content)
    except OSError as error:
        raise DataError(
            f"{path}: {what} cannot be written ({error.strerror}); "
            "choose a folder that exists and has room"
        ) from error
