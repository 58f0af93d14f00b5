"""What one-pass runs show, in sentences that hold whatever the numbers are."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import median

from freqsgd.report.old.memory_figure import state_words
from freqsgd.report.old.one_pass import BASELINE, OnePass, window_differences
from freqsgd.report.old.one_pass_background import caveats, rates, streamed
from freqsgd.report.old.page import Statement, Tile
from freqsgd.report.old.results import Run, display_name
from freqsgd.report.old.wording import (
    capitalized,
    count_of,
    enumerate_words,
    score,
    size,
    thousands,
    times,
)

MINUS = "\N{MINUS SIGN}"
MEANING = (
    "NE is the mean loss over that of always predicting the share of positive labels: "
    "less is better, 1 is no better than that."
)


def one_pass_words(found: OnePass) -> list[Statement]:
    """All that can be said of these runs; topics without data are left out."""
    base = found.baseline
    statements = {
        "Streamed": streamed(found),
        capitalized(found.ne_name): lowest(found),
        f"Against {base.label if base else BASELINE}": against_baseline(found),
        "While training": while_training(found),
        "Over the run": over_the_run(found),
        "Calibration": calibration(found),
        "Memory": memory(found),
        "Speed": speed(found),
        "Learning rates": rates(found),
        "Best possible": against_best_possible(found),
        "Read with care": caveats(found),
    }
    return [Statement(topic, text) for topic, text in statements.items() if text]


def ranking(found: OnePass) -> list[tuple[float, Run]]:
    """Runs by their NE, the lowest first."""
    known = [(ne, run) for run in found.runs if (ne := found.ne(run)) is not None]
    return sorted(known, key=lambda pair: pair[0])


def lowest(found: OnePass) -> str:
    """Who has the lowest NE, and how far the next is."""
    ranked = ranking(found)
    if not ranked:
        return "No run has an NE."
    ne, top = ranked[0]
    if len(found.runs) == 1:
        return f"{top.label} scores {ne_score(ne)}. {MEANING}"
    first = [run.label for each, run in ranked if each == ne]
    if len(first) > 1:
        return f"{enumerate_words(first)} share the lowest, {ne_score(ne)}. {MEANING}"
    sentence = f"{top.label} has the lowest, {ne_score(ne)}"
    others = [f"{run.label} {ne_score(each)}" for each, run in ranked[1:]]
    then = f"; then {enumerate_words(others)}" if others else ", and no other run has one"
    return f"{sentence}{then}. {MEANING}"


def against_baseline(found: OnePass) -> str:
    """The differences in percent, and against whom they are."""
    base = found.baseline
    if base is None:
        return ""
    told = [
        f"{run.label} {apart_words(apart)}"
        for run in found.runs
        if (apart := found.difference(run)) is not None
    ]
    told_of = f"The {found.ne_name} against that of {base.label}: {enumerate_words(told)}."
    if base.optimizer == BASELINE:
        return told_of
    name = display_name(BASELINE)
    why = "has no NE" if of_optimizer(found, BASELINE) else "is not among the runs"
    return f"{name} {why}, so differences are against {base.label}. {told_of}"


def while_training(found: OnePass) -> str:
    """The NE of every example before it was learned, if that is not what runs are compared by."""
    told = listed(found, lambda run: run.train_ne, ne_score) if found.is_evaluated else ""
    return f"NE of all examples, each scored before it was learned: {told}." if told else ""


def over_the_run(found: OnePass) -> str:
    """In how many windows runs were below the baseline."""
    base = found.baseline
    if base is None:
        return ""
    told = [
        f"{run.label} {windows_words(apart)}"
        for run in found.runs
        if run is not base and (apart := [each for _, each in window_differences(run, base)])
    ]
    if not told:
        return ""
    return f"NE below that of {base.label} on the same examples: {'; '.join(told)}."


def windows_words(apart: Sequence[float]) -> str:
    """How often a run was below the baseline, by how much, and by how much at the end."""
    below = sum(each < 0 for each in apart)
    end = apart[-math.ceil(len(apart) / 4) :]
    return (
        f"in {below} of {count_of(len(apart), 'window')} (median difference "
        f"{signed(median(apart))}%, in the last quarter {signed(median(end))}%)"
    )


def calibration(found: OnePass) -> str:
    """Positives predicted over positives seen."""
    told = listed(
        found,
        lambda run: run.test_calibration if found.is_evaluated else run.train_calibration,
        score,
    )
    where = "on the evaluation examples" if found.is_evaluated else "over the run"
    return f"Positives predicted over positives seen, {where} (1 is right): {told}." if told else ""


def memory(found: OnePass) -> str:
    """What each keeps beside the weights, and what it all took."""
    if all(run.state_bytes is None for run in found.runs):
        return ""
    weights = max(run.parameter_bytes or 0 for run in found.runs)
    beside = f"Beside {size(weights)} of weights" if weights else "Beside the weights"
    states = enumerate_words(f"{run.label} {state_words(run)}" for run in found.runs)
    peaks = [run.peak_memory_bytes for run in found.runs if run.peak_memory_bytes]
    peak = f" At its peak the whole process took {size(max(peaks))}." if peaks else ""
    return f"{beside} an optimizer keeps: {states}.{peak}"


def speed(found: OnePass) -> str:
    """How fast each was."""
    told = listed(found, lambda run: run.speed, thousands)
    return f"Examples per second, reading included: {told}." if told else ""


def listed(
    found: OnePass, value: Callable[[Run], float | None], show: Callable[[float], str]
) -> str:
    """A number of every run that has one."""
    known = ((run.label, value(run)) for run in found.runs)
    return enumerate_words(f"{label} {show(each)}" for label, each in known if each is not None)


def against_best_possible(found: OnePass) -> str:
    """Generated clicks know what the best model would score."""
    limit = found.results.best_possible.get("test_ne" if found.is_evaluated else "train_ne")
    ranked = ranking(found)
    if limit is None or not ranked or limit <= 0:
        return ""
    ne, top = ranked[0]
    apart = apart_words(100 * (ne - limit) / limit)
    return (
        f"Clicks were drawn from known probabilities, whose own {found.ne_name} is "
        f"{ne_score(limit)}. That of {top.label} is {apart}."
    )


def of_optimizer(found: OnePass, optimizer: str) -> Run | None:
    """The first run of an optimizer."""
    return next((run for run in found.runs if run.optimizer == optimizer), None)


def ne_score(ne: float) -> str:
    """An NE, to digits that show a difference of 0.01%."""
    return f"{ne:.5f}"


def signed(apart: float) -> str:
    """A difference in percent as a number with its sign."""
    return f"{apart:+.3f}".replace("-", MINUS)


def apart_words(apart: float) -> str:
    """A difference in percent on its side."""
    if apart == 0:
        return "the same"
    size_of = f"{abs(apart):.3f}%" if abs(apart) >= 0.0005 else "less than 0.001%"
    return f"{size_of} {'higher' if apart > 0 else 'lower'}"


def one_pass_tiles(found: OnePass) -> list[Tile]:
    """Tiles for what these runs hold, in order of importance."""
    tiles = (lowest_tile(found), difference_tile(found), state_tile(found), speed_tile(found))
    return [tile for tile in tiles if tile is not None]


def lowest_tile(found: OnePass) -> Tile | None:
    """The lowest NE, and whose it is."""
    ranked = ranking(found)
    if not ranked:
        return None
    first = [run.label for ne, run in ranked if ne == ranked[0][0]]
    note = enumerate_words(first)
    if len(first) < len(ranked):
        ne, run = ranked[len(first)]
        note += f"; then {run.label} with {ne_score(ne)}"
    return Tile(f"Lowest {found.ne_name}", ne_score(ranked[0][0]), note)


def difference_tile(found: OnePass) -> Tile | None:
    """How far CF-SGD is from the baseline."""
    counting, base = of_optimizer(found, "cfsgd"), found.baseline
    apart = None if counting is None else found.difference(counting)
    if counting is None or base is None or apart is None:
        return None
    title = f"{counting.label} against {base.label}, {found.ne_name}"
    nes = (ne_score(found.ne(run) or 0.0) for run in (counting, base))
    return Tile(title, f"{signed(apart)}%", f"{' against '.join(nes)}; below 0 is better")


def state_tile(found: OnePass) -> Tile | None:
    """What CF-SGD keeps, beside what the baseline does."""
    counting, base = of_optimizer(found, "cfsgd"), found.baseline
    if counting is None or counting.state_bytes is None:
        return None
    note = ""
    if base is not None and base is not counting and base.state_bytes:
        share = times(counting.state_bytes, base.state_bytes, "less", "more", "as much")
        note = f"{share}: {base.label} keeps {size(base.state_bytes)}"
    elif counting.parameter_bytes:
        note = f"for {size(counting.parameter_bytes)} of weights"
    return Tile(f"Optimizer state of {counting.label}", size(counting.state_bytes), note)


def speed_tile(found: OnePass) -> Tile | None:
    """How fast CF-SGD, or else the first run, went through the stream."""
    run = of_optimizer(found, "cfsgd") or found.runs[0]
    if run.speed is None:
        return None
    learned = "" if run.examples is None else f"{thousands(run.examples)} in all; "
    return Tile(f"Examples/s of {run.label}", thousands(run.speed), f"{learned}reading included")
