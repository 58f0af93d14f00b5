"""Sections and charts as one HTML page that needs nothing else.

Every string that comes from results is escaped where it enters HTML; a content security policy
keeps the page from loading anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from freqsgd.errors import DataError
from freqsgd.files import write_whole
from freqsgd.optimizers import Style
from freqsgd.report.old.style import Drawn, styles

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


DASH_ARRAYS = {
    "solid": "none",
    "dash": "6 4",
    "dot": "2 3",
    "dashdot": "7 3 2 3",
    "longdash": "10 4",
    "longdashdot": "10 3 2 3",
}
MARKER_PATHS = {  # in a box of 28 x 12, centred
    "circle": "M14 2a4 4 0 1 0 .01 0z",
    "square": "M10.4 2.4h7.2v7.2h-7.2z",
    "triangle-up": "M14 1.5l4.6 8H9.4z",
    "diamond": "M14 1l5 5-5 5-5-5z",
    "triangle-down": "M14 10.5l4.6-8H9.4z",
    "pentagon": "M14 1.6l4.4 3.2-1.7 5.2h-5.4L9.6 4.8z",
}


@dataclass(frozen=True)
class Chart:
    """A figure with the words that belong to it."""

    name: str  # unique on the page
    title: str
    figure: Figure
    description: str  # for those who cannot see it
    note: str = ""
    data: str = ""  # HTML


@dataclass(frozen=True)
class Tile:
    """One number with what it is and what it stands beside."""

    title: str
    value: str
    note: str


@dataclass(frozen=True)
class Statement:
    """Some sentences about one topic."""

    topic: str
    text: str


@dataclass(frozen=True)
class Section:
    """A part of the page under a heading."""

    title: str
    html: str = ""
    charts: tuple[Chart, ...] = ()
    small: bool = False  # many charts of a kind, more than two beside each other
    name: str = ""  # for links to it: unique on the page
    after: str = ""  # HTML below the charts


def render(
    title: str,
    opening: str,
    sections: Sequence[Section],
    footer: str,
    runs: Sequence[Drawn],
    others: Sequence[Drawn] = (),
) -> str:
    """The page. ``opening`` and ``footer`` are HTML, ``title`` is text.

    A trace's ``meta["run"]`` is its place among ``runs``, which the legend lists, and then
    ``others``, which have colours only.
    """
    from plotly.offline import get_plotlyjs

    looks = styles([*runs, *others])
    charts = [chart for section in sections for chart in section.charts]
    with_legend = next((part for part in sections if shows_any(part, len(runs))), None)
    body = []
    for section in sections:
        if section is with_legend:
            body.append(controls(runs, looks, time_unit(charts)))
        body.append(section_html(section))
    return Template(asset("page.html")).substitute(
        title=escape(title),
        style=asset("page.css") + colours(looks),
        opening=opening,
        sections="\n".join(body),
        footer=footer,
        figures=script_data({chart.name: json.loads(chart.figure.to_json()) for chart in charts}),
        plotly=get_plotlyjs() if charts else "",
        script=asset("page.js"),
    )


def asset(name: str) -> str:
    """A file of this package."""
    return files("freqsgd.report.old").joinpath("assets", name).read_text(encoding="utf-8")


def script_data(value: object) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(value, allow_nan=False).replace("<", "\\u003c")


def colours(looks: Sequence[Style]) -> str:
    """The colours of the runs as CSS variables, for light and dark pages."""
    light = "".join(f"--run-{place}: {style.light};" for place, style in enumerate(looks))
    dark = "".join(f"--run-{place}: {style.dark};" for place, style in enumerate(looks))
    return (
        f":root {{ {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root:not(.printing) {{ {dark} }} }}\n"
    )


def shows_any(section: Section, runs: int) -> bool:
    """Whether a chart of the section draws one of the first ``runs``."""
    return any(trace.meta["run"] < runs for chart in section.charts for trace in chart.figure.data)


def time_unit(charts: Iterable[Chart]) -> str | None:
    """What charts that can be drawn over seconds are drawn over at first; None without such."""
    metas = (chart.figure.layout.meta or {} for chart in charts)
    return next((meta.get("unit", "epochs") for meta in metas if meta.get("seconds_axis")), None)


def controls(runs: Sequence[Drawn], looks: Sequence[Style], unit: str | None) -> str:
    """The legend, which shows and hides runs in all charts, and the choice of the time axis."""
    entries = "".join(
        f'<button type="button" aria-pressed="true" data-run="{place}"'
        f' style="--mark: var(--run-{place})">{swatch(style)}{escape(run.label)}</button>'
        for place, (run, style) in enumerate(zip(runs, looks[: len(runs)], strict=True))
    )
    choice = "".join(
        f'<label><input type="radio" name="axis" value="{value}"{checked}>'
        f"<span>{value}</span></label>"
        for value, checked in ((unit, " checked"), ("seconds", ""))
    )
    axis = f'<fieldset class="choice"><legend class="unseen">Time axis</legend>{choice}</fieldset>'
    return (
        '<div class="controls">'
        f'<div class="legend" role="group" aria-label="Shown in the charts">{entries}</div>'
        f"{axis if unit else ''}</div>"
    )


def swatch(style: Style) -> str:
    """A short piece of a run's line with its marker."""
    return (
        '<svg viewBox="0 0 28 12" width="28" height="12" aria-hidden="true">'
        f'<path d="M0 6H28" fill="none" stroke="var(--mark)" stroke-width="2" '
        f'stroke-dasharray="{DASH_ARRAYS[style.dash]}"/>'
        f'<path d="{MARKER_PATHS[style.marker]}" fill="var(--mark)"/></svg>'
    )


