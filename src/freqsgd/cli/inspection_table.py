"""What was found in some data, on the screen."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from freqsgd.cli.neighbor_table import shown

__all__ = ["print_inspection"]

_FEW = 4  # fields, of which each is told why the corollary does not apply
_LONGEST_NAME = 24
_COLUMNS = (
    "once: share of the tokens that were seen once. effective: so many equally frequent tokens "
    "would be as unlikely to repeat. top 1%, 10%: share of the occurrences that these tokens "
    "have. tail: the nearer of two fits to rank n, if they differ. median, 90%: SGD's iterations "
    "over FA-SGD's by the promise, for the token that so many tokens are more frequent than."
)


def print_inspection(document: dict[str, Any]) -> None:
    """A row per field, then what holds for all fields."""
    console = Console(highlight=False, width=None if Console().is_terminal else 100)
    dataset = document["dataset"]
    print(
        f"\n{shown(dataset['name'])}: {dataset['rows']:,} rows, {dataset['fields']} "
        f"{'field' if dataset['fields'] == 1 else 'fields'}, {dataset['tokens']:,} tokens"
    )
    console.print(_table(document["fields"]))
    print()
    for name, text in _notes(document):
        print(_note(name, text, console.width))


def _table(fields: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("field", no_wrap=True, max_width=_LONGEST_NAME, overflow="ellipsis")
    for name in ("tokens", "once", "effective", "top 1%", "top 10%", "tail", "median", "90%"):
        table.add_column(name, justify="right", no_wrap=True)
    for field in fields:
        promise = field["promise"]
        table.add_row(
            Text(shown(field["name"])),
            f"{field['tokens']:,}",
            f"{field['singletons'] / field['tokens']:.0%}",
            f"{field['effective_tokens']:,.{0 if field['effective_tokens'] >= 100 else 1}f}",
            f"{field['top_1']:.0%}",
            f"{field['top_10']:.0%}",
            tail(field["fit"]),
            factor(promise["median"]["iterations"]),
            factor(promise["p90"]["iterations"]),
        )
    return table


def tail(fit: dict[str, Any]) -> str:
    """The better of the two fits."""
    if fit["family"] is None:
        return "-"
    return f"exp(-{fit['tau']:.2g} n)" if fit["family"] == "exponential" else f"n^-{fit['nu']:.2f}"


def factor(value: float) -> str:
    """A ratio in three digits, or whole."""
    return f"{value:.3g} x" if value < 1000 else f"{value:,.0f} x"


def _notes(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What holds for all fields: a word, and a sentence."""
    yield "columns", _COLUMNS
    yield "promise", _promise(document["promise"])
    yield "corollary", _corollary(document["fields"])
    yield "rare tokens", _tail_samples(document)
    yield "memory", _memory(document)
    yield "lr", _lr(document)


def _note(name: str, text: str, width: int) -> str:
    indent = " " * 13
    return textwrap.fill(f"{name:13}{text}", width, subsequent_indent=indent)


def _promise(promise: dict[str, Any]) -> str:
    median, p90 = promise["median"], promise["p90"]
    return (
        f"SGD takes {factor(median['iterations'])} FA-SGD's iterations to an equal bound for the "
        f"median token of all fields (seen {_times(median['count'])}), "
        f"{factor(p90['iterations'])} for the token at 90% (seen {_times(p90['count'])}); after "
        f"equally many, its bound is {factor(median['error'])} and {factor(p90['error'])} FA-SGD's."
        " These are ratios of upper bounds, no forecast of AUC."
    )


def _corollary(fields: list[dict[str, Any]]) -> str:
    """To which fields the paper's corollary applies, and why not to others."""
    applies = [field["name"] for field in fields if field["corollary"]["applies"]]
    others = [field for field in fields if not field["corollary"]["applies"]]
    told = []
    if applies:
        told.append(f"Its conditions on a single field hold for {', '.join(map(shown, applies))}.")
    if len(others) > _FEW:
        told.append(f"It does not apply to {len(others)} of {len(fields)} fields.")
    elif others:
        why = "; ".join(f"{shown(f['name'])}: {f['corollary']['reason']}" for f in others)
        told.append(f"It does not apply to {why}.")
    return " ".join(told)


def _tail_samples(document: dict[str, Any]) -> str:
    sampled, rows = document["tail_samples"], document["dataset"]["rows"]
    drawn = "" if sampled["of"] == rows else f" (of {sampled['of']:,} rows drawn at random)"
    return (
        f"{sampled['share']:.1%} of the rows{drawn} have a token of the tail: the rarest tokens "
        "of a field, with 5% of its occurrences."
    )


def _memory(document: dict[str, Any]) -> str:
    sizes = {name: size(count) for name, count in document["memory"].items()}
    weights = sizes.pop("weights")
    states = ", ".join(f"{name} {state}" for name, state in sizes.items())
    return f"{weights} of weights at dim {document['dim']}; beside them {states}."


def _lr(document: dict[str, Any]) -> str:
    lr = document["lr"]
    if lr is None:
        return f"None is suggested: {document['lr_reason']}."
    return (
        f"Try {lr['low']:g} to {lr['high']:g} with cfsgd (FM, batches of 1024): a rule of thumb; "
        "--lr auto measures it."
    )


def size(count: int) -> str:
    """Bytes in two digits or more."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= unit:
            return f"{count / unit:,.{1 if count < 100 * unit else 0}f} {name}"
    return f"{count} bytes"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"
