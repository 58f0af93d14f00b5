"""What the frequencies of tokens promise, in sentences that hold whatever they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from freqsgd.report.headline import Tile
from freqsgd.report.inspection import Field, Inspection, Promise
from freqsgd.report.results import display_name, number
from freqsgd.report.summary import Statement
from freqsgd.report.wording import (
    capitalized,
    enumerate_words,
    factor,
    size,
    thousands,
    times,
)

__all__ = ["count_of", "fit_words", "headline", "inspection_title", "percent", "summarize"]

FEW = 4  # things of a kind that are all named
RATES = {"exponential": "tau", "polynomial": "nu"}
MANY_ONCE = 0.5  # share of tokens seen once, beyond which little is known of them


def inspection_title(inspection: Inspection) -> str:
    """The heading of the page."""
    return f"Token frequencies of {inspection.name}"


def percent(share: float) -> str:
    """A share; what is not 0 does not look like it."""
    digits = 0 if share >= 0.0995 or share == 0 else 1 if share >= 0.001 else 3
    return f"{100 * share:.{digits}f}%"


def count_of(count: float, word: str) -> str:
    """A number of things."""
    return f"{thousands(count)} {word if count == 1 else word + 's'}"


def most_unequal(inspection: Inspection) -> Field | None:
    """The field whose effective number of tokens is the smallest part of the real one."""
    known = [field for field in inspection.fields if field.effective_tokens and field.tokens > 1]
    return min(known, key=lambda field: (field.effective_tokens or 0) / field.tokens, default=None)


def headline(inspection: Inspection) -> list[Tile]:
    """The few numbers that a reader sees first."""
    tiles = []
    field = most_unequal(inspection)
    if field is not None and field.top_10 is not None:
        note = f"of all occurrences in {field.name}" + (
            ", the least even field" if len(inspection.fields) > 1 else ""
        )
        tiles.append(Tile("The most frequent 10% of tokens have", percent(field.top_10), note))
    if promise := inspection.promise.get("median"):
        note = f"that of SGD; {factor(promise.iterations)} times fewer iterations"
        if promise.error < 1:
            note = "that of SGD: it is no better there"
        title = "Bound at the median token"
        tiles.append(Tile(title, f"1 / {factor(promise.error)}", note))
    if inspection.tail_share is not None:
        tiles.append(
            Tile(
                "Rows with a rare token",
                percent(inspection.tail_share),
                "one of the tail's, at least",
            )
        )
    tiles += state_tile(inspection)
    return tiles


def state_tile(inspection: Inspection) -> Iterator[Tile]:
    """What CF-SGD would keep."""
    mine, adam = (inspection.memory.get(name) for name in ("cfsgd", "adam"))
    if mine is not None:
        share = "" if adam is None else times(mine, adam, "less", "more", "as much")
        note = f"{share}: Adam would keep {size(adam)}" if adam is not None else ""
        yield Tile("Optimizer state of CF-SGD", size(mine), note)


def summarize(inspection: Inspection) -> list[Statement]:
    """All that can be said; topics without data are left out."""
    statements = {
        "Data": data(inspection),
        "Imbalance": imbalance(inspection),
        "Promise": promise_words(inspection),
        "Tails": tails(inspection.fields),
        "Corollary": corollaries(inspection.fields),
        "Rare tokens": rare(inspection),
        "Memory": memory(inspection),
        "Learning rate": learning_rate(inspection),
        "Read with care": " ".join(caveats(inspection)),
    }
    return [Statement(topic, words) for topic, words in statements.items() if words]


def data(inspection: Inspection) -> str:
    """How much was looked at."""
    rows = number(inspection.dataset.get("rows"))
    parts = [] if rows is None else [count_of(rows, "row")]
    tokens = sum(field.tokens for field in inspection.fields)
    parts += [count_of(len(inspection.fields), "field"), count_of(tokens, "token")]
    return f"{inspection.name} has {enumerate_words(parts)}."


def imbalance(inspection: Inspection) -> str:
    """How unequal the least even field is."""
    field = most_unequal(inspection)
    if field is None:
        return "No field has more than one token: there is nothing to be unequal."
    sentences = []
    if field.top_1 is not None and field.top_10 is not None:
        sentences.append(
            f"In {field.name}{', the least even field,' if len(inspection.fields) > 1 else ''} "
            f"the most frequent 1% of {count_of(field.tokens, 'token')} have "
            f"{percent(field.top_1)} of all occurrences, the most frequent 10% "
            f"{percent(field.top_10)}."
        )
    sentences.append(
        f"Its effective number of tokens is {effective(field)}: as many equally frequent tokens "
        "would be as unlikely to repeat."
    )
    return " ".join(sentences)


def effective(field: Field) -> str:
    """The effective number of tokens."""
    value = field.effective_tokens or 0
    return f"{value:,.{0 if value >= 100 else 1}f}"


def promise_words(inspection: Inspection) -> str:
    """What the bounds say of the median token and of one in the tail."""
    several = " of all fields" if len(inspection.fields) > 1 else ""
    places = {
        "median": f"the median token{several}",
        "p90": "the token that 90% of all tokens are more frequent than",
    }
    told = [
        f"at {words}, seen {times_seen(promise)}, {gain(promise)}"
        for place, words in places.items()
        if (promise := inspection.promise.get(place))
    ]
    if not told:
        return ""
    return f"By its bound FA-SGD, which CF-SGD follows, has, against SGD, {'; '.join(told)}."


def times_seen(promise: Promise) -> str:
    """How often a token occurs."""
    return "once" if promise.count == 1 else f"{thousands(promise.count)} times"


def gain(promise: Promise) -> str:
    """Both ways to say how much better than SGD."""
    error = times(1, promise.error, "less error", "more error", "as much error")
    iterations = times(
        1, promise.iterations, "fewer iterations", "more iterations", "as many iterations"
    )
    return f"{error} after equally many iterations, or {iterations} to an equal error"


def fit_words(field: Field) -> str:
    """The tail of one field."""
    fit = field.fit
    if fit.family is None or fit.rate is None:
        return f"No tail: {fit.reason}." if fit.reason else "No tail was fitted."
    start = "" if fit.from_rank in (None, 1) else f" from rank {thousands(fit.from_rank or 0)} on"
    return f"{capitalized(fit.family)} tail, {RATES[fit.family]} = {fit.rate:.3g}{start}."


def tails(fields: Sequence[Field]) -> str:
    """Which tails fields have."""
    sentences = []
    for family, symbol in RATES.items():
        rates = [
            field.fit.rate for field in fields if field.fit.family == family and field.fit.rate
        ]
        names = [field.name for field in fields if field.fit.family == family]
        if rates:
            low, high = f"{min(rates):.3g}", f"{max(rates):.3g}"
            span = low if low == high else f"{low} to {high}"
            article = "An" if family == "exponential" else "A"
            sentences.append(
                f"{article} {family} tail is nearer in {named(names)} ({symbol} {span})."
            )
    missing = [field for field in fields if field.fit.family is None]
    if missing:
        reasons = dict.fromkeys(field.fit.reason or "not said" for field in missing)
        why = enumerate_words(reasons) if len(reasons) <= FEW else "for several reasons"
        sentences.append(f"Neither in {named([field.name for field in missing])}: {why}.")
    return " ".join(sentences)


def named(names: Sequence[str]) -> str:
    """Fields by name, or how many they are."""
    return enumerate_words(names) if len(names) <= FEW else f"{thousands(len(names))} fields"


def corollaries(fields: Sequence[Field]) -> str:
    """Where the corollaries' conditions hold."""
    sentences = []
    applies = [field.name for field in fields if field.applies]
    if applies:
        sentences.append(
            f"The conditions of the corollary for the nearer tail hold in {named(applies)}."
        )
    others = [field for field in fields if not field.applies]
    if others:
        words = f"They do not in {named([field.name for field in others])}"
        if not applies:
            words = "The corollary does not apply" + (
                "" if len(fields) == 1 else f" to {named([field.name for field in others])}"
            )
        reasons = unique(field.reason for field in others)
        if 0 < len(reasons) <= FEW:
            words += f": {'; '.join(reasons)}"
        sentences.append(f"{words}.")
        sentences.append("The promise above is that of the theorems, which need no such tail.")
    return " ".join(sentences)


