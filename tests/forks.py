"""Processes forked from one that has imported large libraries, so that they begin at once."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

LIBRARIES = ["torch._dynamo", "torchrec", "freqsgd.recommender.tune", "freqsgd.words.training"]

context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(LIBRARIES)


def fork(function: Callable[..., Any], *args: Any) -> tuple[BaseProcess, Connection]:
    """Start ``function(pipe, *args)``; return the process and the other end of the pipe."""
    ours, theirs = context.Pipe()
    process = context.Process(target=function, args=(theirs, *args), daemon=True)
    process.start()
    theirs.close()
    return process, ours
