"""Charts as Vega-Lite specifications, which the page draws in the browser and ``picture`` as PNG.

A :func:`chart` is made of rows (dictionaries with a ``run``, the label of a series), of layers
(:func:`lines`, :func:`points`, :func:`bars`, :func:`intervals`, :func:`labels`, :func:`level`) and
of tips: what a row tells, in the chart as well as in the table and the description beside it.
Text of documents may stand in rows, titles and labels. It must never stand in expressions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from freqsgd.optimizers import OPTIMIZERS, Style
from freqsgd.report.tables import Table, table
from freqsgd.report.wording import capitalized, shortened

Spec = dict[str, Any]
Rows = Sequence[Mapping[str, Any]]
Tip = tuple[str, str, str]  # a field of the rows, its title, its format: "" for text

HEIGHT = 300
RUN = {"field": "run", "type": "nominal", "title": None}
SHOWN = [{"filter": "indexof(hidden, datum.run) < 0"}]  # the legend of the page hides runs
SMALL, LARGE = 40, 130  # areas of markers, in square pixels
MARKED = 12  # markers on a line
WIDE_SPREAD = 10  # an axis is logarithmic where the largest value is that many times the smallest
DASHES = {
    "solid": [1, 0],
    "dash": [6, 4],
    "dot": [2, 3],
    "dashdot": [7, 3, 2, 3],
    "longdash": [10, 4],
    "longdashdot": [10, 3, 2, 3],
    "dashes": [3, 2],
}
MARKERS = {
    "circle": "circle",
    "square": "square",
    "triangle-up": "triangle-up",
    "diamond": "diamond",
    "triangle-down": "triangle-down",
    "pentagon": "M0-1.1L1.05-.34L.65.89H-.65L-1.05-.34Z",
    "cross": "cross",
}
STYLES = {
    name: facts.style
    for dash in DASHES
    for name, facts in OPTIMIZERS.items()
    if facts.style is not None and facts.style.dash == dash
}
OTHER_STYLES = {  # of series that are no optimizers
    "counted": replace(STYLES["sgd"], dash="solid", marker="circle"),
    "exponential": replace(STYLES["adam"], dash="dash", marker="square"),
    "polynomial": replace(STYLES["cfsgd"], dash="dot", marker="diamond"),
}
# Up to so many charts in a picture: columns, width and scale of the height of each.
SIZES = ((1, 1, 600, 1.0), (4, 2, 440, 1.0), (9, 3, 330, 0.75), (math.inf, 5, 220, 0.6))
# Text that a row tells. As "nominal", Vega-Lite 6.4 does not find that of the nearest row.
AS_TEXT = {"type": "quantitative", "formatType": "toString"}
IS_DECADE = "abs(log(datum.value) / LN10 - round(log(datum.value) / LN10)) < 1e-6"
SYMBOL, LETTER = 40, 7  # pixels of a legend: for a symbol with its margins, and a letter
RESOLUTION = 2  # pixels of a picture per pixel of a page


@dataclass(frozen=True)
class Series:
    """Something that is drawn: its name in rows and in the legend, and its style."""

    label: str
    style: Style
    optimizer: str = ""


@dataclass(frozen=True)
class Chart:
    """A specification with the words and numbers that belong to it."""

    name: str  # unique on the page
    title: str
    spec: Spec
    description: str  # for those who cannot see it
    note: str = ""
    table: Table | None = None


def series_of(names: Mapping[str, str]) -> list[Series]:
    """Return a series per label, given its optimizer or another key of a style.

    An optimizer has a colour, and its further runs have other dashes.
    """
    known = {**STYLES, **OTHER_STYLES}
    used = dict.fromkeys(names.values())
    strangers = [name for name in used if name not in known]
    spare = [name for name in STYLES if name not in used] or list(STYLES)
    seen: Counter[str] = Counter()
    found = []
    for label, optimizer in names.items():
        name = optimizer
        if name in strangers:
            name = spare[strangers.index(name) % len(spare)]
        style = known[name]
        if name in STYLES:
            dash = _following(style.dash, list(DASHES), seen[name])
            style = replace(
                style, dash=dash, marker=_following(style.marker, list(MARKERS), seen[name])
            )
        seen[name] += 1
        found.append(Series(label, style, optimizer))
    return found


def _following(one: str, known: Sequence[str], steps: int) -> str:
    """Return what is so many places behind one of the names, in a circle."""
    return known[(known.index(one) + steps) % len(known)]


# ---- axes ----------------------------------------------------------------------------------------


def axis(
    field: str,
    title: str | None = None,
    *,
    log: bool = False,
    whole: bool = False,
    format: str = "",
    grid: bool = True,
    domain: Sequence[Any] | None = None,
    values: Sequence[float] | None = None,
    padding: float = 0,
    zero: bool = False,
) -> Spec:
    """Return an axis of numbers.

    Args:
        field: of the rows
        title: beside the axis
        log: logarithmic
        whole: with ticks at whole numbers only
        format: of its numbers, in the language of d3
        grid: with lines across the chart
        domain: its ends, if they are not to follow from the rows that are shown
        values: its ticks
        padding: pixels between its ends and the marks nearest to them
        zero: starts at 0
    """
    scale: Spec = {"type": "log", "nice": False, "padding": 6} if log else {"zero": zero}
    if padding:
        scale["padding"] = padding
    if domain is not None:
        scale |= {"domain": list(domain), "nice": False}
    marks: Spec = {"grid": grid}
    if log:
        decades = {"condition": {"test": IS_DECADE, "value": 1}, "value": 0}
        marks |= {"tickCount": 5, "labelOverlap": "greedy", "gridOpacity": decades}
        marks["format"] = format or "~g"
    elif whole:
        scale |= {"nice": False, "padding": 8}
        part = {"test": "datum.value % 1", "value": 0}  # tickMinStep lets halves through
        marks |= {"tickOpacity": {"condition": part, "value": 1}}
        marks["labelExpr"] = f"datum.value % 1 ? '' : format(datum.value, '{format or ',d'}')"
    elif format:  # not as "format", which writes 0 as 0M where the largest has an M
        marks["labelExpr"] = f"format(datum.value, '{format}')"
    if values is not None:
        marks["values"] = list(values)
    return {"field": field, "type": "quantitative", "title": title, "scale": scale, "axis": marks}


def log_axis(field: str, title: str, values: Iterable[float], **more: Any) -> Spec:
    """Return a logarithmic axis whose ticks are powers of ten, or 1, 2 and 5 times these."""
    known = list(values)
    low, high = math.log10(min(known)), math.log10(max(known))
    steps = (1,) if high - low >= 2 else (1, 2, 5)
    powers = range(math.floor(low), math.ceil(high) + 1)
    ticks = [step * 10.0**power for power in powers for step in steps]
    return axis(field, title, log=True, values=ticks, **more)


def names_axis(field: str, names: Sequence[str] | None = None) -> Spec:
    """Return an axis of names, in the order of the rows or as given."""
    return {
        "field": field,
        "type": "nominal",
        "title": None,
        "sort": list(names) if names else None,
        "axis": {"domain": False, "ticks": False, "labelLimit": 190, "labelPadding": 8},
    }


def seconds_axis(totals: Iterable[float | None]) -> Spec | None:
    """Return the axis of seconds for runs that took so many; None where some are not known."""
    known = [total for total in totals if total is not None]
    if not known:
        return None
    if 0 < WIDE_SPREAD * min(known) < max(known):
        title = "seconds of training (logarithmic)"
        return axis("seconds", title, log=True, grid=False)
    return axis("seconds", "seconds of training", zero=True, grid=False)


# ---- layers --------------------------------------------------------------------------------------


def layer(mark: Spec, rows: Rows | None = None, **encoding: Any) -> Spec:
    """Return a layer; it draws the rows of the chart, or its own."""
    made: Spec = {"mark": mark, "encoding": encoding}
    if rows is not None:
        made |= {"data": {"values": list(rows)}, "transform": SHOWN}
    return made


def lines(rows: Rows | None = None, *, detail: str = "", **mark: Any) -> Spec:
    """Return a line per run, with its dash unless ``strokeDash`` is given.

    ``detail`` names a field of numbers that splits the rows of a run into several lines: the lower
    it is, the paler the line.
    """
    encoding: Spec = {"color": RUN}
    if "strokeDash" not in mark:
        encoding["strokeDash"] = RUN
    if detail:
        order = {"range": [0.5, 1], "zero": False, "nice": False}
        encoding["detail"] = {"field": detail, "type": "nominal"}
        encoding["opacity"] = {
            "field": detail,
            "type": "quantitative",
            "scale": order,
            "legend": None,
        }
    return layer({"type": "line", "clip": True, **mark}, rows, **encoding)


def points(rows: Rows | None = None, *, sized: bool = False, **mark: Any) -> Spec:
    """Return a marker per row; ``sized``: of the area that its field ``size`` says, none of 0."""
    encoding: Spec = {"color": RUN, "shape": RUN}
    if sized:
        encoding["size"] = {"field": "size", "type": "quantitative", "scale": None}
    made = layer(
        {"type": "point", "filled": True, "opacity": 1, "size": SMALL, "clip": True, **mark},
        rows,
        **encoding,
    )
    if sized:
        made["transform"] = [*made.get("transform", []), {"filter": "datum.size > 0"}]
    return made


def bars() -> Spec:
    """Return a lying bar per row."""
    return layer({"type": "bar", "height": {"band": 0.62}}, color=RUN)


def intervals() -> Spec:
    """Return an upright line from ``low`` to ``high`` per row."""
    low, high = {"field": "low", "type": "quantitative"}, {"field": "high"}
    return layer({"type": "rule", "clip": True}, color=RUN, y=low, y2=high)


def labels(field: str) -> Spec:
    """Return the text of a field, right of where its row is."""
    style = {"type": "text", "style": "remark", "clip": False, "align": "left", "dx": 9}
    return layer(style, text={"field": field})


def level(
    value: float, words: str = "", *, upright: bool = False, below: bool = False
) -> list[Spec]:
    """Return a line across the chart at a value of y, or of x if ``upright``.

    Its name stands at the right end, above the line or ``below`` it.
    """
    at, across = ("x", "y") if upright else ("y", "x")
    data = {"values": [{"level": value, "words": words}]}
    nowhere = {across: None, f"{at}Offset": None, f"{across}Offset": None}
    place = {**nowhere, at: {"field": "level", "type": "quantitative"}}
    made: list[Spec] = [
        {"mark": {"type": "rule", "style": "level"}, "data": data, "encoding": place}
    ]
    if words:
        side = {"baseline": "top", "dy": 4} if below else {"baseline": "bottom", "dy": -4}
        mark = {"type": "text", "style": "remark", "clip": False, "align": "right", **side}
        text = {**place, across: {"value": "width"}, "text": {"field": "words"}}
        made.append({"mark": mark, "data": data, "encoding": text})
    return made


def outline(rows: Rows, **mark: Any) -> Spec:
    """Return a line that belongs to no run, dotted unless ``mark`` says else."""
    style = {"type": "line", "style": "level", "clip": True, **mark}
    return {"mark": style, "data": {"values": list(rows)}}


# ---- charts --------------------------------------------------------------------------------------


def chart(
    name: str,
    title: str,
    series: Sequence[Series],
    rows: Rows,
    x: Spec,
    y: Spec,
    *layers: Spec,
    tips: Sequence[Tip],
    note: str = "",
    height: int = HEIGHT,
    seconds: Spec | None = None,
    unit: str = "epochs",
    spans: Mapping[str, Sequence[float]] | None = None,
    offset: bool = False,
) -> Chart:
    """Return a chart with its description and its numbers as a table.

    Args:
        name: unique on the page
        title: above the chart
        series: all that is in the legend of its page
        rows: what the layers draw that have no rows of their own
        x: axis
        y: axis
        layers: what is drawn, the lowest first
        tips: what the nearest row shows when it is pointed at: the run first, then its place
        note: below the chart
        height: in pixels
        seconds: the axis of x when the page shows seconds
        unit: what x counts else
        spans: by run, the ends of y that matter; the axis follows those of the runs that are shown
        offset: rows of several runs that have the same name on y lie below each other
    """
    used = {row["run"] for row in rows if "run" in row}
    used |= {row.get("run") for each in layers for row in each.get("data", {}).get("values", ())}
    shown = [one for one in series if one.label in used]
    params: list[Spec] = [{"name": "hidden", "value": []}]
    encoding = {"x": x, "y": y}
    meta: Spec = {}
    if spans:
        low, high = with_room([end for ends in spans.values() for end in ends])
        params += [{"name": "low", "value": low}, {"name": "high", "value": high}]
        scale = {**y["scale"], "domain": [{"expr": "low"}, {"expr": "high"}], "nice": False}
        encoding["y"] = {**y, "scale": scale}
        meta["spans"] = {name: list(ends) for name, ends in spans.items()}
    if offset:
        encoding["yOffset"] = {"field": "run", "scale": {"domain": [one.label for one in shown]}}
    if seconds is not None:
        meta |= {"seconds": seconds, "unit": unit}
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": "container",
        "height": height,
        "data": {"values": list(rows)},
        "transform": SHOWN,
        "params": params,
        "encoding": encoding,
        "layer": [styled(each, shown) for each in (*layers, pointed_at(tips))],
    }
    if meta:
        spec["usermeta"] = meta
    return Chart(name, title, spec, described(title, rows, tips), note, numbers(rows, tips))


def described(title: str, rows: Rows, tips: Sequence[Tip]) -> str:
    """Return what a chart shows: the first and the last row of each run."""
    told = []
    place = [tip for tip in tips if tip[0] != "run"][:2]
    for run in dict.fromkeys(row.get("run") for row in rows):
        own = [row for row in rows if row.get("run") == run]
        ends = [
            ", ".join(f"{tip[1]} {cell(row, tip)}" for tip in place) for row in (own[0], own[-1])
        ]
        told.append(" ".join(filter(None, (run, " to ".join(dict.fromkeys(ends))))))
    return f"{title}. {'; '.join(told)}."


def numbers(rows: Rows, tips: Sequence[Tip]) -> Table:
    """Return what rows tell: a line per place with columns for each run, else a line per row."""
    runs = list(dict.fromkeys(row["run"] for row in rows if tips[0][0] == "run"))
    places = {(row["run"], row[tips[1][0]]): row for row in rows if runs}
    if len(tips) < 3 or len(places) < len(rows):
        head = [capitalized(title) for _, title, _ in tips]
        return table(head, [[cell(row, tip) for tip in tips] for row in rows])
    _, at, *values = tips
    order = {row[at[0]]: cell(row, at) for row in rows}
    if at[2]:
        order = dict(sorted(order.items()))
    head = [capitalized(at[1])]
    head += [run if tip is values[0] else f"{run}, {tip[1]}" for run in runs for tip in values]
    return table(
        head,
        [
            [words, *(cell(places.get((run, place), {}), tip) for run in runs for tip in values)]
            for place, words in order.items()
        ],
    )


def cell(row: Mapping[str, Any], tip: Tip) -> str | None:
    """Return what a row tells of a tip as text."""
    field, _, form = tip
    value = row.get(field)
    if value is None or not form:
        return value
    words = format(value, form.replace("~", ""))
    return f"\N{MINUS SIGN}{words[1:]}" if words.startswith("-") else words


def styled(each: Spec, shown: Sequence[Series]) -> Spec:
    """Return a layer whose channels that tell runs apart have the styles of the series."""
    ranges = {
        "color": [one.style.light for one in shown],
        "strokeDash": [DASHES[one.style.dash] for one in shown],
        "shape": [MARKERS[one.style.marker] for one in shown],
    }
    domain = [one.label for one in shown]
    encoding = {
        channel: {**entry, "scale": {"domain": domain, "range": ranges[channel]}}
        if entry is RUN
        else entry
        for channel, entry in each.get("encoding", {}).items()
    }
    return {**each, "encoding": encoding}


def pointed_at(tips: Sequence[Tip]) -> Spec:
    """Return the layer that tells of the row nearest to the pointer."""
    select = {"type": "point", "on": "pointerover", "nearest": True, "clear": "pointerout"}
    near = {"condition": {"param": "near", "empty": False, "value": 1}, "value": 0}
    return {
        "name": "pointer",
        "mark": {"type": "point", "filled": True, "size": LARGE, "clip": True},
        "params": [{"name": "near", "select": select}],
        "encoding": {"color": RUN, "opacity": near, "tooltip": told(tips)},
    }


def told(tips: Sequence[Tip]) -> list[Spec]:
    """Return what a row tells when it is pointed at."""
    return [
        {"field": field, "title": title}
        | ({"format": format, "type": "quantitative"} if format else AS_TEXT)
        for field, title, format in tips
    ]


def with_room(values: Sequence[float], least: float = 1e-4) -> list[float]:
    """Return the ends of an axis that holds values, with some room; the page's script does so."""
    low, high = min(values), max(values)
    room = 0.06 * max(high - low, least)
    return [low - room, high + room]


