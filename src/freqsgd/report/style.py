"""One colour, dash and marker per run or other series, the same in every chart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Drawn", "Series", "Style", "styles"]

# After Okabe and Ito's colours for the colour-blind, with their lightness moved so that each stands
# out from the page at least 3 : 1 and from the others also without red, green or blue.
COLOURS = {  # optimizer: on white, on black
    "cfsgd": ("#d55e00", "#f0803c"),
    "adam": ("#0072b2", "#56b4e9"),
    "adagrad": ("#009070", "#14a37c"),
    "sgd": ("#4d5561", "#9aa2ae"),
    "fasgd": ("#6b4a00", "#ffc53a"),
    "rowwise-adagrad": ("#c2649a", "#f1c3dc"),
}
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
MARKERS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "pentagon")


@dataclass(frozen=True)
class Style:
    """How one run is drawn."""

    light: str
    dark: str
    dash: str
    marker: str


TOKEN_STYLES = {  # of charts that show no optimizer
    "counted": Style(*COLOURS["sgd"], "solid", "circle"),
    "exponential": Style(*COLOURS["adam"], "dash", "square"),
    "polynomial": Style(*COLOURS["cfsgd"], "dot", "diamond"),
}


class Drawn(Protocol):
    """What has a style: a run, or something else that is drawn."""

    @property
    def optimizer(self) -> str:
        """What the colour stands for."""

    @property
    def label(self) -> str:
        """Its name in the legend."""


@dataclass(frozen=True)
class Series:
    """Something that is drawn and is no run."""

    optimizer: str
    label: str


def styles(runs: Sequence[Drawn]) -> list[Style]:
    """The styles of runs: a colour per optimizer, other dashes for its second and third run."""
    known = list(COLOURS)
    strangers = [
        name
        for name in dict.fromkeys(run.optimizer for run in runs)
        if name not in known and name not in TOKEN_STYLES
    ]
    used = {run.optimizer for run in runs}
    spare = [name for name in known if name not in used] or known
    seen: Counter[str] = Counter()
    found = []
    for run in runs:
        own = run.optimizer
        if own in TOKEN_STYLES:
            found.append(TOKEN_STYLES[own])
            continue
        if own in strangers:
            own = spare[strangers.index(own) % len(spare)]
        place = (known.index(own) + seen[own]) % len(DASHES)
        seen[own] += 1
        light, dark = COLOURS[own]
        found.append(Style(light, dark, DASHES[place], MARKERS[place]))
    return found
