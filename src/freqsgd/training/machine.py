"""The machine that something was measured on."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

import torch

__all__ = ["describe_machine"]


def describe_machine(threads: int | None = None) -> dict[str, Any]:
    """Processor, cores and versions, as ``results.json`` has them; threads: None for torch's."""
    return {
        "cpu": _processor(),
        "cores": os.cpu_count(),
        "threads": threads or torch.get_num_threads(),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(": ", 1)[1] for line in lines if line.startswith("model name"))
    except (OSError, StopIteration, IndexError):
        return platform.processor() or platform.machine()
