"""Reads the content of ``paper.json``, and the documents of the runs that it names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from freqsgd.errors import DataError
from freqsgd.report.documents import check_kind, listing, read_document
from freqsgd.report.inspection import Inspection, read_inspection
from freqsgd.report.one_pass import OnePass, read_one_pass
from freqsgd.report.results import Results, mapping, number, read_results, text
from freqsgd.report.theory import Theory, read_theory

__all__ = [
    "LEARNING",
    "NOT_MEASURED",
    "SCHEMA",
    "VERDICTS",
    "Paper",
    "PaperFigure",
    "PaperRun",
    "Ruling",
    "read_paper",
]

SCHEMA = 1
NOT_MEASURED = "not measured"
VERDICTS = ("agrees", "agrees in part", "differs", NOT_MEASURED)
LEARNING = ("ml-fm", "ml-deepfm", "criteo-fm", "criteo-deepfm")  # runs with epochs and AUCs
BESIDE = "sbcd"  # simulations have it too; the figures do not speak of it
Read = TypeVar("Read")


@dataclass(frozen=True)
class Ruling:
    """Something that was asked of a run, and the answer."""

    run: str
    says: str
    holds: bool | None
    measured: str


@dataclass(frozen=True)
class PaperRun:
    """A command that measured something."""

    title: str
    command: str | None
    stand_in: bool
    dataset: str | None
    status: str
    why: str
    seconds: float | None
    smaller: str  # in what it is less than the paper's
    document: Mapping[str, Any] | None
    report: str | None  # beside the page

    @property
    def label(self) -> str:
        """Its title; generated data in the place of others are always said to be that."""
        return f"{self.title} (stand-in: generated data)" if self.stand_in else self.title


@dataclass(frozen=True)
class PaperFigure:
    """A figure or table of the paper."""

    name: str  # letters, digits and hyphens, unique: for files and links
    number: str
    title: str
    claim: str
    private: str
    rates: Mapping[str, Mapping[str, float]]  # of the paper, by model and optimizer
    data: str
    verdict: str
    rules: tuple[Ruling, ...]
    runs: tuple[str, ...]
    command: str | None

    @property
    def is_on_stand_in(self) -> bool:
        """Whether generated data stand in for those of the paper."""
        return self.data == "stand-in"


@dataclass(frozen=True)
class Paper:
    """All figures, and what was run for them."""

    figures: tuple[PaperFigure, ...]  # that were asked for
    left_out: tuple[PaperFigure, ...]
    runs: Mapping[str, PaperRun]  # of the figures that were asked for
    mode: str | None
    command: str | None
    created: str | None
    seconds: float | None
    machine: Mapping[str, Any]

    def results(self, run: str) -> Results | None:
        """What a comparison of epochs or a search wrote, if that can be read."""
        return self._read(run, read_results)

    def one_pass(self, run: str) -> OnePass | None:
        """What a comparison over a stream wrote."""
        return self._read(run, read_one_pass)

    def inspection(self, run: str) -> Inspection | None:
        """What an inspection wrote."""
        return self._read(run, read_inspection)

    def theory(self, run: str) -> Theory | None:
        """What a simulation wrote, of the optimizers that the paper's bounds are about."""
        found = self._read(run, read_theory)
        return None if found is None else without(found, BESIDE)

    def _read(self, run: str, read: Callable[[Mapping[str, Any]], Read]) -> Read | None:
        """A run that ended too soon may have a document that is of no use."""
        found = self.runs.get(run)
        if found is None or found.document is None:
            return None
        try:
            return read(found.document)
        except (DataError, KeyError, TypeError, ValueError):
            return None


