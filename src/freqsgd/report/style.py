"""One colour, dash and marker per run, the same in every chart."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from freqsgd.report.results import Run

__all__ = ["Style", "styles"]

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


def styles(runs: tuple[Run, ...]) -> list[Style]:
    """The styles of runs: a colour per optimizer, other dashes for its second and third run."""
    known = list(COLOURS)
    strangers = [name for name in dict.fromkeys(run.optimizer for run in runs) if name not in known]
    used = {run.optimizer for run in runs}
    spare = [name for name in known if name not in used] or known
    seen: Counter[str] = Counter()
    found = []
    for run in runs:
        own = run.optimizer
        if own in strangers:
            own = spare[strangers.index(own) % len(spare)]
        place = (known.index(own) + seen[own]) % len(DASHES)
        seen[own] += 1
        light, dark = COLOURS[own]
        found.append(Style(light, dark, DASHES[place], MARKERS[place]))
    return found
