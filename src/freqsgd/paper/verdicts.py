"""What the rules say of a figure, taken together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from freqsgd.paper.experiments import Figure
from freqsgd.paper.rules import Finding, Rule

__all__ = ["figure_entry", "verdict"]

Entries = Mapping[str, Mapping[str, Any]]  # the runs of paper.json
Documents = Mapping[str, Mapping[str, Any] | None]  # what they measured


def verdict(answers: Sequence[bool | None]) -> str:
    """One word for the answers of a figure's rules; None is a rule without an answer.

    >>> verdict([True, True]), verdict([True, None]), verdict([False, None]), verdict([None])
    ('agrees', 'agrees in part', 'differs', 'not measured')
    """
    known = [answer for answer in answers if answer is not None]
    if not known:
        return "not measured"
    if not any(known):
        return "differs"
    return "agrees" if all(known) and len(known) == len(answers) else "agrees in part"


def figure_entry(
    figure: Figure, entries: Entries, documents: Documents, command: str
) -> dict[str, Any]:
    """A figure as ``paper.json`` has it."""
    found = [(run, rule, _look(rule, entries[run], documents[run])) for run, rule in figure.rules]
    return {
        "name": figure.name,
        "number": figure.number,
        "title": figure.title,
        "claim": figure.claim,
        "brief": figure.brief,
        "private": figure.private,
        "rates": figure.rates,
        "data": _data(figure, entries),
        "verdict": verdict([finding.holds for _, _, finding in found]),
        "rules": [
            {
                "run": run,
                "says": rule.says,
                "holds": finding.holds,
                "measured": finding.measured,
            }
            for run, rule, finding in found
        ],
        "runs": list(figure.runs),
        "command": command,
    }


def _look(rule: Rule, entry: Mapping[str, Any], document: Mapping[str, Any] | None) -> Finding:
    if document is None:
        return Finding(None, f"not measured: {entry['status']}")
    if rule.of_data and entry["stand_in"]:
        return Finding(None, f"not measured: this is about {entry['dataset']}")
    return rule.find(document)


def _data(figure: Figure, entries: Entries) -> str:
    """What the figure was measured on."""
    runs = [entries[name] for name in figure.runs]
    if any(run["status"] in ("no data", "not installed", "not asked") for run in runs):
        return "none"
    if figure.private or any(run["stand_in"] for run in runs):
        return "stand-in"
    return "real" if any(run["dataset"] for run in runs) else "simulated"
