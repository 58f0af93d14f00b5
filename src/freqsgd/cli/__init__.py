"""The command line: what surrounds every command, from the first import to the last output."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
from typing import Any

__all__ = ["main"]

_INTERRUPTED = 130  # as shells report a program that Ctrl-C has ended
_TOLD = "freqsgd: interrupted"
_OURS = ("click", "jinja2", "polars", "rich", "safetensors", "typer", "vl_convert")
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def main() -> None:
    """Run ``freqsgd``; bad input ends it with one line and exit code 2, Ctrl-C with 130."""
    interrupts: list[int] = []

    def interrupt(number: int, frame: Any) -> None:
        interrupts.append(number)
        signal.default_int_handler(number, frame)

    handled = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not under nohup
    if handled:
        signal.signal(signal.SIGINT, interrupt)
        sys.unraisablehook = _end_if_interrupted
    if sys.stdout is None:  # closed by whoever started the program
        _end("error: cannot write the output: standard output is closed")
    try:
        try:
            from freqsgd.cli.app import run

            run()
        finally:
            if handled:
                signal.signal(signal.SIGINT, signal.SIG_DFL)  # a second one ends it at once
            sys.stdout.flush()
    except ModuleNotFoundError as missing:
        if missing.name not in _OURS:
            raise
        _end(f"the command line needs {missing.name}: pip install 'freqsgd[cli]'")
    except BrokenPipeError:  # whoever read the output, such as head, has seen enough
        _drop_output()
        sys.exit(1)
    except OSError as error:
        if error.errno not in _UNWRITABLE or error.filename is not None:
            raise
        _drop_output()
        _end(f"error: cannot write the output: {error.strerror}")
    except BaseException as error:
        # An import that is interrupted may raise anything, which a command may take for bad input.
        ended = isinstance(error, SystemExit) and error.code in (None, 0, _INTERRUPTED)
        if not interrupts or ended:
            raise
        print(_TOLD, file=sys.stderr)
        sys.exit(_INTERRUPTED)


def _end_if_interrupted(unraisable: Any) -> None:
    """End the program where Python would drop Ctrl-C: in callbacks that must not raise."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        os.write(2, f"{_TOLD}\n".encode())
        os._exit(_INTERRUPTED)
    sys.__unraisablehook__(unraisable)


def _end(message: str) -> None:
    print(f"freqsgd: {message}", file=sys.stderr)
    sys.exit(2)


def _drop_output() -> None:
    """Keep Python from writing again, when it exits, what could not be written."""
    with contextlib.suppress(OSError), open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
