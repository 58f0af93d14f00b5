"""What one-pass runs show, in tiles and sentences that hold whatever the numbers are."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from freqsgd.report.background import count_words
from freqsgd.report.data_words import model_words
from freqsgd.report.headline import Tile
from freqsgd.report.memory_figure import state_words
from freqsgd.report.one_pass import BASELINE, OnePass, Streamed, window_differences
from freqsgd.report.results import display_name
from freqsgd.report.summary import Statement
from freqsgd.report.wording import (
    count_of,
    enumerate_words,
    named,
    score,
    size,
    small_number,
    thousands,
    times,
)

__all__ = ["apart_words", "ne_score", "one_pass_tiles", "one_pass_words", "signed"]

MINUS = "\N{MINUS SIGN}"


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
    """The few numbers that a reader sees first."""
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
    if counting is None or counting.run.state_bytes is None:
        return None
    note = ""
    if base is not None and base is not counting and base.run.state_bytes:
        share = times(counting.run.state_bytes, base.run.state_bytes, "less", "more", "as much")
        note = f"{share}: {base.label} keeps {size(base.run.state_bytes)}"
    elif counting.run.parameter_bytes:
        note = f"for {size(counting.run.parameter_bytes)} of weights"
    return Tile(f"Optimizer state of {counting.label}", size(counting.run.state_bytes), note)


def speed_tile(found: OnePass) -> Tile | None:
    """How fast CF-SGD, or else the first run, went through the stream."""
    run = of_optimizer(found, "cfsgd") or found.runs[0]
    if run.run.speed is None:
        return None
    learned = "" if run.run.examples is None else f"{thousands(run.run.examples)} in all; "
    return Tile(
        f"Examples/s of {run.label}", thousands(run.run.speed), f"{learned}reading included"
    )


def of_optimizer(found: OnePass, optimizer: str) -> Streamed | None:
    """The first run of an optimizer."""
    return next((run for run in found.runs if run.run.optimizer == optimizer), None)


def one_pass_words(found: OnePass) -> list[Statement]:
    """All that can be said of these runs; topics without data are left out."""
    statements = {
        "Streamed": streamed(found),
        found.ne_name[:1].upper() + found.ne_name[1:]: lowest(found),
        f"Against {display_name(BASELINE)}": against_baseline(found),
        "Over the run": over_the_run(found),
        "Calibration": calibration(found),
        "Memory": memory(found),
        "Speed": speed(found),
        "Learning rates": rates(found),
        "Best possible": against_best_possible(found),
        "Read with care": caveats(found),
    }
    return [Statement(topic, text) for topic, text in statements.items() if text]


def streamed(found: OnePass) -> str:
    """Which optimizers, which model, which stream."""
    results = found.results
    what = (
        f"{model_words(results.model)} in one pass over {results.dataset.get('name', 'a stream')}"
    )
    if len(found.runs) == 1:
        opening = f"{found.runs[0].label} trained {what}."
    else:
        who = enumerate_words(run.label for run in found.runs)
        opening = f"{count_words(results).capitalize()} trained {what}: {who}."
    return " ".join(filter(None, (opening, examples_words(found), tables_words(found))))


def examples_words(found: OnePass) -> str:
    """How many examples there are of what, and how they were learned."""
    results = found.results
    days = results.dataset.get("days")
    of_days = f" of {count_of(len(days), 'day')}" if isinstance(days, list) and days else ""
    train = results.splits.get("train") or max(run.run.examples or 0 for run in found.runs)
    batches = {run.run.settings.get("batch_size") for run in found.runs}
    size_of = next(iter(batches))
    batch = f" of {thousands(size_of)}" if len(batches) == 1 and isinstance(size_of, int) else ""
    if not train:
        return ""
    test = results.splits.get("test")
    kept = f"; {thousands(test)} at the end were kept for evaluation" if test else ""
    return (
        f"Of a stream{of_days}, {thousands(train)} examples were learned once, in batches{batch}, "
        f"each batch scored before it was learned{kept}."
    )


def tables_words(found: OnePass) -> str:
    """How many features there are, and how large their tables."""
    fields, tokens = (found.results.dataset.get(key) for key in ("fields", "tokens"))
    if not isinstance(fields, int) or not isinstance(tokens, int):
        return ""
    hashed = found.results.dataset.get("encoding") == "hash"
    filled = ", to which tokens are hashed" if hashed else ""
    return (
        f"An example has {count_of(fields, 'feature')}; "
        f"their tables have {count_of(tokens, 'row')}{filled}."
    )


def ranking(found: OnePass) -> list[tuple[float, Streamed]]:
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


MEANING = (
    "NE is the mean loss over the entropy of the share of clicks: "
    "1 is what one and the same guess for all examples scores, less is better."
)


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
    if base.run.optimizer == BASELINE:
        return told_of
    name = display_name(BASELINE)
    why = "has no NE" if of_optimizer(found, BASELINE) else "is not among the runs"
    return f"{name} {why}, so differences are against {base.label}. {told_of}"


def over_the_run(found: OnePass) -> str:
    """In how many windows runs were below the baseline."""
    base = found.baseline
    told = []
    for run in found.runs if base else ():
        if base is None or run is base:
            continue
        apart = [each for _, each in window_differences(run, base)]
        if apart:
            below = sum(each < 0 for each in apart)
            told.append(
                f"{run.label} in {below} of {count_of(len(apart), 'window')} "
                f"(median difference {signed(median(apart))}%)"
            )
    if base is None or not told:
        return ""
    return f"NE below that of {base.label} on the same examples: {'; '.join(told)}."


def calibration(found: OnePass) -> str:
    """Clicks predicted over clicks seen."""
    told = listed(
        found, lambda run: (run.test if found.is_evaluated else run.train).calibration, score
    )
    where = "on the evaluation examples" if found.is_evaluated else "over the run"
    return f"Clicks predicted over clicks seen, {where} (1 is right): {told}." if told else ""


def memory(found: OnePass) -> str:
    """What each keeps beside the weights, and what it all took."""
    if all(run.run.state_bytes is None for run in found.runs):
        return ""
    weights = max(run.run.parameter_bytes or 0 for run in found.runs)
    beside = f"Beside {size(weights)} of weights" if weights else "Beside the weights"
    states = enumerate_words(f"{run.label} {state_words(run.run)}" for run in found.runs)
    peaks = [run.peak_memory for run in found.runs if run.peak_memory]
    peak = f" At its peak the whole process took {size(max(peaks))}." if peaks else ""
    return f"{beside} an optimizer keeps: {states}.{peak}"


def speed(found: OnePass) -> str:
    """How fast each was."""
    told = listed(found, lambda run: run.run.speed, thousands)
    return f"Examples per second, reading included: {told}." if told else ""


def listed(
    found: OnePass, value: Callable[[Streamed], float | None], show: Callable[[float], str]
) -> str:
    """A number of every run that has one."""
    known = ((run.label, value(run)) for run in found.runs)
    return enumerate_words(f"{label} {show(each)}" for label, each in known if each is not None)


def rates(found: OnePass) -> str:
    """How rates were chosen, where a better one may lie, and which diverged."""
    searched = [run for run in found.runs if len(run.tried) > 1]
    if not searched:
        return ""
    counts = {len(run.tried) for run in searched}
    tried = f"{small_number(counts.pop())} rates" if len(counts) == 1 else "its rates"
    sentences = [
        f"Each optimizer is shown at the best of {tried}: the one of lowest NE while training; "
        "the evaluation examples play no part."
    ]
    edges = [f"{run.label} ({edge_words(run)})" for run in searched if run.at_edge]
    if edges:
        sentences.append(
            f"The best lies at the end of what was tried, and a better one may lie beyond, "
            f"for {enumerate_words(edges)}."
        )
    failed = [
        f"{run.label} at {one.lr:.3g}"
        for run in searched
        for one in run.tried
        if one.train_ne is None
    ]
    if failed:
        sentences.append(f"Without a result, as when a run diverges: {enumerate_words(failed)}.")
    return " ".join(sentences)


def edge_words(run: Streamed) -> str:
    """At which end of the rates the best one is."""
    lr = run.run.settings.get("lr")
    end = "smallest" if lr == run.tried[0].lr else "largest"
    return f"the {end}, {lr:.3g}" if isinstance(lr, int | float) else f"the {end}"


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


def caveats(found: OnePass) -> str:
    """What limits what the numbers can show."""
    sentences = [sentence for run in found.runs if (sentence := ending(run))]
    dropped = max(run.dropped or 0 for run in found.runs)
    if dropped:
        sentences.append(f"{count_of(dropped, 'malformed row')} were left out.")
    skipped = list(dict.fromkeys(file for run in found.runs for file in run.skipped))
    if skipped:
        sentences.append(f"Left out: {named(skipped)}.")
    if len(found.runs) > 1:
        sentences.append(
            "Each optimizer ran once at the rate shown: the same examples in the same order, "
            "but other starts would end a little apart."
        )
    return " ".join(sentences)


def ending(run: Streamed) -> str:
    """What is unusual about how a run ended."""
    seen = run.run.examples or (run.windows[-1].examples if run.windows else 0)
    so_far = f"after {count_of(seen, 'example')}" if seen else "at its start"
    if run.run.stopped == "diverged":
        reason = f": {run.run.error.rstrip('.')}" if run.run.error else ""
        return f"{run.label} diverged {so_far}{reason}."
    if run.run.stopped == "interrupted":
        return f"{run.label} was interrupted {so_far}."
    return ""
