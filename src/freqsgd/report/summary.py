"""What the results say, in sentences that hold whatever the numbers are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from freqsgd.report.background import caveats, compared
from freqsgd.report.comparison import (
    Best,
    Metric,
    Standing,
    alike,
    best,
    best_standing,
    first_reaching,
    leaders,
    representative,
    standings,
)
from freqsgd.report.results import Epoch, Results, display_name
from freqsgd.report.seeds import over_seeds
from freqsgd.report.tuning import good_rates, tuned
from freqsgd.report.wording import (
    difference,
    duration,
    enumerate_words,
    score,
    size,
    small_number,
    times,
)

__all__ = ["Statement", "summarize"]


@dataclass(frozen=True)
class Statement:
    """Some sentences about one topic."""

    topic: str
    text: str


def summarize(results: Results, by: Metric) -> list[Statement]:
    """All that can be said of these results; topics without data are left out."""
    statements = {
        "Compared" if len(results.runs) > 1 else "Trained": compared(results),
        f"Best {by.name}": best_of_all(results, by),
        "CF-SGD and SGD": against_sgd(results, by),
        "CF-SGD and Adam": against_adam(results, by),
        "Test": on_test(results),
        "Over seeds": over_seeds(results),
        "Rare tokens": on_tail(results),
        "Tuned": tuned(results),
        "Good learning rates": good_rates(results),
        "Best possible": against_best_possible(results, by),
        "Read with care": caveats(results, by),
    }
    return [Statement(topic, text) for topic, text in statements.items() if text]


def when(epoch: Epoch) -> str:
    """The place of an epoch in its run."""
    words = f"in epoch {epoch.epoch}"
    return words if epoch.seconds is None else f"{words} after {duration(epoch.seconds)}"


def best_of_all(results: Results, by: Metric) -> str:
    """Who reached the best value, when, and how far from the next."""
    found = standings(results, by)
    first = leaders(found, by)
    if not first and results.splits.get("validation") == 0:
        return "There is no validation split, so there are no validation scores."
    if not first:
        return f"No run got as far as a {by.name}."
    word = "highest" if by.higher_is_better else "lowest"
    top = first[0]
    if len(first) > 1:
        names = enumerate_words(one.label for one in first)
        places = enumerate_words(f"{one.label} {reached(one)}" for one in first)
        return f"{names} share the {word} value, {score(top.value)}: {places}."
    sentence = f"{top.label} reached {score(top.value)} {reached(top)}"
    second = leaders([one for one in found if one is not top], by)
    if len(alike(results.runs)) == 1:
        return f"{sentence}."
    if not second:
        return f"{sentence}. No other run got as far as a {by.name}."
    names = enumerate_words(one.label for one in second)
    return f"{sentence}. Next is {names} with {score(second[0].value)}, {gap(second[0], top, by)}."


def reached(standing: Standing) -> str:
    """When it was at its best; of several seeds, that the value is their mean."""
    if standing.seeds == 1:
        return when(standing.middle.epoch)
    return f"on average over {small_number(standing.seeds)} seeds"


def gap(one: Best | Standing, other: Best | Standing, by: Metric) -> str:
    """How far one is from another, and on which side."""
    if one.value == other.value:
        return "the same"
    side = "better" if by.gain(one.value, other.value) > 0 else "worse"
    if by.higher_is_better:
        side = "higher" if side == "better" else "lower"
    return f"{difference(one.value, other.value)} {side}"


def against_sgd(results: Results, by: Metric) -> str:
    """Epochs and seconds until CF-SGD reached the best that SGD ever reached."""
    counting, plain = bests(results, "cfsgd", by), bests(results, "sgd", by)
    if counting is None or plain is None:
        return ""
    opening = f"{plain.run.label} was at its best, {score(plain.value)}, {when(plain.epoch)}."
    reached = first_reaching(counting.run, by, plain.value)
    if reached is None:
        return (
            f"{opening} {counting.run.label} did not get there in {counting.run.epochs[-1].epoch} "
            f"epochs: its best is {score(counting.value)}, {gap(counting, plain, by)}, "
            f"{when(counting.epoch)}."
        )
    costs = [
        times(reached.epoch, plain.epoch.epoch, "fewer epochs", "more epochs", "as many epochs")
    ]
    if reached.seconds is not None and plain.epoch.seconds is not None:
        costs.append(
            times(reached.seconds, plain.epoch.seconds, "less time", "more time", "as much time")
        )
    return f"{opening} {counting.run.label} got there {when(reached)}: {enumerate_words(costs)}."


def bests(results: Results, optimizer: str, by: Metric) -> Best | None:
    """The best that an optimizer reached."""
    run = representative(results, optimizer, by)
    return None if run is None else best(run, by)


def against_adam(results: Results, by: Metric) -> str:
    """The difference in quality, and what the state of each costs."""
    counting, adam = representative(results, "cfsgd", by), representative(results, "adam", by)
    if counting is None or adam is None:
        return ""
    sentences = []
    mine, theirs = best_standing(results, "cfsgd", by), best_standing(results, "adam", by)
    if mine is not None and theirs is not None:
        mean = "mean best" if max(mine.seeds, theirs.seeds) > 1 else "best"
        sentences.append(
            f"The {mean} {by.name} of {mine.label}, {score(mine.value)}, is "
            f"{gap(mine, theirs, by)}{' as' if mine.value == theirs.value else ' than'} "
            f"that of {theirs.label}, {score(theirs.value)}."
        )
    if counting.state_bytes is not None and adam.state_bytes is not None:
        share = times(counting.state_bytes, adam.state_bytes, "less", "more", "as much")
        names = display_name("cfsgd"), display_name("adam")
        sentences.append(
            f"Optimizer state: {names[0]} {size(counting.state_bytes)}, "
            f"{names[1]} {size(adam.state_bytes)}, so {names[0]} keeps {share}."
        )
    return " ".join(sentences)


def on_test(results: Results) -> str:
    """Test scores, of the weights that validation chose."""
    aucs = {run.label: run.test_auc for run in results.runs}
    if any(auc is not None for auc in aucs.values()):
        return ranked("AUC on the test samples", aucs, highest=True)
    losses = {run.label: run.test_loss for run in results.runs}
    if any(loss is not None for loss in losses.values()):
        return ranked("Loss on the test samples", losses, highest=False)
    without = (
        "There is no test split, so" if results.splits.get("test") == 0 else "In these results"
    )
    return f"{without} there are no test scores."


def on_tail(results: Results) -> str:
    """Scores on samples with a rare token."""
    tails = {run.label: run.test_auc_by_frequency.get("tail") for run in results.runs}
    if all(tail is None for tail in tails.values()):
        return ""
    return ranked("AUC on the test samples that hold a rare token", tails, highest=True)


def ranked(what: str, scores: Mapping[str, float | None], *, highest: bool) -> str:
    """All scores, best first, and who has none."""
    found = [(value, label) for label, value in scores.items() if value is not None]
    found.sort(key=lambda entry: entry[0], reverse=highest)
    missing = [label for label, value in scores.items() if value is None]
    listing = enumerate_words(f"{label} {score(value)}" for value, label in found)
    none = f" There is none for {enumerate_words(missing)}." if missing else ""
    return f"{what}: {listing}.{none}"


def against_best_possible(results: Results, by: Metric) -> str:
    """Generated data know what the best model would score."""
    limit = results.best_possible.get(by.key)
    first = leaders(standings(results, by), by)
    if limit is None or not first:
        return ""
    distance = first[0].value - limit
    side = "above" if distance > 0 else "below"
    where = f"{difference(first[0].value, limit)} {side} that" if distance else "exactly there"
    names = enumerate_words(f"{one.label}" for one in first)
    return (
        f"The labels were drawn from known probabilities, whose own {by.name} is {score(limit)}. "
        f"The best, {names}, is {where}."
    )
