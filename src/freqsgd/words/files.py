"""Files of plain text: which there are, and their content in blocks that end between words."""

from __future__ import annotations

import re
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path

from freqsgd.errors import DataError, DataWarning
from freqsgd.files import no_file, open_text

BLOCK_BYTES = 1 << 22
_LONGEST_WORD = 1 << 24
_SUFFIXES = (".txt", ".text", ".tokens")
_ENDING = re.compile(rf"(?<=.)({'|'.join(map(re.escape, _SUFFIXES))})?(\.gz)?\Z", re.IGNORECASE)
_BOM = b"\xef\xbb\xbf"
_NOT_TEXT = {
    b"PAR1": "a Parquet file; write the column of its text to a file, one sentence a line",
    b"PK\x03\x04": "a zip file; unpack it",
    b"\x1f\x8b": "packed with gzip; let its name end with .gz",
    b"BZh": "packed with bzip2; unpack it",
    b"\xfd7zXZ": "packed with xz; unpack it",
    b"(\xb5/\xfd": "packed with zstd; unpack it",
}


def list_text_files(path: Path) -> tuple[Path, ...]:
    """Return the file itself, or the text files of a folder in the order of their names."""
    if path.is_file():
        return (path,)
    if not path.is_dir():
        raise no_file(path)
    files = sorted(file for file in path.iterdir() if file.is_file() and file.name[0] != ".")
    texts = [file for file in files if has_text_name(file)]
    endings = f"{', '.join(_SUFFIXES)} (or these and .gz)"
    if not texts:
        deeper = any(child.is_dir() for child in path.iterdir())
        more = "; its subfolders are not read: name one of them" if deeper else ""
        raise DataError(f"{path}: the folder holds no file whose name ends with {endings}{more}")
    others = [file.name for file in files if file not in texts]
    if others:
        more = ", ..." if len(others) > 3 else ""
        warnings.warn(
            f"{path}: {len(others):,} of {len(files):,} files were left out, since their names do "
            f"not end with {endings}: {', '.join(others[:3])}{more}",
            DataWarning,
            stacklevel=2,
        )
    return tuple(texts)


def has_text_name(path: str | Path) -> bool:
    """Tell whether a file's name ends as those of text files do."""
    return str(path).lower().removesuffix(".gz").endswith(_SUFFIXES)


def text_name(path: Path) -> str:
    """Return what a file or folder is called, without the endings that text files have.

    Example:
        >>> text_name(Path("news.2024.txt.gz")), text_name(Path("v1.2")), text_name(Path(".txt"))
        ('news.2024', 'v1.2', '.txt')
    """
    return _ENDING.sub("", path.resolve().name)


def read_text_blocks(path: Path) -> Iterator[tuple[bytes, int, float]]:
    """Yield all of a file in order, in blocks of UTF-8 that end with white space.

    A newline is added at the end of the file. What is not UTF-8 is replaced by U+FFFD.

    Yields:
        a block; up to its end, the places that were replaced and the part of the file, from 0 to 1
    """
    replaced, size = 0, max(path.stat().st_size, 1)
    rest, more, first = b"", True, True
    with open_text(path) as file:
        while more:
            try:
                block = file.read(BLOCK_BYTES)
                position = (getattr(file, "fileobj", None) or file).tell()  # in the packed file
            except (OSError, EOFError, zlib.error) as error:
                raise DataError(f"{path}: cannot be read: {error}; is it damaged?") from error
            _check_text(path, block, first=first and not rest)
            more = len(block) == BLOCK_BYTES
            block = rest + block + (b"" if more else b"\n")
            cut = max(block.rfind(space) for space in (b"\n", b" ", b"\t")) + 1
            data, rest = block[:cut], block[cut:]
            if len(rest) > _LONGEST_WORD:
                raise DataError(
                    f"{path}: there are {_LONGEST_WORD >> 20} MB without a space or newline; "
                    "is this text?"
                )
            if data:
                data, first = data.removeprefix(_BOM) if first else data, False
                try:
                    data.decode()
                except UnicodeDecodeError:
                    text = data.decode(errors="replace")
                    replaced += text.count("\ufffd") - data.count("\ufffd".encode())
                    data = text.encode()
                yield data, replaced, position / size


def _check_text(path: Path, block: bytes, *, first: bool) -> None:
    if first:
        for start, kind in _NOT_TEXT.items():
            if block.startswith(start):
                raise DataError(f"{path}: this is not text but {kind}")
    if b"\0" in block:
        raise DataError(
            f"{path}: this is not UTF-8 text (it has NUL bytes); convert it if it is UTF-16"
        )
