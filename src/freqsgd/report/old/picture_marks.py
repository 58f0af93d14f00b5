"""Lines, points and bars of a Plotly figure, drawn by Matplotlib."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from freqsgd.report.old.picture_known import plain_text

POINT = 0.75  # of a pixel, in which Plotly measures
DASHES = {
    "solid": "-",
    "dash": (0, (4.5, 3)),
    "dot": (0, (1.2, 2)),
    "dashdot": (0, (5, 2, 1.2, 2)),
    "longdash": (0, (8, 3)),
    "longdashdot": (0, (8, 2, 1.2, 2)),
}
MARKERS = {
    "circle": "o",
    "square": "s",
    "triangle-up": "^",
    "diamond": "D",
    "triangle-down": "v",
    "pentagon": "p",
}
SMALL_TEXT = 6.5


def floats(values: Sequence[Any]) -> list[float]:
    """Numbers; what is missing is not a number, and so not drawn."""
    return [math.nan if value is None else float(value) for value in values]


def draw_scatter(axes: Any, trace: Mapping[str, Any]) -> Any:
    """A line, points or both, with intervals if there are any; returns what the legend shows."""
    from matplotlib.lines import Line2D

    x, y = floats(trace["x"]), floats(trace["y"])
    mode = trace["mode"]
    line, marker = trace.get("line", {}), trace.get("marker", {})
    colour = marker["color"] if "markers" in mode else line["color"]
    faint = trace.get("opacity", 1)
    look: dict[str, Any] = {"linestyle": "none", "marker": "none", "alpha": faint}
    if "lines" in mode:
        steps = "steps-post" if line.get("shape") == "hv" else "default"
        width = POINT * line.get("width", 2)
        style = {"linestyle": DASHES[line.get("dash", "solid")], "linewidth": width}
        axes.plot(x, y, color=line["color"], alpha=faint, drawstyle=steps, zorder=2, **style)
        look |= style
    if "markers" in mode:
        symbol = MARKERS[marker.get("symbol", "circle")]
        opacity = faint * marker.get("opacity", 1)
        given = marker.get("size", 6)
        sizes = floats(given) if isinstance(given, list | tuple) else [float(given)] * len(x)
        areas = [(POINT * size) ** 2 for size in sizes]
        axes.scatter(
            x, y, areas, color=colour, marker=symbol, alpha=opacity, linewidths=0, zorder=3
        )
        look |= {"marker": symbol, "markersize": 4.5, "alpha": opacity}
    if "text" in mode:
        write_beside(axes, x, y, trace["text"], colour)
    if "error_y" in trace:
        draw_intervals(axes, x, y, trace["error_y"], colour)
    return Line2D([], [], color=colour, markeredgewidth=0, **look)


def write_beside(
    axes: Any, x: list[float], y: list[float], words: Sequence[str], colour: str
) -> None:
    """Words to the left of points."""
    for across, up, text in zip(x, y, words, strict=True):
        if text and not math.isnan(up):
            axes.annotate(
                plain_text(text),
                (across, up),
                (-5, 0),
                textcoords="offset points",
                ha="right",
                va="center",
                color=colour,
                fontsize=SMALL_TEXT,
                parse_math=False,
            )


def draw_intervals(
    axes: Any, x: list[float], y: list[float], error: Mapping[str, Any], colour: str
) -> None:
    """A thin line from the low to the high end of each point."""
    low = [end - less for end, less in zip(y, floats(error["arrayminus"]), strict=True)]
    high = [end + more for end, more in zip(y, floats(error["array"]), strict=True)]
    axes.vlines(x, low, high, color=colour, linewidth=POINT * error.get("thickness", 1), zorder=1)


def draw_bars(
    axes: Any, trace: Mapping[str, Any], order: int, count: int, layout: Mapping[str, Any]
) -> Any:
    """A trace's bars; in groups by category if they stand, each in its own row if they lie."""
    colour = trace["marker"]["color"]
    if trace.get("orientation") == "h":
        return axes.barh(floats(trace["y"]), floats(trace["x"]), trace["width"], color=colour)
    slot = (1 - layout["bargap"]) / count
    centres = [
        place - (1 - layout["bargap"]) / 2 + (order + 0.5) * slot
        for place in range(len(trace["x"]))
    ]
    bars = axes.bar(
        centres, floats(trace["y"]), slot * (1 - layout["bargroupgap"]), color=colour, zorder=2
    )
    axes.set_xticks(range(len(trace["x"])), map(str, trace["x"]), parse_math=False)
    if "texttemplate" in trace:
        for bar, height in zip(bars, trace["y"], strict=True):
            if height is not None:
                write_in_bar(axes, bar, filled_in(trace["texttemplate"], height))
    return bars


def filled_in(template: str, y: float) -> str:
    """Plotly's template with the value in its place."""
    return plain_text(re.sub(r"%{y:([^}]*)}", lambda found: format(y, found[1]), template))


def write_in_bar(axes: Any, bar: Any, words: str) -> None:
    """Words along a bar, at its end."""
    height = bar.get_height()
    text = axes.annotate(
        words,
        (bar.get_x() + bar.get_width() / 2, height),
        (0, -3 if height >= 0 else 3),
        textcoords="offset points",
        rotation=90,
        ha="center",
        va="top" if height >= 0 else "bottom",
        color="white",
        fontsize=SMALL_TEXT,
        parse_math=False,
    )
    text.set_gid("in-bar")
    text.bar = bar


def hide_cut_text(axes: Any) -> None:
    """Hide what does not fit into its bar, once all sizes are known."""
    for text in axes.texts:
        if text.get_gid() != "in-bar":
            continue
        words, bar = text.get_window_extent(), text.bar.get_window_extent()
        visible = bar.intersection(bar, axes.get_window_extent())
        fits = visible is not None and words.width <= bar.width and words.height < visible.height
        text.set_visible(fits)
