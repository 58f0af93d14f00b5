"""Axes of a Plotly figure, its level lines and its words, drawn by Matplotlib."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from freqsgd.report.old.picture_known import plain_text
from freqsgd.report.old.picture_marks import DASHES, POINT

TEXT, MUTED, GRID = "#1d2129", "#5c6470", "#e4e4e1"
SMALL = 8
FEW_DECADES = 2  # a logarithmic axis of fewer shows 2 and 5 too
PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def draw_axes(axes: Any, layout: Mapping[str, Any]) -> None:
    """Scales, ranges, ticks, titles and grid."""
    for side in ("x", "y"):
        spec = layout[f"{side}axis"]
        if spec.get("type") == "log":
            getattr(axes, f"set_{side}scale")("log")
        if spec.get("range") is not None:
            getattr(axes, f"set_{side}lim")(*in_data(spec["range"], spec))
        title = plain_text(spec.get("title", {}).get("text") or "")
        getattr(axes, f"set_{side}label")(title, color=MUTED, fontsize=SMALL, parse_math=False)
        draw_ticks(getattr(axes, f"{side}axis"), spec)
        if spec.get("showgrid", True):
            axes.grid(axis=side, color=GRID, linewidth=0.7, zorder=0)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", length=0, labelsize=SMALL, labelcolor=MUTED)
    for spine in axes.spines.values():
        spine.set_visible(False)


def in_data(values: Any, spec: Mapping[str, Any]) -> list[float]:
    """Places on an axis in units of its data: of logarithmic axes Plotly has exponents."""
    return [10.0**value if spec.get("type") == "log" else float(value) for value in values]


def draw_ticks(axis: Any, spec: Mapping[str, Any]) -> None:
    """Where ticks are and what they say."""
    from matplotlib import ticker

    if isinstance(axis.get_major_locator(), ticker.FixedLocator):
        return  # bars have set their categories
    axis.set_minor_locator(ticker.NullLocator())
    if "tickvals" in spec:
        axis.set_ticks(
            spec["tickvals"], labels=list(map(plain_text, spec["ticktext"])), parse_math=False
        )
        return
    axis.set_major_locator(locator(axis, spec))
    axis.set_major_formatter(ticker.FuncFormatter(tick_words(spec)))
    if spec.get("exponentformat") == "power" and decades(axis) >= FEW_DECADES:
        axis.set_major_formatter(ticker.LogFormatterMathtext())


def locator(axis: Any, spec: Mapping[str, Any]) -> Any:
    """Which places get a tick."""
    from matplotlib import ticker

    most = spec.get("nticks", 7)
    if spec.get("type") == "log":
        whole = spec.get("dtick") == 1 or decades(axis) >= FEW_DECADES
        return ticker.LogLocator(subs=(1.0,) if whole else (1.0, 2.0, 5.0), numticks=most)
    if spec.get("dtick") == 1:
        return ticker.MultipleLocator(1)
    return ticker.MaxNLocator(most, steps=[1, 2, 2.5, 5, 10], integer=spec.get("tickformat") == "d")


def decades(axis: Any) -> float:
    """How many powers of ten an axis spans."""
    low, high = sorted(axis.get_view_interval())
    return math.log10(high / low) if low > 0 else 0.0


def tick_words(spec: Mapping[str, Any]) -> Callable[[float, int], str]:
    """How a number on an axis is written."""
    ways = {"": "{:,.6g}".format, "d": "{:.0f}".format, ".2f": "{:.2f}".format, "~s": with_prefix}
    write = ways[spec.get("tickformat", "")]
    suffix = spec.get("ticksuffix", "")
    return lambda value, _: f"{write(value)}{suffix}"


def with_prefix(value: float) -> str:
    """A number with k, M or G."""
    for factor, prefix in PREFIXES:
        if abs(value) >= factor:
            return f"{value / factor:g}{prefix}"
    return f"{value:g}"


def place(spec: Mapping[str, Any]) -> tuple[str, str]:
    """Whether x and y are of the data, or shares of the picture."""
    x, y = ("axes fraction" if spec.get(f"{side}ref") == "paper" else "data" for side in "xy")
    return x, y


def draw_shapes(axes: Any, layout: Mapping[str, Any]) -> None:
    """Lines that belong to no trace, as at a level across the whole picture."""
    for shape in layout.get("shapes", ()):
        x, y = ((shape[f"{side}0"], shape[f"{side}1"]) for side in "xy")
        line = shape["line"]
        look = {"linestyle": DASHES[line.get("dash", "solid")], "linewidth": POINT * line["width"]}
        which = {
            ("axes fraction", "data"): axes.get_yaxis_transform(),
            ("data", "axes fraction"): axes.get_xaxis_transform(),
            ("data", "data"): axes.transData,
        }[place(shape)]
        axes.plot(x, y, color=MUTED, transform=which, zorder=1.5, **look)


def draw_annotations(axes: Any, layout: Mapping[str, Any]) -> None:
    """Words at a place."""
    for note in layout.get("annotations", ()):
        units = place(note)
        x, y = (
            note[side] if unit != "data" else in_data([note[side]], layout[f"{side}axis"])[0]
            for side, unit in zip("xy", units, strict=True)
        )
        axes.annotate(
            plain_text(note["text"]),
            (x, y),
            xycoords=units,
            ha=note["xanchor"],
            va={"middle": "center"}.get(note["yanchor"], note["yanchor"]),
            color=MUTED,
            fontsize=SMALL,
            parse_math=False,
            annotation_clip=False,
        )
