"""Results as one self-contained HTML page.

``freqsgd.documents`` says what is read. ``results.py`` names runs, ``kinds.py`` says what is
compared: scores of samples or losses of text. ``headline.py`` and ``summary.py`` say what they
show, ``charts.py`` and ``tables.py`` show it, ``sections.py`` puts it in order, ``page.py`` makes
it HTML. ``tuning*.py`` and ``diagnosis*.py`` do all that for what a search and ``--diagnose`` add,
``one_pass*.py`` for runs that see every example once, ``theory*.py`` and ``inspection*.py`` for
documents of their own, and ``paper*.py`` for the paper's figures, each from the documents of
several runs. ``picture*.py`` draw the same figures as PNG files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from freqsgd.report.old.page import needs, write_file
from freqsgd.report.old.results import read_results

if TYPE_CHECKING:
    from freqsgd.report.old.page import Chart, Section
    from freqsgd.report.old.picture import Picture

__all__ = ["write_paper", "write_report"]


def write_report(results: Mapping[str, Any], path: Path) -> None:
    """Write the report of the content of a ``results.json``; readers never see half a file.

    Each of its charts is written beside it too, as ``report-<chart>.png``.
    """
    needs("plotly", "the report")
    page = of_one_pass if results.get("one_pass") is True else of_epochs
    html, sections = page(results)
    write_file(path, html.encode(), "the report")
    charts = [chart for section in sections for chart in section.charts]
    write_pictures(path.stem, chart_pictures(charts), path.parent)


def chart_pictures(charts: Iterable[Chart]) -> dict[str, Picture]:
    """A picture per chart."""
    from freqsgd.report.old.picture import Panel, Picture

    return {chart.name: Picture(chart.title, [Panel("", chart.figure)]) for chart in charts}


def of_one_pass(results: Mapping[str, Any]) -> tuple[str, Sequence[Section]]:
    """The page of runs that saw every example once, and its sections."""
    from freqsgd.report.old.one_pass import read_one_pass
    from freqsgd.report.old.one_pass_sections import (
        one_pass_sections,
        render_one_pass,
    )

    found = read_one_pass(results)
    sections = one_pass_sections(found)
    return render_one_pass(found, sections), sections


def of_epochs(results: Mapping[str, Any]) -> tuple[str, Sequence[Section]]:
    """The page of runs over the same samples, epoch by epoch, and its sections."""
    from freqsgd.report.old import sections
    from freqsgd.report.old.kinds import kind_of
    from freqsgd.report.old.page import render

    read = read_results(results)
    kind = kind_of(read)
    parts = sections.sections(read, kind)
    page = render(
        title=sections.title(read),
        opening=sections.opening(read, kind),
        sections=parts,
        footer=sections.footer(read),
        runs=read.runs,
    )
    return page, parts


def write_paper(document: Mapping[str, Any], folder: Path) -> Path:
    """Write ``paper.html`` and its pictures from the content of a ``paper.json``.

    The documents that it names are read from ``folder``; those that are missing are said to be.
    """
    needs("plotly", "the report")
    from freqsgd.report.old.paper import read_paper
    from freqsgd.report.old.paper_charts import charts_of
    from freqsgd.report.old.paper_sections import paper_pictures, render_paper

    paper = read_paper(document, folder)
    parts = {figure.name: charts_of(paper, figure) for figure in paper.figures}
    return write_document("paper", render_paper(paper, parts), paper_pictures(paper, parts), folder)


def write_document(name: str, html: str, pictures: Mapping[str, Picture], folder: Path) -> Path:
    """Write a page and its pictures."""
    page = folder / f"{name}.html"
    write_file(page, html.encode(), "the report")
    write_pictures(name, pictures, folder)
    return page


def write_pictures(name: str, pictures: Mapping[str, Picture], folder: Path) -> None:
    """Write the pictures of a page, as PNG files beside it."""
    needs("matplotlib", "a picture")
    from freqsgd.report.old.picture import write_picture

    for part, picture in pictures.items():
        write_picture(picture, folder / f"{name}-{part}.png")
