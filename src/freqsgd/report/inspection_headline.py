"""The few numbers that a reader of an inspection sees first."""

from __future__ import annotations

from collections.abc import Iterator

from freqsgd.documents.inspection import FEW_TIMES
from freqsgd.report.headline import Tile
from freqsgd.report.inspection import Inspection
from freqsgd.report.inspection_words import LARGE, least_even, units
from freqsgd.report.wording import factor, often, percent, shortened, size, times

__all__ = ["headline"]


def headline(inspection: Inspection) -> list[Tile]:
    """Tiles for what is known."""
    return [
        *imbalance(inspection),
        *promise(inspection),
        *rare(inspection),
        *state(inspection),
    ]


def imbalance(inspection: Inspection) -> Iterator[Tile]:
    """The share of the most frequent tokens; nothing where 10% would be a few."""
    field = least_even(inspection, LARGE)
    if field is not None and field.top_10 is not None:
        least = ", the least even field" if len(inspection.fields) > 1 else ""
        note = f"of all occurrences in {shortened(field.name)}{least}"
        yield Tile("The most frequent 10% of tokens have", percent(field.top_10), note)


def promise(inspection: Inspection) -> Iterator[Tile]:
    """What the bounds say of the median token, or that it is too rare to say."""
    found = inspection.overall.get("median")
    if found is None:
        return
    if found.is_known:
        note = f"at the median token, seen {often(found.count)}: upper bounds, no forecast of AUC"
        yield Tile("SGD's bound over FA-SGD's", f"{factor(found.error)} times", note)
    else:
        note = (
            f"so its promise is hardly known: SGD's bound is {factor(found.error)} times FA-SGD's, "
            f"and would be more with more {units(inspection)}"
        )
        yield Tile("The median token was seen", often(found.count), note)


def rare(inspection: Inspection) -> Iterator[Tile]:
    """How many rows hold a token of which little is known, or else one of a tail."""
    title = f"{units(inspection).capitalize()} with a rare token"
    if inspection.seldom_share is not None:
        note = f"one seen fewer than {FEW_TIMES} times"
        yield Tile(title, percent(inspection.seldom_share), note)
    elif inspection.tail_samples.share is not None and len(inspection.fields) > 1:
        note = "one of the rarest, which have 5% of a field's occurrences"
        yield Tile(title, percent(inspection.tail_samples.share), note)


def state(inspection: Inspection) -> Iterator[Tile]:
    """What CF-SGD would keep."""
    mine, adam = (inspection.memory.get(name) for name in ("cfsgd", "adam"))
    if mine is not None:
        share = "" if adam is None else times(mine, adam, "less", "more", "as much")
        note = f"{share}: Adam would keep {size(adam)}" if adam is not None else ""
        yield Tile("Optimizer state of CF-SGD", size(mine), note)
