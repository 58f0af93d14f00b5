"""What the terminal shows of one-pass runs."""

from __future__ import annotations

from typing import Any

from freqsgd.cli.results import print_results
from tests.report.made_up_one_pass import make_one_pass, make_streamed


def printed(capsys, results: dict[str, Any]) -> list[str]:
    print_results(results)
    return capsys.readouterr().out.splitlines()


def test_a_line_per_optimizer_with_its_difference_to_adagrad(capsys):
    results = make_one_pass()
    _, about, head, *lines, best = printed(capsys, results)
    assert about == (
        "clicks-small: 10 days, 1,800,000 examples learned once, 200,000 for evaluation, "
        "26 fields, 1,000,026 rows; fm of dimension 16"
    )
    assert " ".join(head.split()) == (
        "optimizer lr train NE eval NE vs adagrad eval AUC calibration state MB examples/s"
    )
    base = results["runs"][2]["test_ne"]
    for line, run in zip(lines, results["runs"], strict=True):
        apart = 100 * (run["test_ne"] / base - 1)
        assert line.split() == [
            run["optimizer"],
            f"{run['lr']:g}",
            f"{run['train_ne']:.5f}",
            f"{run['test_ne']:.5f}",
            "-" if run["optimizer"] == "adagrad" else f"{apart:+.3f}%",
            f"{run['test_auc']:.4f}",
            f"{run['test_calibration']:.4f}",
            f"{run['state_bytes'] / 1e6:.3f}",
            f"{run['samples_per_second']:,.0f}",
        ]
    assert best == (
        "best that any model could reach: train NE 0.80500, eval NE 0.80100, eval AUC 0.76200"
    )


def test_one_run_has_nothing_to_differ_from(capsys):
    none = dict.fromkeys(("test_ne", "test_auc", "test_calibration"))
    results = make_one_pass(make_streamed("cfsgd", **none), best_possible=None)
    results["splits"]["test"] = None
    _, about, head, line = printed(capsys, results)
    assert "0 for evaluation" in about
    assert "vs" not in head
    assert line.split()[3:6] == ["-", "-", "-"]


def test_what_went_wrong_and_what_was_left_out(capsys):
    skipped = ["day-3/[b].parquet: cut off at byte 12"]
    runs = [
        make_streamed("sgd", stopped="diverged", error="not finite at lr 40", test_ne=None),
        make_streamed("cfsgd", skipped=skipped),
        make_streamed("adagrad", skipped=skipped),
    ]
    lines = printed(capsys, make_one_pass(*runs))
    assert lines[-2:] == ["sgd diverged: not finite at lr 40", f"left out: {skipped[0]}"]
    assert lines[3].split()[2:5] == ["-", "-", "-"]


def test_a_rate_at_the_end_of_its_grid_is_told_with_what_to_do(capsys):
    runs = [make_streamed("cfsgd", lr=2.0, search_edge=True), make_streamed("adagrad")]
    assert printed(capsys, make_one_pass(*runs))[-1] == (
        "cfsgd: the best rate is the largest, 2, of those tried; a better one may lie beyond it "
        "(--lr cfsgd=RATE)"
    )


def test_one_of_a_kind_is_no_plural(capsys):
    results = make_one_pass(make_streamed("cfsgd"))
    results["dataset"] |= {"days": ["1"], "fields": 1}
    about = printed(capsys, results)[1]
    assert "clicks-small: 1 day, " in about
    assert " 1 field, " in about
