"""The few numbers that a reader sees first."""

from __future__ import annotations

from dataclasses import dataclass

from freqsgd.report.old.comparison import (
    best_standing,
    first_reaching,
    leaders,
    representative,
    standings,
)
from freqsgd.report.old.kinds import Kind
from freqsgd.report.old.measures import Best, Measure, best
from freqsgd.report.old.page import Tile
from freqsgd.report.old.results import Epoch, Results, display_name
from freqsgd.report.old.wording import (
    count_of,
    difference,
    duration,
    enumerate_words,
    score,
    size,
    times,
)


def headline(results: Results, kind: Kind) -> list[Tile]:
    """Tiles for what these results hold, in order of importance."""
    by_epoch = kind.outcome is kind.kept
    tiles = (
        best_tile(results, kind.outcome),
        reach_tile(results, kind) if by_epoch else distance_tile(results, kind.outcome, "sgd"),
        distance_tile(results, kind.outcome, "adam"),
        state_tile(results, kind.outcome),
    )
    return [tile for tile in tiles if tile is not None]


def place(epoch: Epoch) -> str:
    """The epoch and second of an event."""
    words = f"epoch {epoch.epoch}"
    return words if epoch.seconds is None else f"{words}, {duration(epoch.seconds)}"


def best_tile(results: Results, by: Measure) -> Tile | None:
    """The best value that an optimizer reached."""
    found = standings(results, by)
    first = leaders(found, by)
    if not first:
        return None
    title = f"{'Highest' if by.higher_is_better else 'Lowest'} {(by.metric or by).name}"
    note = enumerate_words(one.label for one in first)
    top = first[0]
    reached = best(top.middle, by.metric) if by.metric else None
    if len(first) == 1 and top.seeds > 1:
        note += f": mean of {top.seeds} seeds"
    elif len(first) == 1 and reached:
        note += f": {place(reached.epoch)}"
    elif second := leaders([one for one in found if one not in first], by):
        note += f"; then {second[0].label} with {score(second[0].value)}"
    return Tile(title, score(top.value), note)


def reach_tile(results: Results, kind: Kind) -> Tile | None:
    """When CF-SGD got as far as SGD ever did."""
    found = reach(results, kind)
    if found is None:
        return None
    mine, theirs, reached = found.counting, found.plain, found.epoch
    title = f"{mine.run.label} as good as {theirs.run.label}'s best"
    if reached is None:
        return Tile(
            title, "never", f"{difference(mine.value, theirs.value)} short of {score(theirs.value)}"
        )
    if not found.is_fair:
        return None
    after = "" if reached.seconds is None else f"after {duration(reached.seconds)}; "
    note = f"{after}{theirs.run.label}: {place(theirs.epoch)}"
    return Tile(title, f"epoch {reached.epoch}", note)


def distance_tile(results: Results, by: Measure, other: str) -> Tile | None:
    """The distance between CF-SGD and another optimizer, each at its best."""
    mine, theirs = best_standing(results, "cfsgd", by), best_standing(results, other, by)
    if mine is None or theirs is None:
        return None
    if any(run.still_learning for run in (*mine.runs, *theirs.runs)):
        return None  # a longer run might have come closer
    distance = round(mine.value, 4) - round(theirs.value, 4)
    sign = "" if score(abs(distance)) == score(0) else "+" if distance > 0 else "\N{MINUS SIGN}"
    note = f"{score(mine.value)} against {score(theirs.value)}"
    if max(mine.seeds, theirs.seeds) > 1:
        note += ", means over seeds"
    title = f"{mine.label} less {theirs.label}, {(by.metric or by).name}"
    return Tile(title, sign + score(abs(distance)), note)


def state_tile(results: Results, by: Measure) -> Tile | None:
    """The size of CF-SGD's state, beside Adam's if there is one."""
    counting, adam = representative(results, "cfsgd", by), representative(results, "adam", by)
    if counting is None or counting.state_bytes is None:
        return None
    note = ""
    if adam is not None and adam.state_bytes is not None:
        share = times(counting.state_bytes, adam.state_bytes, "less", "more", "as much")
        note = f"{share}: {display_name('adam')} keeps {size(adam.state_bytes)}"
    elif counting.parameter_bytes:
        note = f"for {size(counting.parameter_bytes)} of weights"
    return Tile(f"Optimizer state of {display_name('cfsgd')}", size(counting.state_bytes), note)


@dataclass(frozen=True)
class Reach:
    """CF-SGD and SGD, each at its best, and when CF-SGD was as good as SGD."""

    counting: Best
    plain: Best
    epoch: Epoch | None  # None: it never was

    @property
    def is_fair(self) -> bool:
        """Whether SGD's best is all that it could reach, so that its epochs can be counted."""
        return not self.plain.run.still_learning


def reach(results: Results, kind: Kind) -> Reach | None:
    """When CF-SGD got as far as SGD ever did; None if either has no values."""
    found = []
    for optimizer in ("cfsgd", "sgd"):
        run = representative(results, optimizer, kind.kept)
        at_best = None if run is None else best(run, kind.by)
        if at_best is None:
            return None
        found.append(at_best)
    counting, plain = found
    return Reach(counting, plain, first_reaching(counting.run, kind.by, plain.value))


def point(results: Results, kind: Kind) -> str:
    """What learning curves show at a glance, if it is what frequency-aware rates are for."""
    found = reach(results, kind)
    if found is None or not found.is_fair:
        return ""
    if found.epoch is None or found.epoch.epoch >= found.plain.epoch.epoch:
        return ""
    slow, fast = found.plain, found.counting
    epochs = count_of(slow.epoch.epoch, "epoch")
    return f"what takes {slow.run.label} {epochs} takes {fast.run.label} {found.epoch.epoch}"
