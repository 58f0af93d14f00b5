"""How far ``freqsgd paper`` is: one bar for all on a terminal, a line per run elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.progress import BarColumn, TextColumn
from rich.table import Column
from rich.text import Text

from freqsgd.cli.progress import Screen, console
from freqsgd.report.wording import duration

if TYPE_CHECKING:
    from freqsgd.paper.running import PaperProgress

__all__ = ["PaperWatcher"]


class PaperWatcher(Screen):
    """Shows which run is going on, what it said last, and how long the rest will take."""

    def __init__(self) -> None:
        super().__init__(
            TextColumn("{task.fields[run]}", markup=False),
            BarColumn(bar_width=12),
            TextColumn("{task.fields[left]}", markup=False),
            TextColumn(
                "{task.fields[said]}",
                markup=False,
                style="dim",
                table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"),
            ),
            expand=True,
        )
        self._task = self._bars.add_task("", total=1.0, run="", left="", said="")
        self._begun = 0

    def watch(self, progress: PaperProgress) -> None:
        """What :func:`freqsgd.paper.running.run_paper` reports."""
        place = f"{progress.number:2}/{progress.count}"
        left = f"{duration(progress.seconds_left)} left"
        self._bars.update(
            self._task,
            completed=progress.share,
            run=f"{place} {progress.run}",
            left=left,
            said=progress.said,
        )
        if progress.entry is not None:
            self._say(f"{place} {progress.run:<19}{_ending(progress)}")
        elif progress.number > self._begun and not console.is_terminal:
            self._begun = progress.number
            self._say(f"{place} {progress.run:<19}{progress.title}; {left}")

    def _say(self, line: str) -> None:
        console.print(Text(line), soft_wrap=True)


def _ending(progress: PaperProgress) -> str:
    entry = progress.entry or {}
    if progress.cached:
        return "there already"
    ended = f"{entry['status']}, {duration(entry['seconds'])}"
    if entry["stand_in"]:
        ended += ", on generated data"
    return ended if entry["status"] == "done" else f"{ended}: {entry['why']}"
