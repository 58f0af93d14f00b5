"""Download datasets into the cache: whole, checked, and resumed where it was cut off."""

from __future__ import annotations

import hashlib
import http.client
import shutil
import time
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

from freqsgd.errors import DataError
from freqsgd.files import replacing
from freqsgd.tables.cache import Progress, unwritable
from freqsgd.tables.catalog import KnownDataset, by_hand, data_folders, find_file, known_dataset

_CHUNK = 1 << 18
_TRIES = 3
_TIMEOUT = 30.0
_BROKEN = (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError)
_PAUSE = 1.0  # seconds, before the second try; then twice that


def get(name: str, progress: Progress | None = None) -> Path | None:
    """Have the file of a dataset, downloading it if need be; None: it needs no file."""
    dataset = known_dataset(name)
    if dataset.file is None:
        return None
    found = find_file(dataset.file)
    if found:
        return found
    if dataset.archive is None:
        raise DataError(f"{name} is given to those who accept its licence. {by_hand(dataset)}")
    own = data_folders()[-1]
    archive = own / dataset.archive.rpartition("/")[2]
    try:
        own.mkdir(parents=True, exist_ok=True)
        download(dataset.archive, archive, dataset.archive_bytes, dataset.archive_md5, progress)
        _unpack(archive, dataset, own)
    except OSError as error:
        raise unwritable(own, error) from error
    except DataError as error:
        raise DataError(f"{error}. {by_hand(dataset)}") from error
    return own / dataset.file


def download(url: str, path: Path, size: int, md5: str, progress: Progress | None = None) -> None:
    """Fetch a file of known size and checksum.

    What has arrived is kept in a file whose name ends with .part, and only the rest is asked for
    when the connection breaks, or when the download is started again.
    """
    if path.is_file() and path.stat().st_size == size and _md5(path) == md5:
        return
    part = path.with_name(f"{path.name}.part")
    for attempt in range(_TRIES):
        try:
            _fetch_rest(url, part, size, progress)
            break
        except _BROKEN as error:
            refused = isinstance(error, urllib.error.HTTPError) and error.code < 500
            if refused or attempt + 1 == _TRIES:
                reason = getattr(error, "reason", None) or error
                raise DataError(f"{url} cannot be downloaded ({reason})") from error
            time.sleep(_PAUSE * 2**attempt)
    found = part.stat().st_size
    if found != size or _md5(part) != md5:
        part.unlink()
        raise DataError(
            f"{url}: what was downloaded is not the published file (its size or its MD5 checksum "
            f"differs: {found:,} bytes instead of {size:,})"
        )
    part.replace(path)


def _fetch_rest(url: str, part: Path, size: int, progress: Progress | None) -> None:
    """Append to the file what it lacks."""
    have = part.stat().st_size if part.is_file() else 0
    if have >= size:
        return
    headers = {"User-Agent": "freqsgd"}  # some servers refuse that of urllib
    if have:
        headers["Range"] = f"bytes={have}-"
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as response:
        if response.status != http.HTTPStatus.PARTIAL_CONTENT:
            have = 0  # the server sends the whole file
        with part.open("ab" if have else "wb") as file:
            while have < size and (chunk := response.read(_CHUNK)):
                file.write(chunk)
                have += len(chunk)
                if progress:
                    progress("downloading", have, size)
    if have < size:
        raise ConnectionError(f"the connection broke after {have:,} of {size:,} bytes")


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _unpack(archive: Path, dataset: KnownDataset, folder: Path) -> None:
    """Take the dataset's files out of the archive; last the one by which it is found."""
    assert dataset.file
    inside = dataset.file.rpartition("/")[0]
    try:
        with zipfile.ZipFile(archive) as content:
            for name in (*(f"{inside}/{file}" for file in dataset.beside), dataset.file):
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                with (
                    replacing(path) as temporary,
                    content.open(name) as source,
                    temporary.open("wb") as target,
                ):
                    shutil.copyfileobj(source, target, 1 << 20)
    except (zipfile.BadZipFile, KeyError) as error:
        raise DataError(f"{archive}: cannot be unpacked ({error})") from error
    archive.unlink()
