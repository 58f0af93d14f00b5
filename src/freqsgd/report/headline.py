"""The few numbers that a reader sees first."""

from __future__ import annotations

from dataclasses import dataclass

from freqsgd.report.comparison import (
    Metric,
    best,
    best_standing,
    first_reaching,
    leaders,
    representative,
    standings,
)
from freqsgd.report.results import Epoch, Results, display_name
from freqsgd.report.wording import difference, duration, enumerate_words, score, size, times

__all__ = ["Tile", "headline"]


@dataclass(frozen=True)
class Tile:
    """One number with what it is and what it stands beside."""

    title: str
    value: str
    note: str


def headline(results: Results, by: Metric) -> list[Tile]:
    """Tiles for what these results hold, in order of importance."""
    tiles = (
        best_tile(results, by),
        sgd_tile(results, by),
        adam_tile(results, by),
        state_tile(results, by),
    )
    return [tile for tile in tiles if tile is not None]


def place(epoch: Epoch) -> str:
    """The epoch and second of an event."""
    words = f"epoch {epoch.epoch}"
    return words if epoch.seconds is None else f"{words}, {duration(epoch.seconds)}"


def best_tile(results: Results, by: Metric) -> Tile | None:
    """The best value that an optimizer reached."""
    first = leaders(standings(results, by), by)
    if not first:
        return None
    title = f"{'Highest' if by.higher_is_better else 'Lowest'} {by.name}"
    note = enumerate_words(found.label for found in first)
    top = first[0]
    if len(first) == 1:
        note += f": mean of {top.seeds} seeds" if top.seeds > 1 else f": {place(top.middle.epoch)}"
    return Tile(title, score(top.value), note)


def sgd_tile(results: Results, by: Metric) -> Tile | None:
    """When CF-SGD got as far as SGD ever did."""
    counting, plain = representative(results, "cfsgd", by), representative(results, "sgd", by)
    if counting is None or plain is None:
        return None
    mine, theirs = best(counting, by), best(plain, by)
    if mine is None or theirs is None:
        return None
    title = f"{counting.label} as good as {plain.label}'s best"
    reached = first_reaching(counting, by, theirs.value)
    if reached is None:
        return Tile(
            title, "never", f"{difference(mine.value, theirs.value)} short of {score(theirs.value)}"
        )
    after = "" if reached.seconds is None else f"after {duration(reached.seconds)}; "
    return Tile(title, f"epoch {reached.epoch}", f"{after}{plain.label}: {place(theirs.epoch)}")


def adam_tile(results: Results, by: Metric) -> Tile | None:
    """The distance between the best of CF-SGD and the best of Adam."""
    mine, theirs = best_standing(results, "cfsgd", by), best_standing(results, "adam", by)
    if mine is None or theirs is None:
        return None
    distance = round(mine.value, 4) - round(theirs.value, 4)
    sign = "" if score(abs(distance)) == score(0) else "+" if distance > 0 else "\N{MINUS SIGN}"
    note = f"{score(mine.value)} against {score(theirs.value)}"
    if max(mine.seeds, theirs.seeds) > 1:
        note += ", means over seeds"
    return Tile(f"{mine.label} less {theirs.label}, {by.name}", sign + score(abs(distance)), note)


def state_tile(results: Results, by: Metric) -> Tile | None:
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
