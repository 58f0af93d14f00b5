"""Which tails the frequencies of fields have, and where the corollaries apply, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from freqsgd.documents.inspection import Field
from freqsgd.report.theory import TAIL_RATES
from freqsgd.report.wording import (
    capitalized,
    enumerate_words,
    named,
    percent,
    shortened,
    thousands,
)

__all__ = ["corollaries", "fit_words", "tails"]

FEW = 4  # things of a kind that are all told
NOT_THE_CASE = (
    "The corollary itself is about two fields with as many tokens and the same tail from rank 1 "
    "on, which no real data has."
)
NOT_NEEDED = "The promise does not need it: it comes from the counts."


def fit_words(field: Field) -> str:
    """The tail of one field."""
    fit = field.fit
    if fit.family is None or fit.rate is None:
        return f"No tail: {fit.reason}." if fit.reason else "No tail was fitted."
    start = "" if fit.from_rank in (None, 1) else f" {extent(field)}"
    return f"{capitalized(fit.family)} tail, {TAIL_RATES[fit.family]} = {fit.rate:.3g}{start}."


def extent(field: Field) -> str:
    """Where the fit begins, and how much that leaves."""
    words = f"from rank {thousands(field.fit.from_rank or 1)} on"
    share = fitted_share(field)
    return words if share is None else f"{words}, {percent(share)} of the occurrences"


def fitted_share(field: Field) -> float | None:
    """The share of the occurrences that the fit is of."""
    if field.fit.samples is None or not field.occurrences:
        return None
    return field.fit.samples / field.occurrences


def tails(fields: Sequence[Field]) -> Iterator[str]:
    """Which tails fields have."""
    for family, symbol in TAIL_RATES.items():
        found = [field for field in fields if field.fit.family == family and field.fit.rate]
        if found:
            span = ends([field.fit.rate or 0 for field in found], "{:.3g}".format)
            article = "An" if family == "exponential" else "A"
            names = named([field.name for field in found])
            yield f"{article} {family} tail is nearer in {names} ({symbol} {span})."
    missing = [field for field in fields if field.fit.family is None]
    if missing:
        why = because(field.fit.reason for field in missing)
        yield f"Neither in {named([field.name for field in missing])}{why}."


def ends(values: Iterable[float], show: Callable[[float], str]) -> str:
    """The lowest and the highest of some numbers."""
    listed = sorted(values)
    return " to ".join(dict.fromkeys(map(show, (listed[0], listed[-1]))))


def because(reasons: Iterable[str | None]) -> str:
    """Why, if the reasons are few."""
    known = [reason for reason in dict.fromkeys(reasons) if reason]
    return f": {'; '.join(known)}" if 0 < len(known) <= FEW else ""


def corollaries(fields: Sequence[Field]) -> Iterator[str]:
    """Where the corollaries' conditions hold."""
    applies = [field for field in fields if field.corollary.applies]
    others = [field for field in fields if not field.corollary.applies]
    if applies:
        yield f"Its conditions on one field hold in {conditions(applies)}."
    if len(fields) == len(others) == 1:
        yield f"It does not apply{because(field.corollary.reason for field in others)}."
    elif others:
        yield f"It does not apply to {exceptions(others)}."
    if applies:
        yield NOT_THE_CASE
    yield NOT_NEEDED


def exceptions(fields: Sequence[Field]) -> str:
    """Fields, and why not to them."""
    if len(fields) <= FEW and all(field.corollary.reason for field in fields):
        return enumerate_words(
            f"{shortened(field.name)} ({field.corollary.reason})" for field in fields
        )
    return named([field.name for field in fields]) + because(
        field.corollary.reason for field in fields
    )


def conditions(fields: Sequence[Field]) -> str:
    """Fields, and which part of each the fit is of."""
    if len(fields) <= FEW:
        return enumerate_words(f"{shortened(field.name)} ({extent(field)})" for field in fields)
    ranks = ends([field.fit.from_rank or 1 for field in fields], thousands)
    words = f"{named([field.name for field in fields])}, whose fits begin at rank {ranks}"
    shares = [share for field in fields if (share := fitted_share(field)) is not None]
    return f"{words} and hold {ends(shares, percent)} of the occurrences" if shares else words
