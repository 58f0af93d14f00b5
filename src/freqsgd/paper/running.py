"""Run what the paper's figures need, once each, and write ``paper.json`` as it goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from freqsgd.errors import DataError
from freqsgd.files import locked
from freqsgd.paper.document import PaperDocument
from freqsgd.paper.experiments import FIGURES, RUNS, Figure, Run
from freqsgd.paper.process import PROGRAM, do_run
from freqsgd.paper.tasks import PaperFolder, Task, plan_tasks
from freqsgd.runs.machine import describe_machine


@dataclass(frozen=True)
class PaperProgress:
    """How far the whole is."""

    run: str  # the current run
    title: str
    number: int  # which it is, from 1
    count: int  # of all that are done now
    share: float  # of the expected time that is over
    seconds_left: float
    said: str = ""  # the last line of its log
    entry: Mapping[str, Any] | None = None  # what came of it, once it has ended
    cached: bool = False  # it was there already


Listener = Callable[[PaperProgress], None]


def chosen_figures(only: Sequence[str], figures: Sequence[Figure] = FIGURES) -> tuple[Figure, ...]:
    """Return the figures of these names, in the paper's order; all if none is named."""
    known = {name for figure in figures for name in (figure.name, *figure.also)}
    for name in only:
        if name not in known | {"all"}:
            listed = ", ".join(figure.name for figure in figures)
            raise DataError(f"--only knows no {name!r}: there are all, {listed}")
    if not only or "all" in only:
        return tuple(figures)
    asked = set(only)
    return tuple(figure for figure in figures if asked & {figure.name, *figure.also})


def run_paper(
    out: Path,
    *,
    only: Sequence[str] = (),
    full: bool = False,
    threads: int | None = None,
    seed: int | None = None,
    command: str | None = None,
    listener: Listener | None = None,
    figures: Sequence[Figure] = FIGURES,
    runs: Mapping[str, Run] = RUNS,
    program: Sequence[str] = PROGRAM,
) -> dict[str, Any]:
    """Run what is not there yet; return the content of ``paper.json``.

    Args:
        out: the folder for it, and for the runs; an earlier one is gone on with
        only: names of figures; the others keep what was measured of them before
        full: the paper's sizes instead of those that take minutes
        threads: of every run
        seed: of every run that has one
        command: the command line that does the same, for ``paper.json``
        listener: called some times a second
        figures: of the paper
        runs: by name, what the figures need
        program: what runs commands
    """
    asked = chosen_figures(only, figures)
    folder = PaperFolder(out)
    with locked(out):
        tasks = plan_tasks(runs, full=full, threads=threads, seed=seed)
        heading = {"command": command, "machine": describe_machine(threads)}
        options = _options(full, threads, seed)
        document = PaperDocument(folder, tasks, figures, full, options, heading)
        wanted = dict.fromkeys(name for figure in asked for name in figure.runs)
        _do_all(folder, [tasks[name] for name in wanted], document, program, listener)
        return document.content()


def _options(full: bool, threads: int | None, seed: int | None) -> list[str]:
    """Return what a command has to say to do the same."""
    numbers = {"--threads": threads, "--seed": seed}
    given = [f"{name} {value}" for name, value in numbers.items() if value is not None]
    return [*(["--full"] if full else []), *given]


def _do_all(
    folder: PaperFolder,
    tasks: Sequence[Task],
    document: PaperDocument,
    program: Sequence[str],
    listener: Listener | None,
) -> None:
    """Do the runs one after the other; the document is written before and after each."""
    todo = [(task, task.way) for task in tasks if task.way is not None]
    for task in tasks:
        if task.way is None:
            document.note(task, task.lacks, task.why)
    document.write()
    clock = Clock([way.usual for _, way in todo])
    for number, (task, way) in enumerate(todo, 1):
        told = partial(_tell, listener, clock, (task.name, task.title, number, len(todo)))
        told(0.0, "")
        outcome = do_run(folder, task, way, program, told)
        why = outcome.why or task.why  # of a stand-in: how to get the data
        document.note(task, outcome.status, why, outcome.seconds)
        document.write()
        clock.ended(None if outcome.cached else outcome.seconds)
        told(0.0, "", document.runs[task.name], outcome.cached)


def _tell(
    listener: Listener | None,
    clock: Clock,
    place: tuple[str, str, int, int],
    seconds: float,
    said: str,
    entry: Mapping[str, Any] | None = None,
    cached: bool = False,
) -> None:
    if listener is not None:
        share, left = clock.share(seconds), clock.left(seconds)
        listener(PaperProgress(*place, share, left, said, entry, cached))


class Clock:
    """How long the rest will take, from what runs usually take and how this machine compares.

    Args:
        usual: seconds of each; what is there already takes none, which is known when it ends
    """

    def __init__(self, usual: Sequence[float]) -> None:
        self._left = list(usual)
        self._total = sum(usual)
        self._expected = self._taken = 0.0

    def ended(self, seconds: float | None) -> None:
        """Note that the current run has ended after so many; None: it was there already."""
        usual = self._left.pop(0)
        if seconds is not None:
            self._expected += usual
            self._taken += seconds

    def left(self, seconds: float) -> float:
        """Return seconds to the end, so many after the current run began."""
        if not self._left:
            return 0.0
        pace = self._taken / self._expected if self._expected else 1.0
        return max(0.0, pace * self._left[0] - seconds) + pace * sum(self._left[1:])

    def share(self, seconds: float) -> float:
        """Return the part of the expected time that is over."""
        if not self._left:
            return 1.0
        here = min(seconds, self._left[0])
        return (self._total - sum(self._left) + here) / self._total
