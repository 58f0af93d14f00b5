"""Results as one self-contained HTML page.

``results.py`` reads them, ``kinds.py`` says what is compared: scores of samples or losses of text.
``headline.py`` and ``summary.py`` say what they show, ``charts.py`` and ``tables.py`` show it,
``sections.py`` puts it in order, ``page.py`` makes it HTML. ``tuning*.py`` do all that for what a
search adds, ``theory*.py`` and ``inspection*.py`` for documents of their own. ``picture*.py`` draw
the same figures as PNG files.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from freqsgd.report.files import needs, write_file
from freqsgd.report.results import read_results

__all__ = ["write_inspection", "write_report", "write_theory"]


def write_report(results: Mapping[str, Any], path: Path) -> None:
    """Write the report of the content of a ``results.json``; readers never see half a file."""
    needs("plotly", "the report")
    from freqsgd.report import sections
    from freqsgd.report.kinds import kind_of
    from freqsgd.report.page import render

    read = read_results(results)
    kind = kind_of(read)
    page = render(
        title=sections.title(read),
        opening=sections.opening(read, kind),
        sections=sections.sections(read, kind),
        footer=sections.footer(read),
        runs=read.runs,
    )
    write_file(path, page.encode(), "the report")


def write_theory(document: Mapping[str, Any], folder: Path) -> Path:
    """Write ``theory.html`` and its pictures from the content of a ``theory.json``."""
    needs("plotly", "the report")
    needs("matplotlib", "a picture")
    from freqsgd.report.picture import write_pictures
    from freqsgd.report.theory import read_theory
    from freqsgd.report.theory_sections import PICTURES, render_theory, theory_panels

    theory = read_theory(document)
    page = folder / "theory.html"
    write_file(page, render_theory(theory).encode(), "the report")
    for name, panels in theory_panels(theory).items():
        write_pictures(panels, folder / f"theory-{name}.png", PICTURES[name])
    return page


def write_inspection(document: Mapping[str, Any], folder: Path) -> Path:
    """Write ``inspect.html`` and its pictures from the content of an ``inspect.json``."""
    needs("plotly", "the report")
    needs("matplotlib", "a picture")
    from freqsgd.report.inspection import read_inspection
    from freqsgd.report.inspection_sections import (
        PICTURES,
        inspection_panels,
        render_inspection,
    )
    from freqsgd.report.picture import write_pictures

    inspection = read_inspection(document)
    page = folder / "inspect.html"
    write_file(page, render_inspection(inspection).encode(), "the report")
    for name, panels in inspection_panels(inspection).items():
        write_pictures(panels, folder / f"inspect-{name}.png", PICTURES[name])
    return page