def cut_off(
    spans: Mapping[str, Sequence[float]], values: Sequence[float], show: Callable[[float], str]
) -> str:
    """Return which values are beyond the axis that ``spans`` make at first, if any."""
    low, high = with_room([end for span in spans.values() for end in span])
    sides = (("below", low, min(values) < low), ("above", high, max(values) > high))
    beyond = " and ".join(f"{side} {show(end)}" for side, end, is_beyond in sides if is_beyond)
    return f" What lies {beyond} is not shown at first." if beyond else ""


def config(text: str, muted: str, grid: str, font: str) -> Spec:
    """Return the looks that all charts have in common, in some colours."""
    words = {"labelColor": muted, "titleColor": muted, "labelFontSize": 11, "titleFontSize": 12}
    return {
        "aria": False,  # the page describes its charts
        "background": None,
        "customFormatTypes": True,
        "font": font,
        "view": {"stroke": None},
        "line": {"strokeWidth": 2},
        "axis": {
            **words,
            "titleFontWeight": "normal",
            "labelFlush": False,
            "tickCount": 6,
            "domainColor": grid,
            "tickColor": grid,
            "gridColor": grid,
        },
        "legend": {"labelColor": muted, "labelFontSize": 12, "symbolStrokeWidth": 2},
        "style": {
            "level": {"color": muted, "strokeDash": [2, 3], "strokeWidth": 1},
            "remark": {"color": muted, "fontSize": 11},
        },
        "title": {"color": text, "anchor": "start", "fontSize": 13, "offset": 12},
    }


