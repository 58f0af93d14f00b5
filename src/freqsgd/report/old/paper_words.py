"""What all figures together show: the numbers and sentences that come first."""

from __future__ import annotations

from collections.abc import Iterator

from freqsgd.documents.paper import VERDICTS, PaperFigure
from freqsgd.report.old.comparison import ranked
from freqsgd.report.old.headline import reach, reach_tile, state_tile
from freqsgd.report.old.kinds import kind_of
from freqsgd.report.old.one_pass_words import against_baseline
from freqsgd.report.old.page import Statement, Tile
from freqsgd.report.old.paper import LEARNING, Paper
from freqsgd.report.old.paper_here import states
from freqsgd.report.old.summary import against_adam
from freqsgd.report.old.wording import (
    capitalized,
    count_of,
    duration,
    enumerate_words,
)

TITLE = "Frequency-aware SGD: the paper's figures, measured here"
MAIN = "ml-fm"  # the run that speaks for all
COUNTED = {
    "agrees": "agree",
    "agrees in part": "agree in part",
    "differs": "differ",
    "not measured": "could not be measured",
}
ENDED = "done"


def of_verdict(paper: Paper, verdict: str) -> list[PaperFigure]:
    """The figures with a verdict."""
    return [figure for figure in paper.figures if figure.verdict == verdict]


def headline(paper: Paper) -> list[Tile]:
    """Tiles for what is known."""
    tiles = [agreement_tile(paper)]
    results = paper.results(MAIN)
    if results is not None:
        kind, run = kind_of(results), paper.runs[MAIN]
        for tile in (reach_tile(results, kind), state_tile(results, kind.outcome)):
            if tile is not None:
                tiles.append(Tile(tile.title, tile.value, f"{tile.note} ({run.label})"))
    return [*tiles, *mode_tile(paper)]


def agreement_tile(paper: Paper) -> Tile:
    """How many figures agree."""
    others = [
        f"{len(found)} {words}"
        for verdict, words in COUNTED.items()
        if verdict != "agrees" and (found := of_verdict(paper, verdict))
    ]
    count = len(of_verdict(paper, "agrees"))
    return Tile(
        "Figures and tables that agree", f"{count} of {len(paper.figures)}", enumerate_words(others)
    )


def mode_tile(paper: Paper) -> Iterator[Tile]:
    """How much was done, and how long that took."""
    if paper.mode is not None:
        ended = sum(run.status == ENDED for run in paper.runs.values())
        took = "" if paper.seconds is None else f" in {duration(paper.seconds)}"
        runs = count_of(len(paper.runs), "run")
        yield Tile("Sizes", capitalized(paper.mode), f"{ended} of {runs} done{took}")


def summarize(paper: Paper) -> list[Statement]:
    """All that can be said; topics without data are left out."""
    statements = {
        "Compared": compared(paper),
        "Against SGD": sooner(paper),
        "Against Adam": against_adam_words(paper),
        "Memory": capitalized(states(paper, MAIN)),
        "One pass": one_pass(paper),
        "Word vectors": " ".join(word_vectors(paper)),
        "Agreement": " ".join(agreement(paper)),
        "Read with care": " ".join(filter(None, (generated(paper), quick(paper)))),
        "Cut short": " ".join(cut_short(paper)),
        "Missing": " ".join(missing(paper)),
    }
    return [Statement(topic, words) for topic, words in statements.items() if words]


def compared(paper: Paper) -> str:
    """What was compared on what."""
    there = [run for run in paper.runs.values() if run.document is not None]
    if not there:
        return "Nothing has been run yet."
    return (
        "CF-SGD, which divides a token's learning rate by the root of how often it was seen, "
        f"with SGD, Adagrad and Adam. {extent(paper)} below, with what the paper says and what "
        f"{count_of(len(there), 'run')} measured."
    )


def extent(paper: Paper) -> str:
    """How much of the paper is on the page."""
    if not paper.left_out:
        return "Every figure and table of the paper is"
    verb = "is" if len(paper.figures) == 1 else "are"
    return f"{enumerate_words(figure.number for figure in paper.figures)} {verb}"


def agreement(paper: Paper) -> Iterator[str]:
    """Which figures came out how."""
    for verdict in VERDICTS:
        found = of_verdict(paper, verdict)
        if found:
            names = "; ".join(told(figure) for figure in found)
            yield f"{capitalized(COUNTED[verdict])}: {len(found)} ({names})."


def told(figure: PaperFigure) -> str:
    """A figure's number; on generated data it is said to be that."""
    return f"{figure.number}, on generated data" if figure.is_on_stand_in else figure.number


def sooner(paper: Paper) -> str:
    """In which epoch CF-SGD was as good as SGD ever was, wherever both learned."""
    told = []
    for run in LEARNING:
        results = paper.results(run)
        found = None if results is None else reach(results, kind_of(results))
        if found is not None:
            when = "never" if found.epoch is None else f"in epoch {found.epoch.epoch}"
            least = "" if found.is_fair else "at least "
            told.append(f"{paper.runs[run].label} {when} (SGD {least}{found.plain.epoch.epoch})")
    first = "As good as SGD at its best, by validation AUC, CF-SGD was: "
    return f"{first}{enumerate_words(told)}." if told else ""


def against_adam_words(paper: Paper) -> str:
    """The run that speaks for all, beside Adam."""
    results = paper.results(MAIN)
    if results is None:
        return ""
    words = against_adam(results, kind_of(results).outcome)
    return f"{paper.runs[MAIN].label}: {words}" if words else ""


def one_pass(paper: Paper) -> str:
    """The NE of optimizers over a stream."""
    found = paper.one_pass("clicks")
    if found is None:
        return ""
    return f"{capitalized(paper.runs['clicks'].label)}: {against_baseline(found)}"


def word_vectors(paper: Paper) -> Iterator[str]:
    """The test losses of text models."""
    for run in ("cbow", "skipgram"):
        results = paper.results(run)
        if results is not None:
            yield ranked(f"{paper.runs[run].label}, test loss", results, kind_of(results).test)


def generated(paper: Paper) -> str:
    """Where data stand in for those of the paper."""
    found = [figure.number for figure in paper.figures if figure.is_on_stand_in]
    if not found:
        return ""
    return (
        f"Generated data stand in for those of the paper in {enumerate_words(found)}: the verdicts "
        "there are on the method, not on the paper's data."
    )


def quick(paper: Paper) -> str:
    """What is smaller than in the paper."""
    smaller = sum(bool(run.smaller) for run in paper.runs.values() if run.document is not None)
    if not smaller:
        return ""
    verb = "is" if smaller == 1 else "are"
    larger = "; --full has larger ones" if paper.mode == "quick" else ""
    return (
        f"{count_of(smaller, 'run')} {verb} smaller than in the paper, as is said under each "
        f"figure{larger}."
    )


def cut_short(paper: Paper) -> Iterator[str]:
    """Runs that did not end as they should, but left something."""
    for run in paper.runs.values():
        if run.document is not None and run.status != ENDED:
            yield f"{capitalized(run.label)} ({run.status}){why(run.why)}."


def missing(paper: Paper) -> Iterator[str]:
    """Runs of which there is nothing, and how to get it."""
    for run in paper.runs.values():
        if run.document is None:
            yield f"{capitalized(run.label)} ({run.status}){why(run.why)}."


def why(words: str) -> str:
    """A reason, as the end of a sentence."""
    return f": {words.rstrip('.')}" if words else ""
