"""The two tails of the paper's Figures 1a and 1b, from their formulas."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from freqsgd.report.figures import NO_BOX, figure
from freqsgd.report.log_axis import log_axis
from freqsgd.report.page import Chart
from freqsgd.report.style import Series, styles
from freqsgd.report.tables import plain_table

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["tail_charts"]

TOKENS = 50
TAU, NU = 0.2, 2.0  # as freqsgd theory has them
TAILS: dict[str, tuple[str, Callable[[int], float]]] = {
    "exponential": (f"exp(-{TAU:g} n)", lambda rank: math.exp(-TAU * rank)),
    "polynomial": (f"1 / n^{NU:g}", lambda rank: rank**-NU),
}


def tail_charts() -> Iterator[Chart]:
    """A chart per tail, of probabilities that sum to 1; nothing was measured."""
    ranks = range(1, TOKENS + 1)
    for family, (formula, weight) in TAILS.items():
        total = sum(map(weight, ranks))
        shares = [weight(rank) / total for rank in ranks]
        yield Chart(
            f"fig1-{family}",
            title=f"{family.capitalize()} tail, by its formula",
            figure=tail_figure(family, shares),
            description=f"Line chart of the frequency of {TOKENS} tokens, p in proportion to "
            f"{formula}: {shares[0]:.3g} at rank 1, {shares[-1]:.3g} at rank {TOKENS}.",
            note=f"Drawn from the formula, p in proportion to {formula}: no data.",
            data=plain_table(
                ["Rank", "p"],
                [[str(rank), f"{p:.3g}"] for rank, p in zip(ranks, shares, strict=True)],
            ),
        )


def tail_figure(family: str, shares: list[float]) -> Figure:
    """Frequency by rank; an exponential tail is straight where ranks are linear."""
    (style,) = styles([Series(family, family)])
    ranks = list(range(1, len(shares) + 1))
    kind = log_axis(ranks, whole=True) if family == "polynomial" else {"tickformat": "d"}
    trace = {
        "type": "scatter",
        "mode": "lines",
        "name": f"{family} tail",
        "meta": {"run": family},
        "x": ranks,
        "y": shares,
        "line": {"color": style.light, "dash": style.dash, "width": 2},
        "hovertemplate": f"rank %{{x}}<br>p = %{{y:.3~g}}{NO_BOX}",
    }
    return figure(
        [trace],
        hovermode="closest",
        xaxis={"title": {"text": "rank"}, "showgrid": False, **kind},
        yaxis={**log_axis(shares), "title": {"text": "p"}},
        meta={"height": 300},
    )