def read_paper(document: Mapping[str, Any], folder: Path) -> Paper:
    """Check what the page cannot do without; documents are looked for in ``folder``."""
    check_kind(document, "paper", SCHEMA)
    figures = listing(document.get("figures"), 'paper: "figures"')
    if not figures:
        raise DataError('paper: "figures" is empty; nothing to report')
    names = unique_names([str(figure.get("name", "figure")) for figure in figures])
    every = tuple(map(read_figure, figures, names))
    runs = {
        str(name): read_run(mapping(run), str(name), folder)
        for name, run in mapping(document.get("runs")).items()
    }
    idle = {name for name, run in runs.items() if run.status == "not asked"}
    asked = tuple(figure for figure in every if not idle.intersection(figure.runs)) or every
    needed = {name for figure in asked for name in figure.runs}
    return Paper(
        figures=asked,
        left_out=tuple(figure for figure in every if figure not in asked),
        runs={name: run for name, run in runs.items() if name in needed},
        mode=text(document.get("mode")),
        command=text(document.get("command")),
        created=text(document.get("created")),
        seconds=number(document.get("seconds")),
        machine=mapping(document.get("machine")),
    )


def without(theory: Theory, optimizer: str) -> Theory:
    """A simulation as if it had not had an optimizer."""
    return replace(
        theory,
        runs=tuple(run for run in theory.runs if run.optimizer != optimizer),
        improvements=tuple(one for one in theory.improvements if one.optimizer != optimizer),
    )


def unique_names(names: Sequence[str]) -> list[str]:
    """Names that can be those of files and links."""
    plain = [re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "figure" for name in names]
    return [
        f"{name}-{place}" if name in plain[:place] else name for place, name in enumerate(plain)
    ]


def read_figure(entry: Mapping[str, Any], name: str) -> PaperFigure:
    """One entry of ``figures``."""
    rules, runs = entry.get("rules"), entry.get("runs")
    verdict = text(entry.get("verdict"))
    return PaperFigure(
        name=name,
        number=text(entry.get("number")) or name,
        title=text(entry.get("title")) or "",
        claim=text(entry.get("claim")) or "",
        private=text(entry.get("private")) or "",
        rates={
            str(model): read_rates(mapping(rates))
            for model, rates in mapping(entry.get("rates")).items()
        },
        data=text(entry.get("data")) or "none",
        verdict=verdict if verdict in VERDICTS else NOT_MEASURED,
        rules=tuple(read_rules(rules if isinstance(rules, list) else [])),
        runs=tuple(map(str, runs if isinstance(runs, list) else [])),
        command=text(entry.get("command")),
    )


def read_rates(entry: Mapping[str, Any]) -> dict[str, float]:
    """Learning rates by the name of the optimizer."""
    found = {str(name): number(lr) for name, lr in entry.items()}
    return {name: lr for name, lr in found.items() if lr is not None}


def read_rules(entries: Sequence[Any]) -> Iterator[Ruling]:
    """What was asked, and what came out."""
    for entry in map(mapping, entries):
        holds = entry.get("holds")
        yield Ruling(
            run=text(entry.get("run")) or "",
            says=text(entry.get("says")) or "",
            holds=holds if isinstance(holds, bool) else None,
            measured=text(entry.get("measured")) or "",
        )


def read_run(entry: Mapping[str, Any], name: str, folder: Path) -> PaperRun:
    """One entry of ``runs`` with its document."""
    path, report = inside(entry.get("document")), inside(entry.get("report"))
    document = None if path is None else read_document(folder / path)
    why = text(entry.get("why")) or ""
    if path is not None and document is None:
        why = f"{why} Its document, {path}, cannot be read.".strip()
    return PaperRun(
        title=text(entry.get("title")) or name,
        command=text(entry.get("command")),
        stand_in=entry.get("stand_in") is True,
        dataset=text(entry.get("dataset")),
        status=text(entry.get("status")) or "not asked",
        why=why,
        seconds=number(entry.get("seconds")),
        smaller=text(entry.get("smaller")) or "",
        document=document,
        report=report if report is not None and (folder / report).is_file() else None,
    )


def inside(value: Any) -> str | None:
    """A path below the page's folder."""
    if not isinstance(value, str) or not value:
        return None
    path = PurePosixPath(value)
    return None if path.is_absolute() or ".." in path.parts else value
