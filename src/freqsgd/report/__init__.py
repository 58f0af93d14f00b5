"""Results as one self-contained HTML page.

``results.py`` reads them, ``headline.py`` and ``summary.py`` say what they show, ``figures.py`` and
``tables.py`` show it, ``sections.py`` puts it in order, ``page.py`` makes it HTML.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from freqsgd.data.dataset import DataError
from freqsgd.report.results import read_results

__all__ = ["write_report"]


def write_report(results: Mapping[str, Any], path: Path) -> None:
    """Write the report of the content of a ``results.json``; readers never see half a file."""
    try:
        import plotly  # noqa: F401
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            'the report needs plotly: pip install "freqsgd[cli]"', name="plotly"
        ) from missing
    from freqsgd.report import sections
    from freqsgd.report.page import render

    read = read_results(results)
    page = render(
        title=sections.title(read),
        opening=sections.opening(read),
        sections=sections.sections(read),
        footer=sections.footer(read),
        runs=read.runs,
    )
    replace_file(path, page)


def replace_file(path: Path, content: str) -> None:
    """Put ``content`` at ``path`` in one step."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise DataError(
            f"{path}: the report cannot be written ({error.strerror}); "
            "choose a folder that exists and has room"
        ) from error
    finally:
        temporary.unlink(missing_ok=True)
