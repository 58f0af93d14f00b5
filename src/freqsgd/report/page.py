"""A page: tiles, a few sentences, sections of charts and tables, as one HTML file and pictures.

The template escapes every string. A content security policy keeps the page from loading anything.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from freqsgd.documents.results import Machine
from freqsgd.errors import DataError
from freqsgd.files import write_whole
from freqsgd.report.charts import DASHES, Chart, Series, for_page, picture, variable
from freqsgd.report.tables import Table

SENTENCES = 5  # that open a page, at most
SWATCHES = {  # markers of the legend, in a box of 28 x 12
    "circle": "M14 2a4 4 0 1 0 .01 0z",
    "square": "M10.4 2.4h7.2v7.2h-7.2z",
    "triangle-up": "M14 1.5l4.6 8H9.4z",
    "diamond": "M14 1l5 5-5 5-5-5z",
    "triangle-down": "M14 10.5l4.6-8H9.4z",
    "cross": "M12.6 2.4h2.8v2.2h2.2v2.8h-2.2v2.2h-2.8v-2.2h-2.2v-2.8h2.2z",
    "pentagon": "M14 1.6l4.4 3.2-1.7 5.2h-5.4L9.6 4.8z",
}


@dataclass(frozen=True)
class Tile:
    """One number with what it is and what it stands beside."""

    title: str
    value: str
    note: str


@dataclass(frozen=True)
class Section:
    """A part of the page under a heading: charts, then sentences, tables and a command.

    Args:
        title: the heading
        charts: they stand beside each other
        remarks: sentences of a list
        tables: below each other
        command: what a shell takes to make all this again
        name: for links to the section: unique on the page
        small: more than two charts beside each other
    """

    title: str
    charts: Sequence[Chart] = ()
    remarks: Sequence[str] = ()
    tables: Sequence[Table] = ()
    command: str | None = None
    name: str = ""
    small: bool = False

    def __bool__(self) -> bool:
        """Whether there is anything under the heading."""
        return bool(self.charts or self.remarks or self.tables or self.command)


@dataclass(frozen=True)
class Page:
    """All that a page shows.

    Args:
        title: the heading
        tiles: the numbers that matter most
        sentences: what matters beside them, SENTENCES at most
        sections: those without content are left out
        legend: what the buttons show and hide in all charts
        colours: other series that charts draw
        made: where and with what the numbers were made
        created: when, as an ISO time
        pictures: charts of each PNG file, by the end of its name; None: each chart is a file
    """

    title: str
    tiles: Sequence[Tile]
    sentences: Sequence[str]
    sections: Sequence[Section]
    legend: Sequence[Series] = ()
    colours: Sequence[Series] = ()
    made: Sequence[str] = ()
    created: str | None = None
    pictures: Mapping[str, Sequence[Chart]] | None = None

    @property
    def charts(self) -> list[Chart]:
        """All charts in the order of the page."""
        return [chart for section in self.sections for chart in section.charts]


def render(page: Page) -> str:
    """Return a page as HTML that needs nothing else."""
    from jinja2 import Environment, PackageLoader

    environment = Environment(
        loader=PackageLoader("freqsgd.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False}
    charts = page.charts
    sections = [section for section in page.sections if section]
    units = [chart.spec.get("usermeta", {}).get("unit") for chart in charts]
    return environment.get_template("page.html").render(
        page=page,
        sections=sections,
        controls=next((one for one in sections if one.charts), None) if page.legend else None,
        specs={chart.name: for_page(chart.spec) for chart in charts},
        unit=next(filter(None, units), None),
        colours={one.style.light: one.style.dark for one in (*page.legend, *page.colours)},
        footer=["Report by freqsgd", *page.made, *_made(page.created)],
        style=_asset("page.css"),
        script=_asset("page.js"),
        vega=_vega() if charts else "",
        variable=variable,
        swatches=SWATCHES,
        dashes=DASHES,
    )


def write(page: Page, path: Path) -> None:
    """Write a page, and its pictures beside it; readers never see half a file.

    The pictures of ``report.html`` are ``report-<name>.png``.
    """
    needs("jinja2", "the report")
    needs("vl_convert", "the report")
    _write(path, render(page).encode(), "the report")
    pictures = page.pictures
    if pictures is None:
        pictures = {chart.name: [chart] for chart in page.charts}
    for name, charts in pictures.items():
        _write(path.with_name(f"{path.stem}-{name}.png"), picture(charts), "the picture")


def machine_words(machine: Machine) -> list[str]:
    """Return the machine and the programs that numbers were made with."""
    known = {
        "{}": machine.cpu,
        "cores: {}": machine.cores,
        "threads: {}": machine.threads,
        "torch {}": machine.torch,
        "Python {}": machine.python,
    }
    return [way.format(value) for way, value in known.items() if value]


def needs(package: str, what: str) -> None:
    """Raise if a package is missing, with the command that installs it."""
    if find_spec(package) is None:
        raise ModuleNotFoundError(
            f'{what} needs {package}: pip install "freqsgd[cli]"', name=package
        )


def _asset(name: str) -> str:
    return files("freqsgd.report").joinpath("templates", name).read_text(encoding="utf-8")


@functools.cache
def _vega() -> str:
    """Return the program that draws charts, which vl-convert holds."""
    from vl_convert import javascript_bundle

    return javascript_bundle("window.vegaEmbed = vegaEmbed;").replace("</script", "<\\/script")


def _made(created: str | None) -> list[str]:
    """Return when a page was made, to the minute; what is no time stays as it is."""
    if not created:
        return []
    try:
        return [f"made {datetime.fromisoformat(created):%Y-%m-%d %H:%M %Z}".strip()]
    except ValueError:
        return [f"made {created}"]


def _write(path: Path, content: bytes, what: str) -> None:
    try:
        write_whole(path, content)
    except OSError as error:
        raise DataError(
            f"{path}: {what} cannot be written ({error.strerror}); "
            "choose a folder that exists and has room"
        ) from error
