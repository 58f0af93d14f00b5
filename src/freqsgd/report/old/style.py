"""One colour, dash and marker per run or other series, the same in every chart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from freqsgd.optimizers import OPTIMIZERS, Style

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
MARKERS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "pentagon")
STYLES = {
    name: style
    for dash in DASHES
    for name, facts in OPTIMIZERS.items()
    if (style := facts.style) is not None and style.dash == dash
}
TOKEN_STYLES = {  # of charts that show no optimizer
    "counted": replace(STYLES["sgd"], dash="solid", marker="circle"),
    "exponential": replace(STYLES["adam"], dash="dash", marker="square"),
    "polynomial": replace(STYLES["cfsgd"], dash="dot", marker="diamond"),
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
    known = list(STYLES)
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
        place = (DASHES.index(STYLES[own].dash) + seen[own]) % len(DASHES)
        seen[own] += 1
        found.append(replace(STYLES[own], dash=DASHES[place], marker=MARKERS[place]))
    return found
