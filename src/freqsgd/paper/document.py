"""``paper.json``: what was run, what came of it, and what that says of the paper's figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from freqsgd.documents import SCHEMA, load_object
from freqsgd.files import write_json
from freqsgd.paper.experiments import Figure
from freqsgd.paper.process import DONE, OUT_OF_TIME
from freqsgd.paper.rules import Finding, Rule
from freqsgd.paper.tasks import PAPER, PaperFolder, Task

_MEASURED = (DONE, OUT_OF_TIME)  # runs whose documents answer rules
Entries = Mapping[str, Mapping[str, Any]]  # the runs of paper.json
Documents = Mapping[str, Mapping[str, Any] | None]  # what they measured


class PaperDocument:
    """The content of ``paper.json``, as runs come to their ends.

    Args:
        folder: what an earlier call measured there is kept until it is measured again
        tasks: every run of the table
        figures: of the paper
        full: the mode
        options: with which a figure is measured again as it was
        heading: what the document says beside
    """

    def __init__(
        self,
        folder: PaperFolder,
        tasks: Mapping[str, Task],
        figures: Sequence[Figure],
        full: bool,
        options: Sequence[str],
        heading: Mapping[str, Any],
    ) -> None:
        self._folder, self._figures, self._options = folder, figures, options
        self._heading = {
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "mode": "full" if full else "quick",
            **heading,
        }
        self.runs = {name: self._before(task) for name, task in tasks.items()}

    def note(self, task: Task, status: str, why: str = "", seconds: float | None = None) -> None:
        """Say what came of a run."""
        self.runs[task.name] = self._entry(task, status, why, seconds)

    def content(self) -> dict[str, Any]:
        """Return all of it, with the verdicts that the documents of the runs give now."""
        measured = {name: self._measured(entry) for name, entry in self.runs.items()}
        figures = [
            figure_entry(
                each,
                self.runs,
                measured,
                " ".join(("freqsgd paper --only", each.name, *self._options)),
            )
            for each in self._figures
        ]
        return {
            "schema": SCHEMA,
            "kind": "paper",
            **self._heading,
            "seconds": sum(entry["seconds"] or 0.0 for entry in self.runs.values()),
            "figures": figures,
            "runs": self.runs,
        }

    def write(self) -> None:
        """Write ``paper.json``."""
        write_json(self._folder.path / PAPER, self.content())

    def _entry(self, task: Task, status: str, why: str, seconds: float | None) -> dict[str, Any]:
        way, measured = task.way, status in _MEASURED
        document, page = task.files
        return {
            "title": task.title,
            "command": task.shown(),
            "stand_in": task.stand_in,
            "dataset": task.dataset,
            "smaller": way.smaller if way else "",
            "status": status,
            "why": why,
            "seconds": seconds,
            "budget": way.budget if way else 0.0,
            "document": self._folder.relative(task, document) if measured else None,
            "report": self._folder.relative(task, page) if measured else None,
        }

    def _before(self, task: Task) -> dict[str, Any]:
        """Return what an earlier call measured by this very command, if it is there."""
        kept = self._folder.look(task)
        if kept is None or kept.status not in _MEASURED or self._folder.document(task) is None:
            return self._entry(task, "not asked", "", None)
        return self._entry(task, kept.status, task.why, kept.seconds)

    def _measured(self, entry: Mapping[str, Any]) -> dict[str, Any] | None:
        document = entry.get("document")
        return None if document is None else load_object(self._folder.path / document)


def verdict(answers: Sequence[bool | None]) -> str:
    """Return one word for the answers of a figure's rules; None is a rule without an answer.

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
    """Return a figure as ``paper.json`` has it."""
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
    """Return what the figure was measured on."""
    runs = [entries[name] for name in figure.runs]
    if any(run["status"] in ("no data", "not installed", "not asked") for run in runs):
        return "none"
    if figure.private or any(run["stand_in"] for run in runs):
        return "stand-in"
    return "real" if any(run["dataset"] for run in runs) else "simulated"
