"""Days that are missing in a sequence of names."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date
from itertools import pairwise
from typing import NamedTuple

from freqsgd.data.dataset import DataError

__all__ = ["check_gaps"]

_DATE = re.compile(r"(?<![0-9])([0-9]{4})([-_]?)([0-9]{2})\2([0-9]{2})(?![0-9])")
_NUMBER = re.compile(r"[0-9]+")
_SHOWN = 5


class _Numbered(NamedTuple):
    """A name and the one number or date in it by which it differs from the others."""

    name: str
    number: int
    spell: Callable[[int], str]  # the name with another number


def check_gaps(path: str, names: Sequence[str], *, allow_missing: bool) -> None:
    """Raise if names that are alike but for one number or date skip one, or have one twice."""
    numbered = sorted(_dated(names) or _counted(names), key=lambda each: each.number)
    missing: list[str] = []
    for before, after in pairwise(numbered):
        if before.number == after.number:
            raise DataError(
                f"{path}: {before.name} and {after.name} are the same day; keep one of them"
            )
        gap = range(before.number + 1, after.number)
        missing += map(before.spell, gap[: _SHOWN + 1])
    if missing and not allow_missing:
        shown = ", ".join(missing[:_SHOWN]) + (", ..." if len(missing) > _SHOWN else "")
        raise DataError(
            f"{path}: between {numbered[0].name} and {numbered[-1].name} these days are missing: "
            f"{shown}; add them, or allow it with --allow-missing-days"
        )


def _dated(names: Sequence[str]) -> list[_Numbered]:
    """By their dates; nothing unless each has one, and all else is the same."""
    found = [list(_DATE.finditer(name)) for name in names]
    if not all(len(dates) == 1 for dates in found):
        return []
    matches = [dates[0] for dates in found]
    try:
        days = [date(int(match[1]), int(match[3]), int(match[4])).toordinal() for match in matches]
    except ValueError:
        return []
    return _alike([*map(_dated_name, names, matches, days)], matches)


def _dated_name(name: str, match: re.Match[str], day: int) -> _Numbered:
    form = match[2].join(("%Y", "%m", "%d"))
    return _Numbered(name, day, lambda n: _put(match, date.fromordinal(n).strftime(form)))


def _counted(names: Sequence[str]) -> list[_Numbered]:
    """By the one number in which they differ; nothing if they differ in more."""
    found = [list(_NUMBER.finditer(name)) for name in names]
    if len({len(numbers) for numbers in found}) > 1:
        return []
    columns = [
        matches for matches in zip(*found, strict=True) if len({match[0] for match in matches}) > 1
    ]
    if len(columns) != 1:
        return []
    return _alike([*map(_counted_name, names, columns[0])], columns[0])


def _counted_name(name: str, match: re.Match[str]) -> _Numbered:
    digits = len(match[0])
    return _Numbered(name, int(match[0]), lambda n: _put(match, f"{n:0{digits}}"))


def _put(match: re.Match[str], text: str) -> str:
    return match.string[: match.start()] + text + match.string[match.end() :]


def _alike(numbered: list[_Numbered], matches: Sequence[re.Match[str]]) -> list[_Numbered]:
    """All, or nothing if the names differ in anything else."""
    return numbered if len({_put(match, "*") for match in matches}) == 1 else []