def unique(reasons: Iterable[str | None]) -> list[str]:
    """What differs, in its order."""
    return [reason for reason in dict.fromkeys(reasons) if reason]


def rare(inspection: Inspection) -> str:
    """How many samples the tail matters to."""
    if inspection.tail_share is None:
        return ""
    of = "" if inspection.tail_of is None else f" of {count_of(inspection.tail_of, 'row')}"
    return (
        f"{percent(inspection.tail_share)}{of} have a token of a tail: one of the rarest, which "
        "together make the last 5% of a field's occurrences."
    )


def memory(inspection: Inspection) -> str:
    """What optimizers keep."""
    order = ("cfsgd", "rowwise-adagrad", "adagrad", "adam")
    told = [
        f"{display_name(name)} {size(inspection.memory[name])}"
        for name in order
        if name in inspection.memory
    ]
    if not told:
        return ""
    weights = inspection.memory.get("weights")
    dim = f" with vectors of {inspection.dim} numbers" if inspection.dim else ""
    beside = "" if weights is None else f" beside {size(weights)} of weights"
    return f"Optimizer state{beside}{dim}: {enumerate_words(told)}."


def learning_rate(inspection: Inspection) -> str:
    """Where to look for a rate."""
    low, high = (number(inspection.lr.get(end)) for end in ("low", "high"))
    rule = inspection.lr.get("rule")
    if low is None or high is None:
        reason = inspection.lr_reason or inspection.lr.get("reason")
        return f"No range is suggested: {reason}." if reason else ""
    by = f" ({rule})" if rule else ""
    return f"For CF-SGD try {low:g} to {high:g}{by}."


def caveats(inspection: Inspection) -> Iterator[str]:
    """What limits what frequencies can say."""
    if inspection.promise:
        yield (
            "The promise compares upper bounds, with equal noise for all tokens: it is a reason to "
            "try, not a measurement."
        )
    if any(field.fit.family for field in inspection.fields):
        yield (
            "That a tail is nearer does not make it true: with so many samples every simple "
            "tail can be told from the data."
        )
    single = [field.name for field in inspection.fields if field.tokens == 1]
    if single:
        verb = "has" if len(single) == 1 else "have"
        yield f"{capitalized(named(single))} {verb} one token only, from which nothing is learned."
    once = [
        field.name
        for field in inspection.fields
        if field.singletons is not None and field.singletons > MANY_ONCE * field.tokens
    ]
    if once:
        yield (
            f"Over half of the tokens of {named(once)} were seen once: how frequent they are is "
            "hardly known."
        )
