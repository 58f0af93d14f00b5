from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "film_neighbours.py"


@pytest.mark.skipif(not os.environ.get("FREQSGD_DATA"), reason="FREQSGD_DATA names no folder")
def test_the_films_nearest_to_a_film_are_its_kind():
    run = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, check=True)
    lines = run.stdout.splitlines()
    assert lines[1].endswith("Toy Story 2 (1999)")
    animated = ("Aladdin", "Tarzan", "Beauty and the Beast", "Bug's Life", "Lion King", "Mulan")
    assert sum(any(name in line for name in animated) for line in lines) >= 3
