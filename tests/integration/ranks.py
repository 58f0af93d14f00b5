"""Processes that form a gloo group for one job after another."""

from __future__ import annotations

import contextlib
import gc
import io
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from tests.forks import context

WORLD = 2
COLLECTIVE_TIMEOUT = timedelta(seconds=20)
JOB_TIMEOUT = 90.0  # seconds; the first job of a process loads torch and the kernels


class Ranks:
    """Runs functions ``f(rank, *args)`` on all ranks at once.

    Processes start with the first job and serve all others; after a job that failed they are
    replaced, since the group may be in any state.
    """

    def __init__(self, folder: Path, world: int = WORLD) -> None:
        self._folder = folder
        self._world = world
        self._jobs = 0
        self._members: list[tuple[Any, Any]] = []

    def run(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """What the function returned on each rank: tensors in dicts, lists and tuples."""
        if not self._members:
            self._start()
        self._jobs += 1
        meeting_point = self._folder / f"job{self._jobs}"
        try:
            for _, pipe in self._members:
                pipe.send((function, _pack(args), meeting_point.as_uri()))
            answers = []
            for rank, (_, pipe) in enumerate(self._members):
                assert pipe.poll(JOB_TIMEOUT), f"rank {rank} did not finish: a collective hangs?"
                answers.append(pipe.recv())
            errors = [error for error, _ in answers if error is not None]
            assert not errors, "\n".join(errors)
        except BaseException:
            self.close()
            raise
        return [_unpack(packed) for _, packed in answers]

    def _start(self) -> None:
        for rank in range(self._world):
            here, there = context.Pipe()
            process = context.Process(target=_serve, args=(rank, self._world, there), daemon=True)
            process.start()
            there.close()
            self._members.append((process, here))

    def close(self) -> None:
        """End all processes."""
        for process, pipe in self._members:
            with contextlib.suppress(OSError):
                pipe.send(None)
            process.join(5)
            if process.is_alive():
                process.kill()
                process.join()
            pipe.close()
        self._members = []


def _serve(rank: int, world: int, pipe: Any) -> None:
    torch.set_num_threads(1)
    gc.freeze()  # each optimizer searches all other objects for embedding modules
    while (job := pipe.recv()) is not None:
        function, args, meeting_point = job
        try:
            dist.init_process_group(
                "gloo", meeting_point, COLLECTIVE_TIMEOUT, world_size=world, rank=rank
            )
            try:
                answer = None, _pack(function(rank, *_unpack(args)))
            finally:
                dist.destroy_process_group()
        except Exception:
            answer = f"on rank {rank}:\n{traceback.format_exc()}", b""
        pipe.send(answer)


def _pack(value: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def _unpack(packed: bytes) -> Any:
    return torch.load(io.BytesIO(packed), weights_only=True)
