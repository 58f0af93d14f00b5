"""Reads the content of ``inspect.json``: how frequent tokens are, and what that promises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from freqsgd.errors import DataError
from freqsgd.report.documents import check_kind, listing
from freqsgd.report.results import integer, mapping, number, numbers, text

__all__ = ["FEW_TIMES", "PLACES", "Field", "Fit", "Inspection", "Promise", "read_inspection"]

SCHEMA = 1
PLACES = ("median", "p90")  # half, or 90%, of the tokens are more frequent


FEW_TIMES = 10  # a token seen less often: how frequent it is is hardly known


@dataclass(frozen=True)
class Promise:
    """What the bounds say of one token: SGD's over that of FA-SGD."""

    count: float
    error: float
    iterations: float

    @property
    def is_known(self) -> bool:
        """Whether the token was seen often enough to say."""
        return self.count >= FEW_TIMES


@dataclass(frozen=True)
class Fit:
    """The tails that fit a field's counts best, from a rank on."""

    family: str | None  # the nearer one; None if there is no fit or the test cannot tell
    reason: str | None  # why there is none
    from_rank: int | None
    occurrences: float | None  # of the tokens from that rank on
    rates: Mapping[str, float]  # tau and nu by family
    first_count: Mapping[str, float]  # at from_rank, by family

    @property
    def rate(self) -> float | None:
        """That of the nearer family."""
        return self.rates.get(self.family or "")


@dataclass(frozen=True)
class Field:
    """The tokens of a column."""

    name: str
    tokens: int
    occurrences: float
    top_1: float | None
    top_10: float | None
    singletons: float | None
    effective_tokens: float | None
    most_frequent: tuple[tuple[str, float], ...]
    fit: Fit
    applies: bool  # the corollary, with the nearer family
    reason: str | None  # why not
    promise: Mapping[str, Promise]
    ranks: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Inspection:
    """All of some data."""

    dataset: Mapping[str, Any]
    dim: int | None
    fields: tuple[Field, ...]
    promise: Mapping[str, Promise]  # of all fields; none where each has a single token
    tail_share: float | None  # of the samples that were looked at
    tail_of: float | None
    seldom_share: float | None  # with a token seen less than FEW_TIMES times, if there are any
    memory: Mapping[str, float]
    lr: Mapping[str, Any]
    lr_reason: str | None
    notes: tuple[str, ...]
    command: str | None
    created: str | None

    @property
    def is_text(self) -> bool:
        """Whether the tokens are words: for these alone there is a reason not to suggest rates."""
        return not self.lr and self.lr_reason is not None

    @property
    def name(self) -> str:
        """Of the data."""
        return text(self.dataset.get("name")) or "unnamed data"


def read_inspection(document: Mapping[str, Any]) -> Inspection:
    """Check what the page cannot do without."""
    check_kind(document, "inspection", SCHEMA)
    fields = listing(document.get("fields"), 'inspection: "fields"')
    if not fields:
        raise DataError('inspection: "fields" is empty; nothing to report')
    tail = mapping(document.get("tail_samples"))
    dataset = mapping(document.get("dataset"))
    read = tuple(read_field(field, place) for place, field in enumerate(fields))
    several = any(field.tokens > 1 for field in read)
    merged = (number(dataset.get("min_count")) or 0) >= FEW_TIMES
    return Inspection(
        dataset=dataset,
        dim=integer(document.get("dim")),
        fields=read,
        promise=read_promises(document.get("promise")) if several else {},
        tail_share=number(tail.get("share")),
        tail_of=number(tail.get("of")),
        seldom_share=None if merged else number(tail.get("seen_below_10")),
        memory=numbers(document.get("memory")),
        lr=mapping(document.get("lr")),
        lr_reason=text(document.get("lr_reason")),
        notes=tuple(map(str, document.get("notes") or ())),
        command=text(document.get("command")),
        created=text(document.get("created")),
    )


def read_field(entry: Mapping[str, Any], place: int) -> Field:
    """One entry of ``fields``."""
    tokens, occurrences = integer(entry.get("tokens")), number(entry.get("occurrences"))
    ranks = entry.get("ranks")
    if tokens is None or occurrences is None or not isinstance(ranks, list) or not ranks:
        raise DataError(
            f'inspection: "fields" item {place} has no "tokens", "occurrences" or "ranks"; '
            "run the command that wrote it again"
        )
    corollary = mapping(entry.get("corollary"))
    return Field(
        name=str(entry.get("name", f"field {place + 1}")),
        tokens=tokens,
        occurrences=occurrences,
        top_1=number(entry.get("top_1")),
        top_10=number(entry.get("top_10")),
        singletons=number(entry.get("singletons")),
        effective_tokens=number(entry.get("effective_tokens")),
        most_frequent=tuple((str(token), float(n)) for token, n in entry.get("most_frequent", ())),
        fit=read_fit(mapping(entry.get("fit"))),
        applies=corollary.get("applies") is True,
        reason=text(corollary.get("reason")),
        promise=read_promises(entry.get("promise")),
        ranks=tuple((int(rank), float(count)) for rank, count in ranks),
    )


def read_fit(entry: Mapping[str, Any]) -> Fit:
    """What ``TailFit`` wrote."""
    return Fit(
        family=text(entry.get("family")),
        reason=text(entry.get("reason")),
        from_rank=integer(entry.get("from_rank")),
        occurrences=number(entry.get("samples")),
        rates=numbers({"exponential": entry.get("tau"), "polynomial": entry.get("nu")}),
        first_count=numbers(entry.get("first_count")),
    )


def read_promises(value: Any) -> dict[str, Promise]:
    """Promises by place; those without numbers are left out."""
    found = {}
    for place in PLACES:
        entry = numbers(mapping(value).get(place))
        if {"count", "error", "iterations"} <= entry.keys():
            found[place] = Promise(entry["count"], entry["error"], entry["iterations"])
    return found
