"""What the results say, in sentences that hold whatever the numbers are."""

from __future__ import annotations

from freqsgd.report.old.background import caveats, compared
from freqsgd.report.old.comparison import (
    Standing,
    alike,
    best_standing,
    leaders,
    ranked,
    representative,
    standings,
)
from freqsgd.report.old.frequency import against_sgd as classes_against_sgd
from freqsgd.report.old.headline import reach
from freqsgd.report.old.kinds import Kind
from freqsgd.report.old.measures import Best, Breakdown, Measure, best, optimum
from freqsgd.report.old.page import Statement
from freqsgd.report.old.results import Epoch, Results, display_name
from freqsgd.report.old.similarity import similarity_words
from freqsgd.report.old.tuning import good_rates, tuned
from freqsgd.report.old.wording import (
    capitalized,
    difference,
    duration,
    enumerate_words,
    score,
    size,
    small_number,
    times,
)


def summarize(results: Results, kind: Kind) -> list[Statement]:
    """All that can be said of these results; topics without data are left out."""
    statements = {
        "Compared" if len(results.runs) > 1 else "Trained": compared(results, kind),
        capitalized(kind.kept.name): best_of_all(results, kind),
        "CF-SGD and SGD": against_sgd(results, kind),
        "CF-SGD and Adam": against_adam(results, kind.outcome),
        "Test": on_test(results, kind),
        **{each.topic: on_tail(results, kind, each) for each in kind.breakdowns},
        "Word similarity": similarity_words(results),
        "Tuned": tuned(results),
        "Good learning rates": good_rates(results),
        "Best possible": against_best_possible(results, kind),
        "Read with care": caveats(results, kind.by),
    }
    return [Statement(topic, text) for topic, text in statements.items() if text]


def when(epoch: Epoch) -> str:
    """The place of an epoch in its run."""
    words = f"in epoch {epoch.epoch}"
    return words if epoch.seconds is None else f"{words} after {duration(epoch.seconds)}"


def best_of_all(results: Results, kind: Kind) -> str:
    """Who reached the best value, when, and how far from the next."""
    found = standings(results, kind.kept)
    first = leaders(found, kind.kept)
    if not first and results.splits.get("validation") == 0:
        return "There is no validation split, so there are no validation scores."
    if not first:
        return f"No run got as far as a {kind.by.name}."
    word = "highest" if kind.by.higher_is_better else "lowest"
    top = first[0]
    if len(first) > 1:
        names = enumerate_words(one.label for one in first)
        places = enumerate_words(f"{one.label} {reached(one, kind)}" for one in first)
        return f"{names} share the {word} value, {score(top.value)}: {places}."
    sentence = f"{top.label} reached {score(top.value)} {reached(top, kind)}"
    second = leaders([one for one in found if one is not top], kind.kept)
    if len(alike(results.runs)) == 1:
        return f"{sentence}."
    if not second:
        return f"{sentence}. No other run got as far as a {kind.by.name}."
    names = enumerate_words(one.label for one in second)
    return f"{sentence}. Next is {names} with {score(second[0].value)}, {gap(second[0], top)}."


def reached(standing: Standing, kind: Kind) -> str:
    """When it was at its best; of several seeds, that the value is their mean."""
    found = best(standing.middle, kind.by)
    if standing.seeds == 1 and found is not None:
        return when(found.epoch)
    return f"on average over {small_number(standing.seeds)} seeds"


def gap(one: Best | Standing, other: Best | Standing) -> str:
    """How far one is from another, and on which side."""
    if one.value == other.value:
        return "the same"
    side = "higher" if one.value > other.value else "lower"
    return f"{difference(one.value, other.value)} {side}"


def against_sgd(results: Results, kind: Kind) -> str:
    """Epochs and seconds until CF-SGD reached what SGD reached."""
    found = reach(results, kind)
    if found is None:
        return ""
    counting, plain, reached = found.counting, found.plain, found.epoch
    opening = f"{plain.run.label} {level(plain, kind)} {when(plain.epoch)}."
    if reached is None:
        nearest = optimum(counting.run, kind.by) or counting
        return (
            f"{opening} {counting.run.label} did not get there in {counting.run.epochs[-1].epoch} "
            f"epochs: its best is {score(nearest.value)}, {gap(nearest, plain)}, "
            f"{when(nearest.epoch)}."
        )
    if not found.is_fair:
        return f"{opening} {counting.run.label} got there {when(reached)}."
    costs = [
        times(reached.epoch, plain.epoch.epoch, "fewer epochs", "more epochs", "as many epochs")
    ]
    if reached.seconds is not None and plain.epoch.seconds is not None:
        costs.append(
            times(reached.seconds, plain.epoch.seconds, "less time", "more time", "as much time")
        )
    return f"{opening} {counting.run.label} got there {when(reached)}: {enumerate_words(costs)}."


def level(found: Best, kind: Kind) -> str:
    """What a run reached; the epoch that was kept need not be its best."""
    top = optimum(found.run, kind.by)
    if top is None or top.value == found.value:
        return f"reached its best {kind.by.name}, {score(found.value)},"
    return f"ended with a {kind.by.name} of {score(found.value)}"


def against_adam(results: Results, by: Measure) -> str:
    """The difference in quality, and what the state of each costs."""
    counting, adam = representative(results, "cfsgd", by), representative(results, "adam", by)
    if counting is None or adam is None:
        return ""
    sentences = []
    mine, theirs = best_standing(results, "cfsgd", by), best_standing(results, "adam", by)
    if mine is not None and theirs is not None:
        mean = "mean " if max(mine.seeds, theirs.seeds) > 1 else ""
        sentences.append(
            f"The {mean}{by.name} of {mine.label}, {score(mine.value)}, is "
            f"{gap(mine, theirs)}{' as' if mine.value == theirs.value else ' than'} "
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


def on_test(results: Results, kind: Kind) -> str:
    """Test scores, of the weights that were kept."""
    what = capitalized(kind.test.name.removeprefix("test "))
    if told := ranked(f"{what} on the {kind.test_data}", results, kind.test):
        return f"{told} {kind.guess}".rstrip()
    without = (
        "There is no test split, so" if results.splits.get("test") == 0 else "In these results"
    )
    return f"{without} there are no test scores."


def on_tail(results: Results, kind: Kind, breakdown: Breakdown) -> str:
    """Scores where tokens are rare, and what they are against those of SGD."""
    what = f"{capitalized(breakdown.score)} {breakdown.of_tail}"
    told = ranked(what, results, breakdown.measure("tail"))
    return f"{told} {classes_against_sgd(results, kind, breakdown)}".strip()


def against_best_possible(results: Results, kind: Kind) -> str:
    """Generated data know what the best model would score."""
    limit = results.best_possible.get(kind.by.key)
    first = leaders(standings(results, kind.kept), kind.kept)
    if limit is None or not first:
        return ""
    distance = first[0].value - limit
    side = "above" if distance > 0 else "below"
    where = f"{difference(first[0].value, limit)} {side} that" if distance else "exactly there"
    names = enumerate_words(f"{one.label}" for one in first)
    return (
        f"The labels were drawn from known probabilities, whose own {kind.by.name} is "
        f"{score(limit)}. The best, {names}, is {where}."
    )
