"""Runs in worker processes, with results appended to a file as they arrive."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from benchmarks.zoo.protocol import Result, Run, execute
from benchmarks.zoo.task import Scores


class Runner:
    """Executes runs over several processes and remembers what was run before.

    Args:
        folder: holds results.jsonl, from which an interrupted benchmark continues
        workers: number of processes, each with one thread
    """

    def __init__(self, folder: Path, workers: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "results.jsonl"
        self.workers = workers
        self.results = dict(_read(self.path)) if self.path.exists() else {}

    def __call__(self, runs: Iterable[Run]) -> dict[Run, Result]:
        """Return the result of each run, executing those that have none yet."""
        runs = list(dict.fromkeys(runs))
        todo = [run for run in runs if run not in self.results]
        if todo:
            self._execute(todo)
        return {run: self.results[run] for run in runs}

    def _execute(self, runs: list[Run]) -> None:
        start = time.perf_counter()
        context = get_context("spawn")
        with (
            ProcessPoolExecutor(self.workers, context, torch.set_num_threads, (1,)) as pool,
            self.path.open("a") as file,
        ):
            futures = [pool.submit(execute, run) for run in runs]
            try:
                for done, future in enumerate(as_completed(futures), 1):
                    result = future.result()
                    self.results[result.run] = result
                    file.write(json.dumps(asdict(result)) + "\n")
                    file.flush()
                    passed = time.perf_counter() - start
                    left = passed / done * (len(runs) - done) / 60
                    print(f"{done}/{len(runs)}  {_line(result)}  {left:.0f} min left", flush=True)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def _read(path: Path) -> Iterable[tuple[Run, Result]]:
    """Yield stored results; a last line that was cut off is skipped."""
    for line in path.read_text().splitlines():
        try:
            stored: dict[str, Any] = json.loads(line)
        except json.JSONDecodeError:
            continue
        run = Run(**stored.pop("run"))
        scores = stored.pop("scores")
        yield run, Result(run, None if scores is None else Scores(*scores), **stored)


def _line(result: Result) -> str:
    run = result.run
    outcome = "diverged" if result.scores is None else f"test {result.scores.test:.4f}"
    name = f"{run.question} {run.model} {run.contender}"
    return f"{name:30} lr {run.lr:<7g} seed {run.seed}  {outcome}  {result.seconds:.1f} s"
