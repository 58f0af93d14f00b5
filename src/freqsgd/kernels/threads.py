"""Run a kernel on several threads.

A kernel is a compiled C function that takes a job, one record that says what is left to do. Each
thread that runs it takes work units from the job, one after another, until none is left; so a
kernel may be run by any number of threads.

The threads are torch's own OpenMP team where torch has one. A second pool would have to share the
cores with torch's threads, which go on spinning for milliseconds after each of torch's operations.
OpenMP must not be entered in a child process forked after its first use, so there a kernel runs on
one thread.
"""

from __future__ import annotations

import ctypes
import os
import threading
from importlib.util import find_spec
from typing import Any

_forked = False


def _after_fork() -> None:
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _find_team() -> Any:
    """OpenMP's entry point in the library that torch itself uses; None where there is none."""
    spec = find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        return None
    library = os.path.join(spec.submodule_search_locations[0], "lib", "libtorch_cpu.so")
    try:
        function = ctypes.CDLL(library).GOMP_parallel
    except (OSError, AttributeError):
        return None
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
    function.restype = None
    return function


_team = _find_team()


def run(kernel: Any, job: Any, workers: int) -> None:
    """Run ``kernel`` on ``job``, an array of one record, with up to ``workers`` threads."""
    address = job.ctypes.data
    if workers == 1 or _forked:
        kernel.ctypes(address)
    elif _team is not None:
        _team(kernel.address, address, workers, 0)
    else:
        _run_on_new_threads(kernel, address, workers)


def _run_on_new_threads(kernel: Any, address: int, workers: int) -> None:
    others = [threading.Thread(target=kernel.ctypes, args=(address,)) for _ in range(workers - 1)]
    for thread in others:
        thread.start()
    kernel.ctypes(address)
    for thread in others:
        thread.join()
