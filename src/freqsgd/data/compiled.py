"""Loops over data, compiled; they hold no lock, so that threads may run them side by side."""

from __future__ import annotations

from typing import Any

from numba import njit

__all__ = ["compiled", "inlined"]


def compiled(function: Any) -> Any:
    """Compile a function, once for a machine."""
    return njit(cache=True, nogil=True)(function)


def inlined(function: Any) -> Any:
    """Let a function be compiled as a part of those that call it."""
    return njit(inline="always")(function)