def section_html(section: Section) -> str:
    """A heading with what is under it."""
    charts = "".join(map(chart_html, section.charts))
    size = " small" if section.small else ""
    grid = f'<div class="charts{size}">{charts}</div>' if charts else ""
    name = f' id="{section.name}"' if section.name else ""
    heading = f"<h2>{escape(section.title)}</h2>"
    return f"<section{name}>{heading}{section.html}{grid}{section.after}</section>"


def chart_html(chart: Chart) -> str:
    """The place of a chart, filled in by the script."""
    meta = chart.figure.layout.meta or {}
    height = meta.get("height", 340)
    note = f"<p>{escape(chart.note)}</p>" if chart.note else ""
    data = f"<details><summary>Data</summary>{chart.data}</details>" if chart.data else ""
    below = "; the data are below" if data else ""
    return (
        f'<figure class="card"><figcaption><h3>{escape(chart.title)}</h3></figcaption>'
        f'<div class="chart" id="chart-{chart.name}" data-figure="{chart.name}" role="img"'
        f' aria-label="{escape(chart.description)}" style="height: {height}px"></div>'
        f"<noscript><p>Charts need JavaScript{below}.</p></noscript>"
        f"{note}{data}</figure>"
    )


def opening_html(tiles: Iterable[Tile], statements: Iterable[Statement]) -> str:
    """The numbers and sentences that come first."""
    numbers = "".join(
        f'<div class="card tile"><dt>{escape(tile.title)}</dt>'
        f"<dd><strong>{escape(tile.value)}</strong><span>{escape(tile.note)}</span></dd></div>"
        for tile in tiles
    )
    return f'<dl class="tiles">{numbers}</dl>{statements_html(statements)}'


def statements_html(statements: Iterable[Statement]) -> str:
    """Topics, and what is said of each."""
    words = "".join(
        f"<div><dt>{escape(each.topic)}</dt><dd>{escape(each.text)}</dd></div>"
        for each in statements
    )
    return f'<dl class="summary card">{words}</dl>'


def command_html(command: str | None) -> str:
    """The command that makes all this again."""
    if command is None:
        return ""
    return f"<h3>To do it again</h3><pre><code>{escape(command)}</code></pre>"


def footer_html(parts: Sequence[str], created: str | None) -> str:
    """With what and when a page was made."""
    made = [f"made {moment(created)}"] if created else []
    return " · ".join(map(escape, ("Report by freqsgd", *parts, *made)))


def moment(written: str) -> str:
    """An ISO time to the minute; anything else as it is."""
    try:
        return f"{datetime.fromisoformat(written):%Y-%m-%d %H:%M %Z}".strip()
    except ValueError:
        return written


def needs(package: str, what: str) -> None:
    """Raise if a package is missing, with the command that installs it."""
    if find_spec(package) is None:
        raise ModuleNotFoundError(
            f'{what} needs {package}: pip install "freqsgd[cli]"', name=package
        )


def write_file(path: Path, content: bytes, what: str) -> None:
    """Write all of a file, or nothing."""
    try:
        write_whole(path, content)
    except OSError as error:
        raise DataError(
            f"{path}: {what} cannot be written ({error.strerror}); "
            "choose a folder that exists and has room"
        ) from error
