"""The paper's figures, and the documents of the runs that ``paper.json`` names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from msgspec.structs import asdict, replace

from freqsgd.documents import check_kind, load_object, read_document
from freqsgd.documents.inspection import Inspection
from freqsgd.documents.paper import NOT_MEASURED, VERDICTS, PaperFigure, PaperRun, PaperSummary
from freqsgd.errors import DataError
from freqsgd.report.old.inspection import read_inspection
from freqsgd.report.old.one_pass import OnePass, read_one_pass
from freqsgd.report.old.results import Results, read_results
from freqsgd.report.old.theory import Theory, read_theory

LEARNING = ("ml-fm", "ml-deepfm", "criteo-fm", "criteo-deepfm")  # runs with epochs and AUCs
BESIDE = "sbcd"  # simulations have it too; the figures do not speak of it
Read = TypeVar("Read")


class Paper(PaperSummary, frozen=True, kw_only=True):
    """The figures that were asked for, their runs, and what these wrote."""

    left_out: tuple[PaperFigure, ...]
    documents: Mapping[str, Mapping[str, Any]]  # by run, of those that can be read

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
        if run not in self.documents:
            return None
        try:
            return read(self.documents[run])
        except DataError:
            return None


def read_paper(document: Mapping[str, Any], folder: Path) -> Paper:
    """The content of a ``paper.json``; documents are looked for in ``folder``."""
    check_kind(document, "paper", "paper")
    found = read_document(document, PaperSummary, "paper.json")
    names = unique_names([figure.name for figure in found.figures])
    every = tuple(map(read_figure, found.figures, names))
    idle = {name for name, run in found.runs.items() if run.status == "not asked"}
    asked = tuple(figure for figure in every if not idle.intersection(figure.runs)) or every
    needed = {name for figure in asked for name in figure.runs}
    runs = {name: run for name, run in found.runs.items() if name in needed}
    paths = {name: inside(run.document) for name, run in runs.items()}
    documents = {name: load_object(folder / path) for name, path in paths.items() if path}
    changes = {
        "figures": asked,
        "runs": {
            name: read_run(run, name, folder, documents.get(name) is not None)
            for name, run in runs.items()
        },
        "left_out": tuple(figure for figure in every if figure not in asked),
        "documents": {name: each for name, each in documents.items() if each is not None},
    }
    return Paper(**{**asdict(found), **changes})


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


def read_figure(figure: PaperFigure, name: str) -> PaperFigure:
    """A figure whose name can be that of a file."""
    verdict = figure.verdict if figure.verdict in VERDICTS else NOT_MEASURED
    return replace(figure, name=name, number=figure.number or name, verdict=verdict)


def read_run(run: PaperRun, name: str, folder: Path, is_read: bool) -> PaperRun:
    """A run with what is there of it."""
    path, report = inside(run.document), inside(run.report)
    lost = path is not None and not is_read
    return replace(
        run,
        title=run.title or name,
        why=f"{run.why} Its document, {path}, cannot be read.".strip() if lost else run.why,
        document=path if is_read else None,
        report=report if report is not None and (folder / report).is_file() else None,
    )


def inside(path: str | None) -> str | None:
    """A path below the page's folder."""
    found = PurePosixPath(path or "")
    return None if not path or found.is_absolute() or ".." in found.parts else path
