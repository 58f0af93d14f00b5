"""Figures that benchmarks hand over to ``python -m benchmarks``."""

from __future__ import annotations

import json
import os
from pathlib import Path

__all__ = ["VARIABLE", "figure", "told"]

VARIABLE = "FREQSGD_FIGURES"  # of the environment: a file that takes a line for each figure


def figure(claim: str, value: float, unit: str = "x") -> None:
    """Print a figure, and hand it over where that was asked for."""
    print(f"{claim}: {told(value, unit)}", flush=True)
    if path := os.environ.get(VARIABLE):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"claim": claim, "value": value, "unit": unit}) + "\n")


def told(value: float, unit: str) -> str:
    """Return a value and its unit as text; a ratio has three digits, others have four."""
    digits = 3 if unit == "x" else 4
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.{digits}g} {unit}"
