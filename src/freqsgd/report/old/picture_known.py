"""What of Plotly's language our pictures can draw; the rest is refused, never left out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import unescape
from typing import Any

ANY = None  # whatever the value is: it is drawn, or it only matters to a page
HOVER = {"hovertemplate": ANY, "hoverinfo": ANY, "customdata": ANY}
COMMON = {"type": ("scatter", "bar"), "name": ANY, "meta": ANY, "x": ANY, "y": ANY, **HOVER}
TRACES: dict[str, dict[str, Any]] = {
    "scatter": {
        **COMMON,
        "mode": ("lines", "markers", "lines+markers", "lines+markers+text"),
        "opacity": ANY,
        "text": ANY,
        "textposition": ("middle left",),
        "line": {"color": ANY, "dash": ANY, "width": ANY, "shape": ("linear", "hv")},
        "marker": {
            "color": ANY,
            "symbol": ANY,
            "size": ANY,
            "opacity": ANY,
            "line": {"width": (0,)},
        },
        "error_y": {
            "type": ("data",),
            "symmetric": (False,),
            "array": ANY,
            "arrayminus": ANY,
            "thickness": ANY,
            "width": (0,),
            "color": ANY,
        },
    },
    "bar": {
        **COMMON,
        "orientation": ("h", "v"),
        "width": ANY,
        "marker": {"color": ANY, "line": {"width": (0,)}},
        "texttemplate": ANY,
        "textangle": (-90,),
        "textposition": ("inside",),
        "insidetextanchor": ("end",),
    },
}
AXIS = {
    "type": ("linear", "log", "category"),
    "title": {"text": ANY},
    "range": ANY,
    "tickvals": ANY,
    "ticktext": ANY,
    "tickformat": ("", "d", ".2f", "~s"),
    "ticksuffix": ANY,
    "exponentformat": ("power",),
    "dtick": (1,),
    "nticks": ANY,
    "showgrid": (True, False),
    "zeroline": (False,),
    "showline": (False,),
    "automargin": ANY,
}
PLACE = {"xref": ("paper",), "yref": ("paper",)}
ENDS = {"x0": ANY, "x1": ANY, "y0": ANY, "y1": ANY}
LAYOUT = {
    "xaxis": AXIS,
    "yaxis": AXIS,
    "shapes": {"type": ("line",), **PLACE, **ENDS, "line": {"width": ANY, "dash": ANY}},
    "annotations": {
        "text": ANY,
        **PLACE,
        "x": ANY,
        "y": ANY,
        "xanchor": ("left", "center", "right"),
        "yanchor": ("top", "middle", "bottom"),
        "showarrow": (False,),
    },
    "barmode": ("group",),
    "bargap": ANY,
    "bargroupgap": ANY,
    "uniformtext": {"mode": ("hide",), "minsize": ANY},
    "showlegend": (False,),  # the page has one; a picture gets its own
    **dict.fromkeys(
        ("template", "margin", "paper_bgcolor", "plot_bgcolor", "hovermode", "meta"), ANY
    ),
}


def check_known(figure: Mapping[str, Any]) -> None:
    """Raise ``NotImplementedError`` for what a picture would leave out."""
    unknown = list(strangers(figure["layout"], LAYOUT, "layout"))
    for place, trace in enumerate(figure["data"]):
        kind = trace.get("type", "scatter")
        if kind not in TRACES:
            unknown.append(f"data[{place}].type = {kind!r}")
        else:
            unknown += strangers(trace, TRACES[kind], f"data[{place}]")
    if unknown:
        raise NotImplementedError(
            f"pictures cannot draw {', '.join(unknown)}: teach freqsgd.report.old.picture"
        )


def strangers(value: Any, known: Any, where: str) -> Iterator[str]:
    """Where ``value`` has a key or a choice that is not known."""
    if known is ANY:
        return
    if isinstance(value, list | tuple) and isinstance(known, dict):
        for place, entry in enumerate(value):
            yield from strangers(entry, known, f"{where}[{place}]")
    elif isinstance(known, dict):
        for key, entry in value.items():
            if key not in known:
                yield f"{where}.{key}"
            else:
                yield from strangers(entry, known[key], f"{where}.{key}")
    elif value not in known:
        yield f"{where} = {value!r}"


def plain_text(markup: str) -> str:
    """The text of Plotly's small HTML: lines, no bold type."""
    return unescape(re.sub(r"</?b>", "", markup.replace("<br>", "\n")))
