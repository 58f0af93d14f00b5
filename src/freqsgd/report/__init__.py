"""Results as one self-contained HTML page.

``results.py`` reads them, ``kinds.py`` says what is compared: scores of samples or losses of text.
``headline.py`` and ``summary.py`` say what they show, ``charts.py`` and ``tables.py`` show it,
``sections.py`` puts it in order, ``opening.py`` and ``page.py`` make it HTML. ``tuning*.py`` and
``diagnosis*.py`` do all that for what a search and ``--diagnose`` add, ``one_pass*.py`` for runs
that see every example once, ``theory*.py`` and ``inspection*.py`` for documents of their own.
``picture*.py`` draw the same figures as PNG files.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from freqsgd.report.files import needs, write_file
from freqsgd.report.results import read_results

if TYPE_CHECKING:
    from freqsgd.report.picture import Picture

__all__ = ["write_inspection", "write_report", "write_theory"]


def write_report(results: Mapping[str, Any], path: Path) -> None:
    """Write the report of the content of a ``results.json``; readers never see half a file."""
    needs("plotly", "the report")
    page = of_one_pass(results) if results.get("one_pass") is True else of_epochs(results)
    write_file(path, page.encode(), "the report")


def of_one_pass(results: Mapping[str, Any]) -> str:
    """The page of runs that saw every example once."""
    from freqsgd.report.one_pass import read_one_pass
    from freqsgd.report.one_pass_sections import render_one_pass

    return render_one_pass(read_one_pass(results))


def of_epochs(results: Mapping[str, Any]) -> str:
    """The page of runs over the same samples, epoch by epoch."""
    from freqsgd.report import sections
    from freqsgd.report.kinds import kind_of
    from freqsgd.report.page import render

    read = read_results(results)
    kind = kind_of(read)
    return render(
        title=sections.title(read),
        opening=sections.opening(read, kind),
        sections=sections.sections(read, kind),
        footer=sections.footer(read),
        runs=read.runs,
    )


def write_theory(document: Mapping[str, Any], folder: Path) -> Path:
    """Write ``theory.html`` and its pictures from the content of a ``theory.json``."""
    needs("plotly", "the report")
    from freqsgd.report.theory import read_theory
    from freqsgd.report.theory_sections import render_theory, theory_pictures

    theory = read_theory(document)
    return write_document("theory", render_theory(theory), theory_pictures(theory), folder)


def write_inspection(document: Mapping[str, Any], folder: Path) -> Path:
    """Write ``inspect.html`` and its pictures from the content of an ``inspect.json``."""
    needs("plotly", "the report")
    from freqsgd.report.inspection import read_inspection
    from freqsgd.report.inspection_sections import inspection_pictures, render_inspection

    inspection = read_inspection(document)
    pictures = inspection_pictures(inspection)
    return write_document("inspect", render_inspection(inspection), pictures, folder)


def write_document(name: str, html: str, pictures: Mapping[str, Picture], folder: Path) -> Path:
    """Write a page and its pictures."""
    needs("matplotlib", "a picture")
    from freqsgd.report.picture import write_picture

    page = folder / f"{name}.html"
    write_file(page, html.encode(), "the report")
    for part, picture in pictures.items():
        write_picture(picture, folder / f"{name}-{part}.png")
    return page
