"""The few numbers of one-pass runs that a reader sees first."""

from __future__ import annotations

from freqsgd.report.headline import Tile
from freqsgd.report.one_pass import OnePass
from freqsgd.report.one_pass_words import ne_score, of_optimizer, ranking, signed
from freqsgd.report.wording import enumerate_words, size, thousands, times

__all__ = ["one_pass_tiles"]


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
