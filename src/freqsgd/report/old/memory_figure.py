"""How much memory optimizers take, as a Plotly figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from freqsgd.report.old.figures import (
    NO_BOX,
    WIDE_SPREAD,
    figure,
    names_axis,
    plotly_text,
    vertical_line,
)
from freqsgd.report.old.results import Results, Run
from freqsgd.report.old.style import styles
from freqsgd.report.old.wording import size

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


@dataclass(frozen=True)
class Bar:
    """The state of one optimizer."""

    run: int  # its place on the page
    label: str
    state: float | None  # bytes
    colour: str

    @property
    def words(self) -> str:
        """How much it is."""
        return "not known" if self.state is None else size(self.state)


def state_words(run: Run) -> str:
    """How much state a run kept."""
    return "not known" if run.state_bytes is None else size(run.state_bytes)


def state_memory(results: Results) -> Figure | None:
    """Bytes of optimizer state, run by run."""
    bars = [
        Bar(place, run.label, run.state_bytes, style.light)
        for place, (run, style) in enumerate(zip(results.runs, styles(results.runs), strict=True))
    ]
    return memory_bars(bars, max((run.parameter_bytes or 0 for run in results.runs), default=0))


def memory_bars(bars: Sequence[Bar], weights: float) -> Figure | None:
    """Bytes beside those of the weights; the labels say them too, so that even none is seen."""
    known = [bar.state for bar in bars if bar.state is not None]
    if not known:
        return None
    held = [count for count in (*known, weights) if count > 0]
    logarithmic = bool(held) and max(held) > WIDE_SPREAD * min(held)
    return figure(
        [bar_trace(bar, row) for row, bar in enumerate(bars)],
        hovermode="closest",
        margin={"l": 56, "r": 16, "t": 28, "b": 32},
        xaxis={
            "type": "log" if logarithmic else "linear",
            "range": memory_range(held, logarithmic),
            "tickformat": "~s",
            "ticksuffix": "B",
            "nticks": 6,
            **({"dtick": 1} if logarithmic else {}),
        },
        yaxis=names_axis([f"<b>{plotly_text(bar.label)}</b><br>{bar.words}" for bar in bars]),
        shapes=[vertical_line(weights)] if weights else [],
        annotations=[weights_text(weights, logarithmic)] if weights else [],
        meta={"height": 110 + 52 * len(bars)},
    )


def bar_trace(bar: Bar, row: int) -> dict[str, Any]:
    """One bar."""
    return {
        "type": "bar",
        "orientation": "h",
        "name": plotly_text(bar.label),
        "meta": {"run": bar.run},
        "x": [bar.state],
        "y": [row],
        "width": 0.62,
        "marker": {"color": bar.colour, "line": {"width": 0}},
        "hovertemplate": f"<b>{plotly_text(bar.label)}</b> {bar.words}{NO_BOX}",
    }


def memory_range(held: Sequence[float], logarithmic: bool) -> list[float]:
    """From a tenth of the smallest, so that its bar can be seen, to a little beyond the largest."""
    if logarithmic:
        return [math.log10(min(held)) - 1, math.log10(max(held)) + 0.15]
    return [0, 1.1 * max(held, default=1)]


def weights_text(weights: float, logarithmic: bool) -> dict[str, Any]:
    """What the line stands for at which a bar of the weights would end."""
    return {
        "text": f"the model's weights: {size(weights)}",
        "yref": "paper",
        "x": math.log10(weights) if logarithmic else weights,
        "y": 1,
        "xanchor": "right",
        "yanchor": "bottom",
        "showarrow": False,
    }
