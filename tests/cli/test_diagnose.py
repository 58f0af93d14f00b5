from __future__ import annotations

import json

from freqsgd.documents.results import Results
from tests.cli.test_commands import GENERATED, _own_cache, error, run
from tests.lossless import check_lossless

__all__ = ["_own_cache"]  # a fixture


def test_a_diagnosed_comparison_prints_what_it_found_and_resumes_to_the_same(tmp_path):
    command = ["compare", *GENERATED, "--diagnose", "--out", "out"]
    printed = run(*command, "--optimizers", "sgd", cwd=tmp_path).stdout
    assert "Second moments" not in printed
    printed = run(*command, "--optimizers", "sgd,cfsgd,adagrad", "--resume", cwd=tmp_path).stdout
    assert "Second moments of Adagrad: After epoch 2" in printed
    assert "Gradients of vectors, SGD and CF-SGD: After epoch 2" in printed
    assert "Error left after epoch 2" in (tmp_path / "out" / "report.html").read_text()
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    check_lossless(results, Results)
    assert all(len(run["diagnosis"]["gradients"]) == 3 for run in results["runs"])
    refused = error("compare", *GENERATED, "--out", "out", "--resume", cwd=tmp_path)
    assert "written with --diagnose True" in refused
