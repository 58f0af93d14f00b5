"""The theorems where they must hold, on problems that are simulated."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs
from typer.testing import CliRunner

from freqsgd.cli.app import app
from freqsgd.documents.theory import ProblemCorollary, Theory
from freqsgd.errors import DataError
from freqsgd.theory import bounds
from freqsgd.theory.experiment import run
from freqsgd.theory.improvement import counting_factor, error_improvement
from freqsgd.theory.settings import Settings
from freqsgd.theory.simulation import simulate
from freqsgd.theory.statements import NAMES
from tests.lossless import check_lossless

SIZES = {"users": 16, "items": 16, "iterations": 400_000, "repetitions": 60}
TAILS = ("exponential", "polynomial")
SMALL = {"users": 4, "items": 3, "iterations": 3000, "repetitions": 6}


@pytest.fixture(scope="module")
def documents():
    return {tail: run(Settings(tail=tail, **SIZES)) for tail in TAILS}


@pytest.fixture(scope="module")
def uniform():
    return run(Settings(tail="uniform", **{**SMALL, "items": 4}))


def by_optimizer(entries):
    return {entry.optimizer: entry for entry in entries}


def known(document):
    problem, tokens = document.problem, document.tokens
    return np.array(tokens.p), np.array(tokens.sigma2), problem.gap, problem.smoothness


@pytest.mark.parametrize("tail", TAILS)
def test_measured_errors_are_below_the_explicit_bounds(documents, tail):
    document = documents[tail]
    p, sigma2, gap, L = known(document)
    T, G = SIZES["iterations"], document.problem.gradient_bound
    limits = {
        "sgd": bounds.sgd_bound(p, sigma2, gap, L, T),
        "fasgd": bounds.fasgd_bound(p, sigma2, gap, L, T),
        "cfsgd": bounds.cfsgd_bound(p, sigma2, gap, L, T, G),
    }
    for name, entry in by_optimizer(document.runs).items():
        assert entry.invalid == 0
        if name in limits:
            assert (np.array(entry.high) < limits[name]).all()
            assert (np.array(entry.high) < entry.bound).all()


@pytest.mark.parametrize("optimizer", ["fasgd", "cfsgd"])
@pytest.mark.parametrize("tail", TAILS)
def test_the_improvement_over_sgd_grows_along_the_tail(documents, tail, optimizer):
    slope = by_optimizer(documents[tail].improvements)[optimizer].slope
    assert 0 < slope.low < slope.measured < slope.high
    assert slope.predicted == {"exponential": 0.1, "polynomial": 1.0}[tail]


@pytest.mark.parametrize("optimizer", ["fasgd", "cfsgd"])
@pytest.mark.parametrize("tail", TAILS)
def test_top_tokens_are_within_a_constant_of_sgd(documents, tail, optimizer):
    document = documents[tail]
    top = document.problem.top_users
    entry = by_optimizer(document.improvements)[optimizer]
    worst = {"exponential": math.sqrt(2 / (1 - 1 / math.e)), "polynomial": 4}[tail]
    assert 0 < top < SIZES["users"]
    assert (np.array(entry.measured[:top]) > 1 / worst).all()


@pytest.mark.parametrize("tail", TAILS)
def test_predictions_are_those_of_the_theory(documents, tail):
    document = documents[tail]
    p, sigma2, gap, L = known(document)
    entries = by_optimizer(document.improvements)
    np.testing.assert_allclose(entries["fasgd"].bound, error_improvement(p, sigma2))
    counted = error_improvement(p, sigma2) / counting_factor(p, sigma2, gap, L)
    np.testing.assert_allclose(entries["cfsgd"].bound, counted)
    np.testing.assert_allclose(
        entries["fasgd"].iterations, 1 / (p * (p @ sigma2 / (p**2 @ sigma2)))
    )
    assert entries["sbcd"].bound is entries["sbcd"].corollary is entries["sbcd"].slope is None


@pytest.mark.parametrize("tail", TAILS)
def test_every_statement_is_checked_and_holds(documents, tail):
    checks = documents[tail].checks
    assert [check.statement for check in checks if not check.holds] == []
    words = " ".join(check.statement for check in checks)
    for part in ("Assumption 1", "Proposition 1", "Theorem 1", "Theorem 2", "Theorem 3", "tail"):
        assert part in words


def test_uniform_frequencies_make_fasgd_and_sgd_one(uniform):
    runs = by_optimizer(uniform.runs)
    np.testing.assert_allclose(runs["fasgd"].measured, runs["sgd"].measured, rtol=1e-6)
    assert any("Corollary 1" in check.statement and check.holds for check in uniform.checks)
    assert uniform.problem.rate is None


def test_sides_of_other_sizes_have_one_rate_each_and_no_corollary():
    document = run(Settings(tail="uniform", **SMALL))
    assert document.problem.corollary == ProblemCorollary(False, "|U| = 4 is not |V| = 3")
    entries = by_optimizer(document.improvements)
    assert entries["fasgd"].corollary is None
    steps = by_optimizer(document.runs)["fasgd"].steps
    assert steps[0] == pytest.approx(math.sqrt(4 / 3) * steps[-1])
    (check,) = [check for check in document.checks if "Corollary" in check.statement]
    assert check.holds
    assert "one rate for each side" in check.statement


def test_a_tail_that_no_corollary_covers_is_not_called_one():
    settings = Settings("polynomial", 1.5, users=12, items=12, iterations=20_000, repetitions=4)
    document = run(settings)
    words = [check.statement for check in document.checks]
    assert not any(word.startswith("Corollary, part") for word in words)
    assert any(word.startswith("No corollary") and "nu = 1.5 is below 2" in word for word in words)


def test_bounds_that_say_less_than_the_start_are_counted(documents):
    """Far from T large enough, a bound may be above what there was before the first iteration."""
    for document in documents.values():
        for entry in document.runs[:3]:
            small = (np.array(entry.bound) < document.tokens.start).sum()
            theorem = {"fasgd": "Theorem 1", "sgd": "Theorem 2", "cfsgd": "Theorem 3"}
            (check,) = [
                check
                for check in document.checks
                if check.statement.startswith(theorem[entry.optimizer])
            ]
            assert f"below the error at the start for {small} of 32 tokens" in check.detail


def test_where_all_steps_are_capped_the_methods_are_one_and_nothing_is_guaranteed():
    settings = Settings(radius=100.0, users=9, items=9, iterations=20_000, repetitions=4)
    entries = by_optimizer(run(settings).improvements)
    assert entries["fasgd"].corollary is None
    assert entries["fasgd"].measured == (1.0,) * 18
    assert entries["fasgd"].slope.measured == 0


def test_the_last_iterate_can_be_looked_at_instead():
    entries = {
        output: by_optimizer(run(Settings(output=output, **SMALL)).runs)
        for output in ("random", "last")
    }
    for name in NAMES:
        assert entries["last"][name].measured != entries["random"][name].measured
        assert entries["last"][name].steps == entries["random"][name].steps


def test_the_same_seed_gives_the_same_document_whatever_the_threads():
    documents = (run(Settings(**SMALL), threads=threads) for threads in (1, 2))
    one, other = (structs.replace(each, created="", seconds=0) for each in documents)
    assert one == other
    assert run(Settings(seed=1, **SMALL)).tokens.sigma2 != one.tokens.sigma2


def test_too_few_iterations_are_refused_with_the_number_that_is_needed():
    with pytest.raises(DataError, match="Theorem 3 needs at least") as refused:
        run(Settings(**{**SMALL, "iterations": 20}))
    words = str(refused.value).split("at least ")[1]
    needed = int(words.split(" ")[0].replace(",", ""))
    assert needed > 20


def test_the_iterations_that_theorem_3_needs_are_enough():
    settings = {"users": 8, "items": 8, "repetitions": 10}
    needed = run(Settings(iterations=3000, **settings)).problem.minimum_iterations
    assert 50 < needed < 2000
    run(Settings(iterations=round(1.1 * needed), **settings))
    with pytest.raises(DataError, match="Theorem 3 needs at least"):
        run(Settings(iterations=round(0.8 * needed), **settings))


def test_a_ball_that_rows_leave_makes_the_run_invalid(monkeypatch):
    monkeypatch.setattr("freqsgd.theory.simulation.START_NORM", 0.99)
    document = run(Settings(**SMALL))
    left = [check for check in document.checks if "ball" in check.statement]
    assert [check.holds for check in left] == [False]
    assert "left out" in left[0].detail
    assert any(entry.invalid for entry in document.runs)


def test_a_ball_that_all_rows_leave_is_an_error(monkeypatch):
    def gone(problem, method, times, *rest, **options):
        return replace(simulate(problem, method, times, *rest, **options), left=times[:, -1] - 1)

    monkeypatch.setattr("freqsgd.theory.experiment.simulate", gone)
    with pytest.raises(DataError, match=r"left the ball of radius 4 in 6 of 6 .* larger --radius"):
        run(Settings(**SMALL))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tail": "fat"}, "tail must be one of uniform, exponential, polynomial"),
        ({"rate": -1.0}, "tau must be a finite number > 0"),
        ({"tail": "polynomial", "rate": math.nan}, "nu must be a finite number > 0"),
        ({"rate": 1000.0}, "the rarest would never be drawn"),
        ({"tail": "uniform", "rate": 1.0}, "uniform distribution has no rate"),
        ({"output": "best"}, "unknown output 'best'"),
        ({"users": 1}, "users must be at least 2"),
        ({"dim": 0}, "dim must be at least 1"),
        ({"radius": math.inf}, r"radius must lie between 0.01 and 1000, got inf"),
        ({"iterations": 10**12}, "iterations must be at most"),
        ({"repetitions": 1}, "repetitions must be at least 2"),
        ({"users": 10_000, "items": 10_000}, "10,000 items x 6 repetitions are more than"),
        ({"dim": 100_000}, "7 rows of 100,000 x 6 repetitions are more than"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options, words):
    with pytest.raises(DataError, match=words):
        run(Settings(**{**SMALL, **options}))


def test_the_command_writes_document_page_and_pictures(tmp_path):
    out = tmp_path / "out"
    command = "theory --users 4 --items 3 --iterations 3000 --repetitions 6 --out"
    result = CliRunner().invoke(app, [*command.split(), str(out)])
    assert result.exit_code == 0, result.output
    assert "Theorem 1" in result.output
    assert f"report: {out / 'theory.html'}" in result.output
    document = json.loads((out / "theory.json").read_text())
    assert document["kind"] == "theory"
    assert document["problem"]["users"] == 4
    check_lossless(document, Theory)
    assert b"Theorem 3" in (out / "theory.html").read_bytes()
    assert sorted(path.suffix for path in out.iterdir()).count(".png") >= 3


def test_the_command_refuses_a_folder_that_cannot_be_made_before_it_simulates(tmp_path):
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(app, ["theory", "--out", str(tmp_path / "file")])
    assert isinstance(result.exception, DataError)
    assert "cannot make the folder" in str(result.exception)
