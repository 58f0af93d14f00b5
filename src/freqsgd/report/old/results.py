"""Runs as reports tell of them: told apart by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from msgspec.structs import asdict

from freqsgd.documents import read_document
from freqsgd.documents import results as content
from freqsgd.optimizers import OPTIMIZERS
from freqsgd.recommender.models import MODELS

NAMES = {
    **{name: facts.label for name, facts in OPTIMIZERS.items()},
    "sbcd": "SBCD",
    **{name: model.title for name, model in MODELS.items()},
    "cbow": "CBOW",
    "skipgram": "Skip-gram",
}

Epoch = content.Epoch


class Run(content.Run, frozen=True, kw_only=True):
    """A run with its names for readers."""

    family: str  # of its optimizer, rate and decay
    label: str  # the same with what tells runs of a family apart, the seed: unique


class Results(content.Results, frozen=True):
    """All runs, and what they have in common."""

    runs: tuple[Run, ...]


def display_name(name: str) -> str:
    """How an optimizer or a model is called in prose."""
    return NAMES.get(name, name)


def read_results(document: Mapping[str, Any]) -> Results:
    """The content of a ``results.json``."""
    found = read_document(document, content.Results, "results.json")
    named = zip(found.runs, names(found.runs), strict=True)
    runs = tuple(Run(**asdict(run), family=family, label=label) for run, (family, label) in named)
    return Results(**{**asdict(found), "runs": runs})


def names(runs: tuple[content.Run, ...]) -> list[tuple[str, str]]:
    """Family and label of each run: the optimizer, and what differs among its runs."""
    parts: list[tuple[str, ...]] = [(display_name(run.optimizer),) for run in runs]
    parts = told_apart(parts, [f"lr {run.lr}" for run in runs])
    families = told_apart(parts, [f"decay {run.weight_decay}" for run in runs])
    parts = told_apart(families, [f"seed {run.seed}" for run in runs])
    seen: Counter[tuple[str, ...]] = Counter()
    orders = []
    for name in parts:
        seen[name] += 1
        orders.append(f"run {seen[name]}")
    labels = told_apart(parts, orders)
    return [(written(one), written(other)) for one, other in zip(families, labels, strict=True)]


def told_apart(parts: list[tuple[str, ...]], details: list[str]) -> list[tuple[str, ...]]:
    """Names with a detail more where runs of the same name differ in it."""
    kinds: dict[tuple[str, ...], set[str]] = {}
    for name, detail in zip(parts, details, strict=True):
        kinds.setdefault(name, set()).add(detail)
    return [
        (*name, detail) if len(kinds[name]) > 1 else name
        for name, detail in zip(parts, details, strict=True)
    ]


def written(parts: tuple[str, ...]) -> str:
    """A name with its details in brackets."""
    name, *details = parts
    return f"{name} ({', '.join(details)})" if details else name
