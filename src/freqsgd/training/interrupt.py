"""Ctrl-C during training."""

from __future__ import annotations

import signal
import threading
from typing import Any

__all__ = ["Interrupt", "InterruptedFitError"]


class InterruptedFitError(Exception):
    """Ctrl-C came; what was done so far is saved where there is a folder."""


class Interrupt:
    """Notices Ctrl-C, so that training can stop between steps; a second one stops at once."""

    def __init__(self) -> None:
        self.came = False

    def __enter__(self) -> Interrupt:
        self._before: Any = None
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, number: int, frame: Any) -> None:
        self.came = True
        signal.signal(signal.SIGINT, self._before)
