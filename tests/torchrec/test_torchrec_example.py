from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.torchrec.ranks import run_ranks

EXAMPLE = Path(__file__).parents[2] / "examples" / "torchrec_own_model.py"


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_loss_of_the_example_falls(ranks: int) -> None:
    """Alone it is an ordinary script."""
    if ranks == 1:
        run = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True)
    else:
        run = run_ranks(EXAMPLE, ranks=ranks)
    assert run.returncode == 0, run.stderr
    assert "Warning" not in run.stderr
    losses = [float(loss) for loss in re.findall(r"loss (\S+)", run.stdout)]
    assert len(losses) == 4
    assert losses[-1] < losses[0] - 0.05
