"""Stands for freqsgd in tests of the runner: ``stub.py PARENT compare --do WHAT --out FOLDER``.

It keeps a checkpoint of its own, so that tests see whether it went on or began again.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path

from freqsgd.paper.process import follow_parent


def main() -> None:
    follow_parent(int(sys.argv[1]))
    command = sys.argv[2:]
    resume = "--resume" in command
    what, out = (command[command.index(name) + 1] for name in ("--do", "--out"))
    folder = Path(out)
    checkpoint = folder / "checkpoint"
    if checkpoint.exists() and not resume:
        sys.exit("freqsgd: error: there is a checkpoint, and no --resume")
    attempts = [*(json.loads(checkpoint.read_text()) if resume else []), command]
    folder.mkdir(exist_ok=True)
    checkpoint.write_text(json.dumps(attempts))
    print("epoch 1", flush=True)
    run = {"optimizer": "cfsgd", "examples": len(attempts), "stopped": "too soon"}
    document = {"schema": 1, "runs": [run]}
    name = {"theory": "theory.json"}.get(command[0], "results.json")
    if what == "fail":
        print("freqsgd: error: ratings.dat is damaged", file=sys.stderr)
        sys.exit(2)
    if what == "crash":
        signal.raise_signal(signal.SIGSEGV)
    if what == "partial":
        (folder / name).write_text(json.dumps(document))
    if what in ("partial", "hang") and len(attempts) == 1:
        wait()
    if what == "stubborn":
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        wait()
    run["stopped"] = "at its end"
    (folder / name).write_text(json.dumps(document))
    (folder / "report.html").write_text("<html>")


def wait() -> None:
    """Do nothing, until a signal comes."""
    print("waiting", flush=True)
    try:
        time.sleep(600)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        sys.exit(130)


if __name__ == "__main__":
    main()