PAGE_FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'
PAGE_CONFIG = config("var(--text)", "var(--muted)", "var(--grid)", PAGE_FONT)
PICTURE_CONFIG = {
    **config("#1d2129", "#5c6470", "#e2e3df", "Liberation Sans, Arial, sans-serif"),
    "background": "white",
    "padding": 14,
}


def for_page(spec: Spec) -> Spec:
    """Return a copy whose colours are those of the page, light or dark."""
    return {**_recoloured(spec), "config": {**PAGE_CONFIG, "legend": {"disable": True}}}


def _recoloured(value: Any) -> Any:
    """Return a copy in which the ranges of scales are variables of the page's style."""
    if isinstance(value, list):
        return [_recoloured(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: each
        if key in ("data", "usermeta")
        else [variable(entry) if _is_colour(entry) else entry for entry in each]
        if key == "range"
        else _recoloured(each)
        for key, each in value.items()
    }


def _is_colour(entry: Any) -> bool:
    return isinstance(entry, str) and entry.startswith("#")


def variable(colour: str) -> str:
    """Return the variable of the page's style that stands for a colour of a series."""
    return f"var(--c-{colour.removeprefix('#')})"


def picture(charts: Sequence[Chart]) -> bytes:
    """Return charts as one PNG image, with their titles and one legend."""
    from vl_convert import vegalite_to_png

    _, columns, width, scale = next(size for size in SIZES if len(charts) <= size[0])
    panels = [deepcopy(chart.spec) for chart in charts]
    for panel, chart in zip(panels, charts, strict=True):
        panel |= {"width": width, "height": round(scale * panel["height"])}
        panel["title"] = shortened(chart.title, round(width / 7))
        panel["layer"] = [each for each in panel["layer"] if each.get("name") != "pointer"]
        if "spans" in panel.pop("usermeta", {}):
            ends = [param["value"] for param in panel["params"][1:]]
            panel["encoding"]["y"]["scale"]["domain"] = ends
        del panel["$schema"], panel["params"]
    in_a_line = legend_columns(_share_styles(panels), width * min(columns, len(panels)))
    legend = {**PICTURE_CONFIG["legend"], "orient": "bottom", "columns": in_a_line}
    spec = {
        "$schema": charts[0].spec["$schema"],
        "params": charts[0].spec["params"][:1],
        "concat": panels,
        "columns": columns,
        "spacing": 24,
        "config": {
            **PICTURE_CONFIG,
            "legend": legend,
        },
    }
    return vegalite_to_png(spec, scale=RESOLUTION)


def legend_columns(names: Sequence[str], width: float) -> int:
    """Return how many names stand in a line of a legend, so that all lines are about as full."""
    entry = SYMBOL + LETTER * max(map(len, names), default=0)
    lines = math.ceil(len(names) / max(1, width // entry))
    return math.ceil(len(names) / max(1, lines))


def _share_styles(panels: Sequence[Spec]) -> list[str]:
    """Tell all panels the styles of all runs, and return the names in their one legend."""
    channels = [
        (channel, entry)
        for panel in panels
        for each in panel["layer"]
        for channel, entry in each["encoding"].items()
        if channel in ("color", "strokeDash", "shape") and entry
    ]
    known: dict[str, dict[str, Any]] = {channel: {} for channel, _ in channels}
    for channel, entry in channels:
        scale = entry["scale"]
        known[channel] = dict(zip(scale["domain"], scale["range"], strict=True)) | known[channel]
    for channel, entry in channels:
        domain, values = list(known[channel]), list(known[channel].values())
        entry["scale"] |= {"domain": domain, "range": values}
        if channel == "strokeDash" and "shape" in known:
            # The legend would draw the outlines of its markers with these dashes. Vega-Lite joins
            # legends of equal domains, so a name that no run has keeps the dashes out of it.
            entry["scale"] |= {"domain": [*domain, ""], "range": [*values, DASHES["solid"]]}
            entry["legend"] = None
    return list(known.get("color", {}))
