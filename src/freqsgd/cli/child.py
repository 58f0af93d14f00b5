"""A command of freqsgd as the child of another process: ``python -m freqsgd.cli.child PID ...``.

It ends when its parent does, however that ends, and it stops at SIGINT even if the parent was
started with that signal ignored, as shells do in the background.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time

__all__ = ["end_with_parent", "main"]

_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux' prctl
_LOOK_SECONDS = 0.5


def end_with_parent(parent: int) -> None:
    """End this process at once when its parent is gone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before it could be asked for
            os.kill(os.getpid(), signal.SIGKILL)
    else:
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    os._exit(1)  # from any thread, and on systems without SIGKILL


def main() -> None:
    """Run the command that follows the parent's number."""
    _, parent, *command = sys.argv
    end_with_parent(int(parent))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["freqsgd", *command]
    from freqsgd.cli import main as freqsgd

    freqsgd()


if __name__ == "__main__":
    main()
