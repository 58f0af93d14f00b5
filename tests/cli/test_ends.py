"""How a command ends that is interrupted, or whose output cannot be written."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time

import pytest

PROGRAM = [sys.executable, "-m", "freqsgd"]


@pytest.mark.parametrize("seconds", [0.05, 0.3, 0.6, 1.0])
def test_ctrl_c_while_a_command_starts_leaves_no_traceback(tmp_path, seconds):
    (tmp_path / "clicks.csv").write_text("user,item,click\n" + "a,x,0\nb,y,1\n" * 50)
    table = ["--data", "clicks.csv", "--label", "click", "--features", "user,item"]
    program = "import freqsgd.cli; print('up', flush=True); freqsgd.cli.main()"
    started = subprocess.Popen(
        [sys.executable, "-c", program, "train", *table],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"FREQSGD_CACHE": str(tmp_path / "cache")},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert started.stdout.readline() == "up\n"
    time.sleep(seconds)
    started.send_signal(signal.SIGINT)
    _, messages = started.communicate()
    assert "Traceback" not in messages
    assert started.returncode == 130


def test_ctrl_c_in_a_callback_that_must_not_raise_ends_the_command():
    program = (
        "import signal, sys, weakref, freqsgd.cli, freqsgd.cli.app as app\n"
        "class Thing: pass\n"
        "def run():\n"
        "    thing = Thing()\n"
        "    there = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGINT))\n"
        "    del thing\n"
        "    print('went on')\n"
        "app.run = run\n"
        "freqsgd.cli.main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "freqsgd: interrupted\n"


def test_a_reader_that_leaves_ends_a_command_quietly():
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m freqsgd data list | true; echo ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    assert done.stdout in ("1\n", "0\n")  # 0 if all was written before the reader left


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("data list", "cannot write the output: File too large"),
        ("train --samples 3000 --dim 2 --epochs 1", "cannot write model/checkpoint.safetensors"),
    ],
)
def test_a_full_disk_is_one_line(tmp_path, command, said):
    def no_room() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    with (tmp_path / "full").open("w") as full:
        done = subprocess.run(
            [*PROGRAM, *command.split()],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            preexec_fn=no_room,
            env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    (line,) = [line for line in done.stderr.splitlines() if "error" in line]
    assert line.startswith(f"freqsgd: error: {said}")


def test_closed_output_is_one_line():
    command = f"{sys.executable} -m freqsgd data list >&-"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "freqsgd: error: cannot write the output: standard output is closed\n"
