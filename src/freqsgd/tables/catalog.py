"""The datasets that are known by name: a dataset is one entry of ``KNOWN``."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from freqsgd.errors import DataError
from freqsgd.tables.readers.dialect import TextFormat


@dataclass(frozen=True)
class KnownDataset:
    """A dataset, the file that it is read from, and where that comes from."""

    name: str
    about: str
    kind: str = "table"  # or "text", for word vectors, or "stream", of days, for one pass
    file: str | None = None  # below a data folder; None: nothing is read
    beside: tuple[str, ...] = ()  # further files of its folder: those it needs, and its terms
    page: str | None = None  # where people get it
    archive: str | None = None  # what is downloaded: a zip file that holds the files' folder
    archive_bytes: int = 0
    archive_md5: str = ""
    layout: TextFormat | None = None  # of the file of a table
    label: str = ""  # its column
    positive_above: float | None = None  # the label is 1 where its column is above this
    features: tuple[str, ...] = ()  # columns of categories
    integers: tuple[str, ...] = ()  # columns of integers, put into bins; they come before these
    min_count: int = 1  # tokens seen less often are rare


_MOVIELENS = ("user", "movie", "rating", "timestamp")
_INTEGERS = tuple(f"I{number}" for number in range(1, 14))
_CATEGORIES = tuple(f"C{number}" for number in range(1, 27))
_CRITEO = ("label", *_INTEGERS, *_CATEGORIES)
_HELD_OUT = ("wiki.valid.tokens", "wiki.test.tokens")

KNOWN = (
    KnownDataset("synthetic", "clicks generated from hidden vectors: 450,000 rows, 2 fields"),
    KnownDataset(
        "movielens-1m",
        "1,000,209 ratings of movies; user and movie, label: a rating above 3",
        file="ml-1m/ratings.dat",
        beside=("README",),
        page="https://grouplens.org/datasets/movielens/1m/",
        archive="https://files.grouplens.org/datasets/movielens/ml-1m.zip",
        archive_bytes=5_917_549,
        archive_md5="c4d9eecfca2ab87c1945afe126590906",
        layout=TextFormat("::", layouts=tuple(_MOVIELENS[:count] for count in (4, 3, 2))),
        label="rating",
        positive_above=3.0,
        features=("user", "movie"),
    ),
    KnownDataset(
        "criteo",
        "clicks on display advertisements; 13 integers and 26 categories",
        file="criteo/train.txt",
        page="https://ailab.criteo.com/ressources/",
        layout=TextFormat("\t", layouts=(_CRITEO, _CRITEO[1:])),
        label="label",
        features=_CATEGORIES,
        integers=_INTEGERS,
        min_count=10,
    ),
    KnownDataset(
        "clicks-small",
        "generated clicks of 10 days of 200,000 rows, 16 fields; for freqsgd stream",
        kind="stream",
    ),
    KnownDataset("zipf-text", "generated text of 20 topics: 400,000 words", kind="text"),
    KnownDataset(
        "wikitext-2",
        "articles of Wikipedia: 2 million words, and text to validate and test on",
        kind="text",
        file="wikitext-2/wiki.train.tokens",
        beside=_HELD_OUT,
        page="https://wikitext.smerity.com/",
        archive="https://wikitext.smerity.com/wikitext-2-v1.zip",
        archive_bytes=4_475_746,
        archive_md5="542ccefacc6c27f945fb54453812b3cd",
    ),
    KnownDataset(
        "wikitext-103",
        "articles of Wikipedia: 101 million words, and text to validate and test on",
        kind="text",
        file="wikitext-103/wiki.train.tokens",
        beside=_HELD_OUT,
        page="https://wikitext.smerity.com/",
        archive="https://wikitext.smerity.com/wikitext-103-v1.zip",
        archive_bytes=190_229_076,
        archive_md5="9ddaacaf6af0710eda8c456decff7832",
    ),
)


_USES = {
    "table": "a table: train on it with freqsgd train",
    "text": "text: train on it with freqsgd words train",
    "stream": "a stream of days: train on it in one pass, with freqsgd stream train, or write its "
    "days as files, with freqsgd stream generate --out FOLDER, and take --data FOLDER/day-00",
}


def known_dataset(name: str, *kinds: str) -> KnownDataset:
    """Return the dataset of this name, which is of one of these kinds, or of any if none is given.

    Raises:
        DataError: there is none; those of these kinds are named
    """
    known = {dataset.name: dataset for dataset in KNOWN}
    if name in known and (not kinds or known[name].kind in kinds):
        return known[name]
    fitting = ", ".join(each.name for each in KNOWN if not kinds or each.kind in kinds)
    if name in known:
        raise DataError(f"{name} is {_USES[known[name].kind]}. This command takes {fitting}")
    raise DataError(f"unknown dataset {name!r}: known are {fitting}")


def file_layout(kind: str) -> TextFormat | None:
    """Return the layout of files of a kind; None for a "table", whose files name their columns.

    The kind may come from the file of a model.
    """
    return next((dataset.layout for dataset in KNOWN if dataset.name == kind), None)


def locate(dataset: KnownDataset) -> Path:
    """Return the file that a dataset is read from."""
    if dataset.file is None:
        raise DataError(f"{dataset.name} is generated: there is no file of it")
    path = find_file(dataset.file)
    if path:
        return path
    raise DataError(f"{dataset.name}: {dataset.file} was not found. {how_to_get(dataset)}")


def how_to_get(dataset: KnownDataset) -> str:
    """Return what to do to have the file."""
    if dataset.archive:
        return f"Run: freqsgd data get {dataset.name}. {by_hand(dataset)}"
    return by_hand(dataset)


def by_hand(dataset: KnownDataset) -> str:
    """Return what to do to have the file without downloading it here."""
    place = data_folders()[-1] / str(dataset.file)
    beside = f" ({', '.join(dataset.beside)} beside it)" if dataset.kind == "text" else ""
    return (
        f"By hand: get it from {dataset.page} and put its file at {place}{beside}, or set "
        f"FREQSGD_DATA to a folder that holds {dataset.file}."
    )


def cache_folder() -> Path:
    """Return the folder for downloads and encoded samples: FREQSGD_CACHE, or the platform's."""
    own = os.environ.get("FREQSGD_CACHE")
    if own:
        return Path(own)
    from platformdirs import user_cache_path  # here, since most commands do not ask for it

    return user_cache_path("freqsgd", appauthor=False, opinion=False)


def data_folders() -> list[Path]:
    """Folders that may hold datasets, in the order in which they are searched."""
    own = os.environ.get("FREQSGD_DATA")
    return [*([Path(own)] if own else []), cache_folder() / "data"]


def find_file(relative: str) -> Path | None:
    """Return the first of the data folders' files of this name; None if there is none."""
    candidates = (folder / relative for folder in data_folders())
    return next((path for path in candidates if path.is_file()), None)
