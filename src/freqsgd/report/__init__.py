"""Results as one self-contained HTML page.

``results.py`` reads them, ``kinds.py`` says what is compared: scores of samples or losses of text.
``headline.py`` and ``summary.py`` say what they show, ``charts.py`` and ``tables.py`` show it,
``sections.py`` puts it in order, ``page.py`` makes it HTML. ``tuning*.py`` do all that for what a
search adds.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from freqsgd.report.files import needs, write_file
from freqsgd.report.results import read_results

__all__ = ["write_report"]


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
