"""The datasets that are known by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from freqsgd.data.dataset import DataError
from freqsgd.data.folders import data_folders, find_file

__all__ = ["KNOWN", "KnownDataset", "by_hand", "how_to_get", "known_dataset", "locate"]


@dataclass(frozen=True)
class KnownDataset:
    """A dataset, the file that it is read from, and where that comes from."""

    name: str
    about: str
    file: str | None = None  # below a data folder; None: nothing is read
    page: str | None = None  # where people get it
    archive: str | None = None  # what is downloaded: a zip file that holds the file's folder
    archive_bytes: int = 0
    archive_md5: str = ""
    published: dict[str, int] = field(default_factory=dict)  # counts of what is in the file


KNOWN = (
    KnownDataset("synthetic", "clicks generated from hidden vectors: 450,000 rows, 2 fields"),
    KnownDataset(
        "movielens-1m",
        "1,000,209 ratings of movies; user and movie, label: a rating above 3",
        file="ml-1m/ratings.dat",
        page="https://grouplens.org/datasets/movielens/1m/",
        archive="https://files.grouplens.org/datasets/movielens/ml-1m.zip",
        archive_bytes=5_917_549,
        archive_md5="c4d9eecfca2ab87c1945afe126590906",
        published={
            "bytes": 24_594_131,
            "rows": 1_000_209,
            "distinct values of user": 6_040,
            "distinct values of movie": 3_706,
        },
    ),
    KnownDataset(
        "criteo",
        "clicks on display advertisements; 13 integers and 26 categories",
        file="criteo/train.txt",
        page="https://ailab.criteo.com/ressources/",
    ),
)


def known_dataset(name: str) -> KnownDataset:
    """The dataset of this name."""
    for dataset in KNOWN:
        if dataset.name == name:
            return dataset
    names = ", ".join(dataset.name for dataset in KNOWN)
    raise DataError(f"unknown dataset {name!r}: known are {names}")


def locate(dataset: KnownDataset) -> Path:
    """The file that a dataset is read from."""
    if dataset.file is None:
        raise DataError(f"{dataset.name} is generated: there is no file of it")
    path = find_file(dataset.file)
    if path:
        return path
    raise DataError(f"{dataset.name}: {dataset.file} was not found. {how_to_get(dataset)}")


def how_to_get(dataset: KnownDataset) -> str:
    """What to do to have the file."""
    if dataset.archive:
        return f"Run: freqsgd data get {dataset.name}. {by_hand(dataset)}"
    return by_hand(dataset)


def by_hand(dataset: KnownDataset) -> str:
    """What to do to have the file without downloading it here."""
    place = data_folders()[-1] / str(dataset.file)
    return (
        f"By hand: get it from {dataset.page} and put its file at {place}, or set FREQSGD_DATA to "
        f"a folder that holds {dataset.file}."
    )
