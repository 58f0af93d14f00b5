"""Documents as HTML pages that need nothing else, and their charts as PNG files.

A module per kind of document turns the typed document (``freqsgd.documents``) into a
:class:`~freqsgd.report.page.Page`: ``comparison.py`` (runs by epoch, with ``tuning.py`` and
``diagnosis.py``), ``one_pass.py``, ``inspection.py``, ``theory.py``, ``paper.py``. A page has

- tiles: the few numbers that matter most, each with what it stands beside
- at most five sentences: what matters beside them, and the first of the notes of honesty
- sections: first the charts that make the point. Charts come before sentences and tables

Nothing here writes HTML: ``templates/page.html`` does, and escapes every string. ``charts.py``
makes a chart from rows and layers, as a Vega-Lite specification that the page and the PNG file
share; ``tables.py`` makes tables of cells; ``wording.py`` writes numbers as words; ``results.py``
names runs and sets them beside each other; ``parts.py`` holds what pages of runs have in common.
A chart has a description for those who cannot see it, and its numbers as a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["write_inspection", "write_paper", "write_report", "write_theory"]


def write_report(results: Mapping[str, Any], path: Path) -> None:
    """Write the report of the content of a ``results.json``; readers never see half a file.

    Each of its charts is written beside it too, as ``report-<chart>.png``.
    """
    from freqsgd.report.comparison import comparison_page
    from freqsgd.report.one_pass import one_pass_page, read_one_pass
    from freqsgd.report.page import write
    from freqsgd.report.results import read_results

    if results.get("one_pass") is True:
        write(one_pass_page(read_one_pass(results)), path)
    else:
        write(comparison_page(read_results(results)), path)


def write_paper(document: Mapping[str, Any], folder: Path) -> Path:
    """Write ``paper.html`` and its pictures from the content of a ``paper.json``.

    The documents that it names are read from ``folder``; those that are missing are said to be.
    """
    from freqsgd.report.page import write
    from freqsgd.report.paper import paper_page, read_paper

    path = folder / "paper.html"
    write(paper_page(read_paper(document, folder)), path)
    return path


def write_theory(document: Mapping[str, Any], folder: Path) -> Path:
    """Write ``theory.html`` and its pictures from the content of a ``theory.json``."""
    from freqsgd.report.page import write
    from freqsgd.report.theory import read_theory, theory_page

    path = folder / "theory.html"
    write(theory_page(read_theory(document)), path)
    return path


def write_inspection(document: Mapping[str, Any], folder: Path) -> Path:
    """Write ``inspect.html`` and its pictures from the content of an ``inspect.json``."""
    from freqsgd.report.inspection import inspection_page, read_inspection
    from freqsgd.report.page import write

    path = folder / "inspect.html"
    write(inspection_page(read_inspection(document)), path)
    return path
