"""The machine: what it is, and how much memory a process has."""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from freqsgd.documents import written
from freqsgd.documents.results import Machine


def describe_machine(threads: int | None = None) -> dict[str, Any]:
    """Return processor, cores and versions, as ``results.json`` has them."""
    import torch

    return written(
        Machine(
            cpu=_processor(),
            cores=os.cpu_count(),
            threads=threads or torch.get_num_threads(),
            torch=str(torch.__version__),
            python=platform.python_version(),
        )
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(": ", 1)[1] for line in lines if line.startswith("model name"))
    except (OSError, StopIteration, IndexError):
        return platform.processor() or platform.machine()


_CGROUPS = Path("/sys/fs/cgroup")
_FILES = {  # limit, use, and the part of the use that is files and can be given up
    "": ("memory.max", "memory.current", "inactive_file"),
    "memory": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


def available_memory(root: Path = Path("/")) -> int | None:
    """Return the bytes that machine and control groups leave this process; None if unknown."""
    of_machine = _kilobytes(root / "proc/meminfo", "MemAvailable:")
    return min([*of_machine, *_of_groups(root)], default=None)


def byte_size(count: float) -> str:
    """Return a number of bytes in decimal units, as messages and tables write it.

    Example:
        >>> byte_size(512), byte_size(21_760_000_000_000)
        ('512 B', '21.8 TB')
    """
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:,.1f} {unit}"
    return f"{count:.0f} B"


def forget_peak() -> None:
    """Let :func:`peak_memory` begin anew, where the system knows how."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory() -> int | None:
    """Return the most that this process has held since :func:`forget_peak`, if known."""
    return next(_kilobytes(Path("/proc/self/status"), "VmHWM:"), None)


def _of_groups(root: Path) -> Iterator[int]:
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        kind = "memory" if "memory" in controllers.split(",") else controllers
        if kind not in _FILES:
            continue
        mount = root / _CGROUPS.relative_to("/") / kind
        group = mount / path.strip("/")
        for folder in (group, *group.parents):
            yield from _left(folder, *_FILES[kind])
            if folder == mount:
                break


def _left(folder: Path, limit: str, use: str, files: str) -> Iterator[int]:
    """Yield what one control group leaves, if it has a limit."""
    for most in _lines(folder / limit):
        if most.isdigit():
            used = sum(int(line) for line in _lines(folder / use))
            given_up = (line.split() for line in _lines(folder / "memory.stat"))
            spare = sum(int(value) for name, value in given_up if name == files)
            yield int(most) - used + spare


def _kilobytes(path: Path, name: str) -> Iterator[int]:
    return (int(line.split()[1]) * 1024 for line in _lines(path) if line.startswith(name))


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
