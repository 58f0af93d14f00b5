"""Loops over data, compiled; they hold no lock, so that threads may run them side by side."""

from __future__ import annotations

import sys
import threading
from functools import cache
from typing import Any

__all__ = ["TOLD", "called", "compiled", "inlined", "tell_of_compiling"]

TOLD = "compiling kernels for this machine (once) ..."

_making = threading.RLock()  # threads may call a function for the first time at once


class _Compiled:
    """A function that Numba compiles when it is first called: a command that calls none of them
    does not wait for Numba's import."""

    def __init__(self, function: Any, **options: Any) -> None:
        self.function, self.options = function, options
        self._dispatcher: Any = None

    def __call__(self, *arguments: Any) -> Any:
        return self.dispatcher(*arguments)

    @property
    def dispatcher(self) -> Any:
        """Numba's function. Those that it calls become Numba's too, which knows no others."""
        if self._dispatcher is None:
            with _making:
                self._dispatcher = self._dispatcher or self._make()
        return self._dispatcher

    def _make(self) -> Any:
        from numba import njit

        tell_of_compiling()
        names = self.function.__globals__
        for name in self.function.__code__.co_names:
            if isinstance(called := names.get(name), _Compiled):
                names[name] = called.dispatcher
        return njit(**self.options)(self.function)


@cache
def tell_of_compiling() -> None:
    """Have a line written to stderr when the first of this package's functions is compiled."""
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, started: Any) -> None:
            if started.data["dispatcher"].py_func.__module__.startswith("freqsgd."):
                _tell()

        def on_end(self, ended: Any) -> None:
            pass

    event.register("numba:compile", Listener())


@cache
def _tell() -> None:
    print(TOLD, file=sys.stderr, flush=True)


def compiled(function: Any) -> Any:
    """Compile a function, once for a machine."""
    return _Compiled(function, cache=True, nogil=True)


def inlined(function: Any) -> Any:
    """Let a function be compiled as a part of those that call it."""
    return _Compiled(function, inline="always")


def called(function: Any) -> Any:
    """Let a function be called by compiled ones, not inlined: it is long."""
    return _Compiled(function, nogil=True)
