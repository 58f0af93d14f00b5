from __future__ import annotations

import subprocess
import sys


def loaded_by(code: str) -> set[str]:
    report = f"import sys\n{code}\nprint(' '.join(m for m in sys.modules if '.' not in m))"
    run = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_importing_the_package_loads_neither_numba_nor_other_extras():
    assert not {"numba", "llvmlite", "lightning", "pandas"} & loaded_by("import freqsgd")


def test_a_plain_step_needs_no_numba():
    code = (
        "import torch, freqsgd\n"
        "emb = torch.nn.Embedding(3, 2, sparse=True)\n"
        "opt = freqsgd.CFSGD(emb.parameters(), 0.1, fused=False)\n"
        "emb(torch.tensor([1])).sum().backward(); opt.step()"
    )
    assert "numba" not in loaded_by(code)
    assert "numba" in loaded_by(code.replace("fused=False", "fused=True"))


def test_unknown_attributes_are_still_errors():
    import freqsgd

    assert not hasattr(freqsgd, "no_such_name")
