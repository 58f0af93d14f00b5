"""What the frequencies of tokens promise, in sentences that hold whatever they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from freqsgd.documents.inspection import FEW_TIMES, InspectedField, Inspection
from freqsgd.optimizers import by_memory
from freqsgd.report.old.inspection import promises_of
from freqsgd.report.old.page import Statement, Tile
from freqsgd.report.old.theory import TAIL_RATES
from freqsgd.report.old.wording import (
    capitalized,
    count_of,
    enumerate_words,
    factor,
    named,
    often,
    percent,
    shortened,
    size,
    thousands,
    times,
)

LARGE = 100  # tokens of a field, of which 1% is one at least
MANY_ONCE = 0.5  # share of tokens seen once, beyond which little is known of them
PLACE_NAMES = {
    "median": "the median token",
    "p90": "the token that 90% of all are more frequent than",
}
COUNTER_EXAMPLE = (
    "A promise need not be a gain: on MovieLens-1M the median token is promised 5.9 times fewer "
    "iterations, and yet CF-SGD's AUC was 0.0004 below SGD's, each at its best rate."
)


def inspection_title(inspection: Inspection) -> str:
    """The heading of the page."""
    return f"Token frequencies of {inspection.dataset.name}"


def units(inspection: Inspection) -> str:
    """What is counted."""
    return "words" if inspection.is_text else "rows"


def summarize(inspection: Inspection) -> list[Statement]:
    """All that can be said, as plain text; topics without data are left out."""
    statements = {
        "Data": data(inspection),
        "Imbalance": imbalance(inspection),
        "Promise": " ".join(promised(inspection)),
        "Tails": " ".join(tails(inspection.fields)),
        "Corollary": " ".join(corollaries(inspection.fields)),
        "Rare tokens": " ".join(rare(inspection)),
        "Memory": memory(inspection),
        "Learning rate": learning_rate(inspection),
        "Notes": " ".join(inspection.notes),
        "Read with care": " ".join(caveats(inspection)),
    }
    return [Statement(topic, words) for topic, words in statements.items() if words]


def data(inspection: Inspection) -> str:
    """How much was looked at."""
    rows = inspection.dataset.rows
    tokens = sum(field.tokens for field in inspection.fields)
    if inspection.is_text:
        parts = [count_of(tokens, "distinct word")]
    else:
        parts = [count_of(len(inspection.fields), "field"), count_of(tokens, "token")]
    looked_at = [] if rows is None else [count_of(rows, units(inspection).removesuffix("s"))]
    return f"{inspection.dataset.name} has {enumerate_words([*looked_at, *parts])}."


def least_even(inspection: Inspection, tokens: int = 2) -> InspectedField | None:
    """Of fields with so many tokens, that with the smallest part of effective ones."""
    known = [each for each in inspection.fields if each.effective_tokens and each.tokens >= tokens]
    return min(known, key=lambda each: (each.effective_tokens or 0) / each.tokens, default=None)


def imbalance(inspection: Inspection) -> str:
    """How unequal the least even field is; shares are of fields in which 1% is a token."""
    field = least_even(inspection, LARGE) or least_even(inspection)
    if field is None:
        return "No field has more than one token: there is nothing to be unequal."
    least = ", the least even field," if len(inspection.fields) > 1 else ""
    where = f"In {shortened(field.name)}{least}"
    value = field.effective_tokens or 0
    effective = (
        f"the effective number of tokens is {value:,.{0 if value >= 100 else 1}f} of "
        f"{field.tokens:,}: so many equally frequent ones would be as unlikely to repeat."
    )
    if field.tokens < LARGE or field.top_1 is None or field.top_10 is None:
        return f"{where} {effective}"
    return (
        f"{where} the most frequent 1% of the tokens have {percent(field.top_1)} of all "
        f"occurrences, the most frequent 10% {percent(field.top_10)}; {effective}"
    )


def promised(inspection: Inspection) -> Iterator[str]:
    """What the bounds say of the median token and of one in the tail."""
    found = promises_of(inspection.overall)
    if not found:
        return
    errors = (
        f"{factor(promise.error)} times FA-SGD's for {PLACE_NAMES[place]} (seen "
        f"{often(promise.count)})"
        for place, promise in found.items()
    )
    iterations = enumerate_words(factor(promise.iterations) for promise in found.values())
    yield (
        "After equally many iterations SGD's bound on a token's squared gradient is "
        f"{enumerate_words(errors)}; to an equal bound SGD takes {iterations} times as many."
    )
    if not all(promise.is_known for promise in found.values()):
        yield (
            f"Of a token seen fewer than {FEW_TIMES} times the factor is hardly known, and it "
            f"grows with the number of {units(inspection)}."
        )
    yield "These are ratios of upper bounds, no forecast of AUC."


def rare(inspection: Inspection) -> Iterator[str]:
    """How many rows hold a token of which little is known, and how many one of the tail."""
    rows = units(inspection)
    looked_at, every = inspection.tail_samples.of, inspection.dataset.rows
    drawn = "" if looked_at in (None, every) else f", of which {looked_at:,.0f} were drawn,"
    if inspection.seldom_share is not None:
        yield (
            f"{percent(inspection.seldom_share)} of the {rows}{drawn} hold a token that was seen "
            f"fewer than {FEW_TIMES} times."
        )
        drawn = ""
    if inspection.tail_samples.share is not None:
        definition = ", by definition" if len(inspection.fields) == 1 else ""
        yield (
            f"{percent(inspection.tail_samples.share)} of the {rows}{drawn} hold a token of a "
            f"tail: the rarest of a field, with 5% of its occurrences{definition}."
        )


def memory(inspection: Inspection) -> str:
    """What optimizers keep."""
    told = [
        f"{each.label} {size(inspection.memory[each.name])}"
        for each in by_memory()
        if each.name in inspection.memory
    ]
    if not told:
        return ""
    weights = inspection.memory.get("weights")
    dim = f" with vectors of {inspection.dim} numbers" if inspection.dim else ""
    beside = "" if weights is None else f" beside {size(weights)} of weights"
    return f"Optimizer state{beside}{dim}: {enumerate_words(told)}."


def learning_rate(inspection: Inspection) -> str:
    """Where to look for a rate."""
    found = inspection.lr
    if found is None or found.low is None or found.high is None:
        reason = inspection.lr_reason
        return f"No range is suggested: {reason}." if reason else ""
    by = f" The rule: {found.rule}." if found.rule else ""
    return (
        f"For CF-SGD and an FM in batches of 1,024 try {found.low:g} to {found.high:g}; begin at "
        f"the upper end.{by}"
    )


def caveats(inspection: Inspection) -> Iterator[str]:
    """What limits what frequencies can say."""
    if inspection.overall:
        yield COUNTER_EXAMPLE
    if any(field.fit.family for field in inspection.fields):
        yield (
            "That a tail is nearer does not make it true: with so many samples every simple "
            "tail can be told from the data."
        )
    single = [field.name for field in inspection.fields if field.tokens == 1]
    if single and len(single) < len(inspection.fields):
        yield f"Nothing is learned from a field with one token: {named(single)}."
    once = [
        field.name
        for field in inspection.fields
        if field.singletons is not None and field.singletons > MANY_ONCE * field.tokens
    ]
    if once:
        yield f"Over half of the tokens were seen once in {named(once)}."


def headline(inspection: Inspection) -> list[Tile]:
    """Tiles for what is known."""
    return [
        *imbalance_tiles(inspection),
        *promise_tiles(inspection),
        *rare_tiles(inspection),
        *state_tiles(inspection),
    ]


def imbalance_tiles(inspection: Inspection) -> Iterator[Tile]:
    """The share of the most frequent tokens; nothing where 10% would be a few."""
    field = least_even(inspection, LARGE)
    if field is not None and field.top_10 is not None:
        least = ", the least even field" if len(inspection.fields) > 1 else ""
        note = f"of all occurrences in {shortened(field.name)}{least}"
        yield Tile("The most frequent 10% of tokens have", percent(field.top_10), note)


def promise_tiles(inspection: Inspection) -> Iterator[Tile]:
    """What the bounds say of the median token, or that it is too rare to say."""
    found = promises_of(inspection.overall).get("median")
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


def rare_tiles(inspection: Inspection) -> Iterator[Tile]:
    """How many rows hold a token of which little is known, or else one of a tail."""
    title = f"{units(inspection).capitalize()} with a rare token"
    if inspection.seldom_share is not None:
        note = f"one seen fewer than {FEW_TIMES} times"
        yield Tile(title, percent(inspection.seldom_share), note)
    elif inspection.tail_samples.share is not None and len(inspection.fields) > 1:
        note = "one of the rarest, which have 5% of a field's occurrences"
        yield Tile(title, percent(inspection.tail_samples.share), note)


def state_tiles(inspection: Inspection) -> Iterator[Tile]:
    """What CF-SGD would keep."""
    mine, adam = (inspection.memory.get(name) for name in ("cfsgd", "adam"))
    if mine is not None:
        share = "" if adam is None else times(mine, adam, "less", "more", "as much")
        note = f"{share}: Adam would keep {size(adam)}" if adam is not None else ""
        yield Tile("Optimizer state of CF-SGD", size(mine), note)


FEW_NAMES = 4  # things of a kind that are all told
NOT_THE_CASE = (
    "The corollary itself is about two fields with as many tokens and the same tail from rank 1 "
    "on, which no real data has."
)
NOT_NEEDED = "The promise does not need it: it comes from the counts."


def fit_words(field: InspectedField) -> str:
    """The tail of one field."""
    fit = field.fit
    if fit.family is None or fit.rate is None:
        return f"No tail: {fit.reason}." if fit.reason else "No tail was fitted."
    start = "" if fit.from_rank in (None, 1) else f" {extent(field)}"
    return f"{capitalized(fit.family)} tail, {TAIL_RATES[fit.family]} = {fit.rate:.3g}{start}."


def extent(field: InspectedField) -> str:
    """Where the fit begins, and how much that leaves."""
    words = f"from rank {thousands(field.fit.from_rank or 1)} on"
    share = fitted_share(field)
    return words if share is None else f"{words}, {percent(share)} of the occurrences"


def fitted_share(field: InspectedField) -> float | None:
    """The share of the occurrences that the fit is of."""
    if field.fit.samples is None or not field.occurrences:
        return None
    return field.fit.samples / field.occurrences


def tails(fields: Sequence[InspectedField]) -> Iterator[str]:
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
    return f": {'; '.join(known)}" if 0 < len(known) <= FEW_NAMES else ""


def corollaries(fields: Sequence[InspectedField]) -> Iterator[str]:
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


def exceptions(fields: Sequence[InspectedField]) -> str:
    """Fields, and why not to them."""
    if len(fields) <= FEW_NAMES and all(field.corollary.reason for field in fields):
        return enumerate_words(
            f"{shortened(field.name)} ({field.corollary.reason})" for field in fields
        )
    return named([field.name for field in fields]) + because(
        field.corollary.reason for field in fields
    )


def conditions(fields: Sequence[InspectedField]) -> str:
    """Fields, and which part of each the fit is of."""
    if len(fields) <= FEW_NAMES:
        return enumerate_words(f"{shortened(field.name)} ({extent(field)})" for field in fields)
    ranks = ends([field.fit.from_rank or 1 for field in fields], thousands)
    words = f"{named([field.name for field in fields])}, whose fits begin at rank {ranks}"
    shares = [share for field in fields if (share := fitted_share(field)) is not None]
    return f"{words} and hold {ends(shares, percent)} of the occurrences" if shares else words
