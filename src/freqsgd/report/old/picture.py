"""The figures of the pages as PNG files: one definition, two ways to draw it.

The page draws a figure with Plotly, this module with Matplotlib, without a browser and without
Matplotlib's global state. ``picture_known.py`` refuses what would be left out.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from freqsgd.report.old.page import needs, write_file
from freqsgd.report.old.picture_axes import MUTED, TEXT, draw_annotations, draw_axes, draw_shapes
from freqsgd.report.old.picture_known import check_known, plain_text
from freqsgd.report.old.picture_marks import draw_bars, draw_scatter, hide_cut_text
from freqsgd.report.old.wording import shortened

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


DPI = 180
INCH = 96  # pixels of a page
HEIGHT = 340  # of a chart on a page
TITLE_ROOM = 0.35
MARGIN, LETTER = 0.6, 0.09  # inches of a panel: left of its axes, and of a letter of its title
# Up to so many panels: columns, width of a panel in inches, scale of its height.
SIZES = ((1, 1, 6.6, 1.0), (4, 2, 5.2, 1.0), (9, 3, 3.9, 0.75), (math.inf, 5, 2.7, 0.8))


@dataclass(frozen=True)
class Panel:
    """One of several figures in a picture."""

    title: str
    figure: Figure


@dataclass(frozen=True)
class Picture:
    """Figures beside each other, as one file."""

    title: str
    panels: Sequence[Panel]


def write_picture(picture: Picture, path: Path) -> None:
    """Write it as a PNG file with one legend; readers never see half a file."""
    file = io.BytesIO()
    paint(picture).savefig(file, format="png", metadata={"Software": None})
    write_file(path, file.getvalue(), "the picture")


def paint(picture: Picture) -> Any:
    """The picture as a Matplotlib figure."""
    needs("matplotlib", "a picture")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    panels, title = picture.panels, picture.title
    contents = [panel.figure.to_plotly_json() for panel in panels]
    for content in contents:
        check_known(content)
    columns, width, height = layout_of(contents)
    rows = math.ceil(len(panels) / columns)
    size = columns * width, rows * height + (TITLE_ROOM if title else 0)
    canvas = Canvas(size, dpi=DPI, layout="constrained", facecolor="white")
    FigureCanvasAgg(canvas)
    grid = list(canvas.subplots(rows, columns, squeeze=False).flat)
    named: dict[str, Any] = {}
    bold = {"color": TEXT, "fontweight": "bold", "parse_math": False}
    for axes, panel, content in zip(grid, panels, contents, strict=False):
        named |= draw(axes, content)
        words = shortened(panel.title, round((width - MARGIN) / LETTER))
        axes.set_title(words, loc="left", fontsize=9, **bold)
    for axes in grid[len(panels) :]:
        axes.set_axis_off()
    if title:
        canvas.suptitle(title, fontsize=11, **bold)
    add_legend(canvas, named)
    canvas.draw_without_rendering()
    for axes in canvas.axes:
        hide_cut_text(axes)
    return canvas


def layout_of(contents: Sequence[dict[str, Any]]) -> tuple[int, float, float]:
    """Columns, and the width and height of a panel in inches."""
    _, columns, width, scale = next(size for size in SIZES if len(contents) <= size[0])
    heights = [(content["layout"].get("meta") or {}).get("height", HEIGHT) for content in contents]
    return columns, width, scale * max(heights) / INCH + 0.5 * scale


def draw(axes: Any, content: dict[str, Any]) -> dict[str, Any]:
    """Draw all of a figure; returns what its legend shows, by name."""
    layout, traces = content["layout"], content["data"]
    named = {}
    for order, trace in enumerate(traces):
        if trace.get("type") == "bar":
            drawn = draw_bars(axes, trace, order, len(traces), layout)
        else:
            drawn = draw_scatter(axes, trace)
        if trace.get("orientation") != "h":  # bars that lie have their names beside them
            named[plain_text(trace["name"])] = drawn
    draw_axes(axes, layout)
    draw_shapes(axes, layout)
    draw_annotations(axes, layout)
    return named


def add_legend(canvas: Any, named: dict[str, Any]) -> None:
    """All names below the panels, if there is something to tell apart."""
    if len(named) < 2:
        return
    legend = canvas.legend(
        list(named.values()),
        [str(place) for place in range(len(named))],
        loc="outside lower center",
        ncols=min(len(named), 4),
        frameon=False,
        fontsize=8,
        labelcolor=MUTED,
        handlelength=3,
    )
    for text, name in zip(legend.get_texts(), named, strict=True):
        text.set_parse_math(False)  # set here, as a label must not start with "_"
        text.set_text(name)
