"""The search: what it tries, when it stops a trial, what comes of it, and going on after a kill."""

from __future__ import annotations

import json
import sqlite3
import statistics
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("optuna", reason="needs optuna: pip install 'freqsgd[tune]'")

import optuna

from freqsgd.errors import DataError, InterruptedFitError
from freqsgd.optimizers import OPTIMIZERS, Rule
from freqsgd.recommender.find_lr import find_lr
from freqsgd.recommender.search_space import (
    apply,
    default,
    parameters,
    search_space,
    suggest,
    typical_frequency,
)
from freqsgd.recommender.settings import Settings
from freqsgd.recommender.training import fit
from freqsgd.recommender.trials import FIRST, Outcome, freeze, hopeless, propose, thaw
from freqsgd.recommender.tune import Study, tune
from tests.forks import fork
from tests.recommender.made_up import dataset

QUICK = Settings(dim=4, batch_size=100, epochs=8, patience=2)
OPTIMIZERS_TRIED = ("cfsgd", "adam")
TRIALS = 12
FREQUENCY = typical_frequency(dataset())


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A search that nothing interrupted."""
    out = tmp_path_factory.mktemp("whole")
    return tune(dataset(), OPTIMIZERS_TRIED, QUICK, out=out, trials=TRIALS, seeds=2, threads=1)


def timeless(results):
    """What must be the same whenever and however often the search was interrupted."""

    def strip(value):
        if isinstance(value, dict):
            timed = ("seconds", "samples_per_second", "created")
            return {k: strip(v) for k, v in value.items() if k not in timed}
        return [strip(entry) for entry in value] if isinstance(value, list) else value

    return strip(json.loads(json.dumps(results, allow_nan=False)))


# ---- the space -----------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_points_lie_in_their_ranges_and_come_back_from_optuna(optimizer):
    space = search_space(optimizer, Settings(), 0.2)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    left_out = set()
    for _ in range(100):
        trial = study.ask()
        point = suggest(trial, space)
        assert point == suggest(optuna.trial.FixedTrial(trial.params), space)
        assert trial.params == parameters(point, space)
        for name, value in point.items():
            if value is None:
                left_out.add(name)
            else:
                assert space[name].low <= value <= space[name].high
        apply(point, optimizer, Settings(), 0.01)
    assert left_out == {"decay_epochs"}
    off = {name for name, each in space.items() if each.off is not None}
    point = default(space)
    assert {name for name, value in point.items() if value is None} == {"decay_epochs", *off}
    assert suggest(optuna.trial.FixedTrial(parameters(point, space)), space) == point


def test_a_point_becomes_a_rule_and_settings():
    point = {
        "lr": 2.0,
        "init_scale": 0.5,
        "linear_lr_scale": 0.3,
        "decay_epochs": 12,
        "typical_decay": 0.02,
        "linear_decay_scale": 3.0,
        "weight_decay_power": 0.5,
        "max_lr_ratio": 60.0,
    }
    rule, settings = apply(point, "cfsgd", Settings(dim=8), 0.0025)
    assert rule == Rule("cfsgd", 2.0, 0.02 * 0.05, 0.5, 120.0, 0.3, 3.0)
    assert settings == Settings(dim=8, init_scale=0.5, epochs=12, lr_decay="linear")
    for name in ("typical_decay", "weight_decay_power", "max_lr_ratio"):
        del point[name]
    dense = {**point, "decay_epochs": None, "weight_decay": 1e-5}
    rule, settings = apply(dense, "adam", Settings(dim=8), 0.0025)
    assert rule == Rule("adam", 2.0, 1e-5, linear_lr_scale=0.3, linear_decay_scale=3.0)
    assert settings == Settings(dim=8, init_scale=0.5)


def test_the_decay_of_a_typical_token_does_not_depend_on_the_power():
    data = dataset()
    train = data.ids[data.splits.train]
    logs = [np.log(np.mean(train[:, f] == token)) for row in train for f, token in enumerate(row)]
    frequency = typical_frequency(data)
    assert frequency == pytest.approx(np.exp(np.mean(logs)))
    for power in (0.5, 0.7, 1.0):
        space = search_space("cfsgd", QUICK, 1.0)
        point = {**default(space), "typical_decay": 0.02, "weight_decay_power": power}
        rule, _ = apply(point, "cfsgd", QUICK, frequency)
        assert rule.weight_decay * frequency**-power == pytest.approx(0.02)


def test_a_falling_rate_ends_with_the_epochs_that_were_asked_for():
    space = search_space("adam", Settings(epochs=3), 0.001)
    assert (space["decay_epochs"].low, space["decay_epochs"].high) == (3, 3)


@pytest.mark.parametrize("model", ["fm", "deepfm"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_the_first_point_is_plain_and_within_the_ranges(optimizer, model):
    settings = Settings(model=model)
    space = search_space(optimizer, settings, 0.2)
    first = default(space)
    rule, same = apply(first, optimizer, settings, 0.01)
    assert same == settings
    assert (rule.lr, rule.linear_lr_scale, rule.linear_decay_scale) == (0.2, 1, 1)
    assert (rule.weight_decay, rule.max_lr) == (0, None)
    for name, value in first.items():
        assert value is None or space[name].low <= value <= space[name].high
    outcome = Outcome(first, "complete", [0.7], 1.0)
    assert thaw(freeze(outcome, space), space) == outcome


def outcomes(optimizer, count):
    """A history that no training made."""
    space = search_space(optimizer, QUICK, 0.2)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    for number in range(count):
        point = suggest(study.ask(), space)
        state = ("complete", "pruned", "complete", "diverged")[number % 4]
        yield Outcome(point, state, [0.5, 0.6 + 0.001 * number], 0.25 * number)


def test_optuna_keeps_all_there_is_to_know_of_a_trial():
    space = search_space("cfsgd", QUICK, 0.2)
    for outcome in outcomes("cfsgd", 8):
        assert thaw(freeze(outcome, space), space) == outcome


def test_what_is_tried_next_depends_on_history_seed_and_name_alone():
    space = search_space("cfsgd", QUICK, 0.2)
    history = list(outcomes("cfsgd", 16))
    point = propose(history, space, 3, "cfsgd")
    assert propose(history, space, 3, "cfsgd") == point
    assert propose(history, space, 4, "cfsgd") != point
    assert propose(history, space, 3, "fasgd") != point
    better = replace(history[0], curve=[0.9])
    assert propose([better, *history[1:]], space, 3, "cfsgd") != point


# ---- stopping early ------------------------------------------------------------------------------


def test_trials_below_the_lowest_quarter_stop():
    others = [[0.60 + k / 100, 0.70 + k / 100, 0.71 + k / 100] for k in range(FIRST + 1)]
    quarter = statistics.quantiles([other[1] for other in others], n=4, method="inclusive")[0]
    assert hopeless([0.5, quarter - 1e-6], None, others)
    assert not hopeless([0.5, quarter + 1e-6], None, others)
    assert not hopeless([0.5, 0.0], None, others[: FIRST - 1])  # too few to compare with
    assert not hopeless([0.0], None, others)  # too soon


def test_trials_that_ended_sooner_count_with_their_best():
    others = [[0.7, 0.8]] * FIRST
    assert hopeless([0.7, 0.75, 0.79], None, others)
    assert not hopeless([0.7, 0.75, 0.81], None, others)


def test_a_falling_rate_is_judged_from_half_its_fall_on():
    others = [[0.7] * 20] * FIRST
    curve = [0.6] * 20
    assert [hopeless(curve[:epoch], 12, others) for epoch in range(1, 8)] == [False] * 5 + [
        True
    ] * 2
    assert [hopeless(curve[:epoch], None, others) for epoch in range(1, 4)] == [False, True, True]


def test_a_stopped_trial_is_the_start_of_the_run_it_would_have_been(whole):
    stopped = [
        (study["optimizer"], trial)
        for study in whole["tuning"]["studies"]
        for trial in study["trials"]
        if trial["state"] == "pruned"
    ]
    assert stopped
    for optimizer, trial in stopped:
        rule, settings = apply(trial["params"], optimizer, QUICK, FREQUENCY)
        _, record = fit(dataset(), rule, settings, threads=1)
        assert trial["epochs"] < len(record["epochs"])
        reached = [epoch["val_auc"] for epoch in record["epochs"][: trial["epochs"]]]
        assert trial["value"] == max(reached)


# ---- the results ---------------------------------------------------------------------------------


def test_every_optimizer_has_as_many_trials_and_its_best_is_the_best(whole):
    studies = whole["tuning"]["studies"]
    assert [study["optimizer"] for study in studies] == list(OPTIMIZERS_TRIED)
    for study in studies:
        assert [trial["number"] for trial in study["trials"]] == list(range(TRIALS))
        ended = [trial for trial in study["trials"] if trial["state"] == "complete"]
        tried = max(ended, key=lambda trial: trial["value"])
        best, rates = study["best"], [(p["val_auc"] or 0, -p["lr"]) for p in study["lr_sweep"]]
        assert best["number"] == tried["number"]
        assert best["value"] == max(rates)[0] >= tried["value"]
        if best["from"] == "trial":
            assert best == {**tried, "from": "trial"}
        else:
            assert best["value"] > tried["value"]
            assert best["params"] == {**tried["params"], "lr": -max(rates)[1]}
        optimizer, first = study["optimizer"], study["trials"][0]["params"]
        assert first["lr"] == find_lr(dataset(), Rule(optimizer, 1.0), QUICK, threads=1)


def test_runs_are_the_best_settings_with_each_seed(whole):
    bests = [study["best"] for study in whole["tuning"]["studies"] for _ in range(2)]
    told = [(run["optimizer"], run["seed"]) for run in whole["runs"]]
    assert told == [("cfsgd", 0), ("cfsgd", 1), ("adam", 0), ("adam", 1)]
    for run, best in zip(whole["runs"], bests, strict=True):
        rule, settings = apply(best["params"], run["optimizer"], QUICK, FREQUENCY)
        _, record = fit(dataset(), rule, replace(settings, seed=run["seed"]), threads=1)
        assert timeless(run) == timeless(record)
        assert run["seed"] or run["best_val_auc"] == best["value"]


def test_the_sweep_varies_the_learning_rate_alone(whole):
    for study in whole["tuning"]["studies"]:
        tried, sweep = study["trials"][study["best"]["number"]], study["lr_sweep"]
        best = tried["params"]
        assert [entry["lr"] / best["lr"] for entry in sweep] == [2.0**k for k in range(-4, 5)]
        assert sweep[4]["val_auc"] == tried["value"]
        for entry in (sweep[1], sweep[8]):
            point = {**best, "lr": entry["lr"]}
            rule, settings = apply(point, study["optimizer"], QUICK, FREQUENCY)
            _, record = fit(dataset(), rule, settings, threads=1)
            diverged = record["stopped"] == "diverged"
            assert entry["val_auc"] == (None if diverged else record["best_val_auc"])


def test_a_rate_of_the_sweep_that_beats_the_trials_is_taken(tmp_path, monkeypatch):
    found = find_lr(dataset(), Rule("cfsgd"), QUICK, threads=1)
    monkeypatch.setattr("freqsgd.recommender.tune.find_lr", lambda *_, **__: found / 16)
    told = []
    results = tune(
        *(dataset(), ["cfsgd"], QUICK),
        **{"out": tmp_path, "trials": 1, "threads": 1, "listener": told.append},
    )
    (study,), (run,) = results["tuning"]["studies"], results["runs"]
    (trial,), best = study["trials"], study["best"]
    top = max(study["lr_sweep"], key=lambda point: point["val_auc"] or 0)
    assert top["val_auc"] > trial["value"]
    assert (best["from"], best["number"]) == ("sweep", 0)
    assert (best["params"]["lr"], best["value"]) == (top["lr"], top["val_auc"])
    assert (run["lr"], run["best_val_auc"]) == (top["lr"], top["val_auc"])
    assert told[-1].best == top["val_auc"]
    (folder,) = (tmp_path / "models").iterdir()
    assert folder.name == f"cfsgd-trial-0-lr-{top['lr']:.4g}-seed-0"


def test_the_cap_moves_along_with_the_rate_of_the_sweep():
    space = search_space("cfsgd", QUICK, 0.2)
    point = {**default(space), "max_lr_ratio": 40.0}
    trial, better = (
        Outcome({**point, "lr": lr}, "complete", [auc], 1.0) for lr, auc in ((0.2, 0.7), (1.6, 0.8))
    )
    worse, lost = replace(trial, curve=[0.6]), replace(trial, state="diverged", curve=[0.9])
    assert Study("cfsgd", 1, 1, [trial], [worse, better, lost]).best is better
    rule, _ = apply(better.point, "cfsgd", QUICK, 0.01)
    assert (rule.lr, rule.max_lr) == (1.6, 64.0)
    equal = replace(better, curve=[0.7])
    study = Study("cfsgd", 1, 1, [trial], [equal])
    assert study.best is trial
    assert study.describe().best.origin == "trial"


def test_diverged_trials_are_no_crash(tmp_path, monkeypatch):
    monkeypatch.setattr("freqsgd.recommender.tune.find_lr", lambda *_, **__: 1e11)
    results = tune(dataset(), ["sgd"], QUICK, out=tmp_path, trials=3, threads=1)
    (study,) = results["tuning"]["studies"]
    assert [trial["state"] for trial in study["trials"]] == ["diverged"] * 3
    assert [trial["value"] for trial in study["trials"]] == [None] * 3
    assert (study["best"], study["lr_sweep"], results["runs"]) == (None, [], [])


@pytest.fixture
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("one_thread")
def test_results_are_written_and_deepfm_is_searched_too(tmp_path):
    settings = replace(QUICK, model="deepfm", epochs=1, lr_decay="linear", init_scale=9.0)
    results = tune(dataset(rows=600), ["cfsgd"], settings, out=tmp_path, trials=2)
    assert json.loads((tmp_path / "results.json").read_text()) == results
    assert results["model"]["name"] == "deepfm"
    (run,) = results["runs"]  # what is searched is not taken from the settings
    falls = results["tuning"]["studies"][0]["best"]["params"]["decay_epochs"] is not None
    assert run["options"]["settings"]["lr_decay"] == ("linear" if falls else "constant")
    assert run["options"]["settings"]["init_scale"] <= 3
    assert len(list((tmp_path / "models").glob("cfsgd-trial-*-seed-0/model.safetensors"))) == 1


# ---- going on ------------------------------------------------------------------------------------


def search(folder, listener=None):
    options = {"trials": TRIALS, "seeds": 2, "threads": 1, "resume": True, "listener": listener}
    tune(dataset(), OPTIMIZERS_TRIED, QUICK, out=folder, **options)


def tell(pipe, folder):
    search(folder, lambda progress: pipe.send(progress.done))


def test_killed_again_and_again_it_ends_with_the_same_results(whole, tmp_path):
    reached = []
    for calls, delay in ((150, 0.001), (250, 0.003)):
        child, pipe = fork(tell, tmp_path)
        for _ in range(calls):
            done = pipe.recv()
        time.sleep(delay)  # into the middle of a run or of a transaction
        child.kill()
        child.join()
        pipe.close()
        reached.append(done)
        assert not (tmp_path / "results.json").exists()
    assert reached == sorted(reached)
    assert reached[-1] > 2 * TRIALS  # among the sweeps
    search(tmp_path)
    results = json.loads((tmp_path / "results.json").read_text())
    assert timeless(results) == timeless(whole)


def test_more_trials_extend_a_search_as_if_it_had_been_that_long(whole, tmp_path):
    settings = {"out": tmp_path, "seeds": 2, "threads": 1}
    tune(dataset(), OPTIMIZERS_TRIED, QUICK, trials=3, **settings)
    more = tune(dataset(), OPTIMIZERS_TRIED, QUICK, trials=TRIALS, resume=True, **settings)
    assert timeless(more) == timeless(whole)
    with pytest.raises(DataError, match=f"holds {TRIALS} trials"):
        tune(dataset(), OPTIMIZERS_TRIED, QUICK, trials=3, resume=True, **settings)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The folder of a search of one trial."""
    out = tmp_path_factory.mktemp("small")
    tune(dataset(), ["cfsgd"], QUICK, out=out, trials=1, threads=1)
    return out


def test_a_folder_in_use_is_refused_before_any_work(small, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "freqsgd.recommender.tune.find_lr", lambda *_, **__: pytest.fail("too late")
    )
    with pytest.raises(DataError, match="holds a search already: use --resume"):
        tune(dataset(), ["cfsgd"], QUICK, out=small, trials=1)
    (tmp_path / "results.json").write_text("{}")
    with pytest.raises(DataError, match="holds other results already"):
        tune(dataset(), ["cfsgd"], QUICK, out=tmp_path, trials=1, resume=True)


def interrupt(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize("place", ["find_lr", "propose"])
def test_ctrl_c_outside_of_a_run_is_an_interruption_too(place, tmp_path, monkeypatch):
    monkeypatch.setattr(f"freqsgd.recommender.tune.{place}", interrupt)
    with pytest.raises(InterruptedFitError):
        tune(dataset(), ["cfsgd"], QUICK, out=tmp_path, trials=2, threads=1)


OPEN_FILES = Path("/proc/self/fd")


@pytest.mark.skipif(not OPEN_FILES.exists(), reason="needs a list of open files")
def test_a_search_that_is_refused_leaves_its_file_closed(tmp_path):
    options = {"out": tmp_path, "threads": 1}
    tune(dataset(), ["cfsgd"], QUICK, trials=2, **options)
    with pytest.raises(DataError, match="holds 2 trials") as fewer:
        tune(dataset(), ["cfsgd"], QUICK, trials=1, resume=True, **options)
    with pytest.raises(DataError, match="cannot resume") as other:
        tune(dataset(), ["cfsgd"], replace(QUICK, dim=8), trials=2, resume=True, **options)
    assert fewer.tb
    assert other.tb  # what the errors hold on to is not yet gone
    assert tmp_path / "trials.sqlite" not in [path.resolve() for path in OPEN_FILES.iterdir()]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"data": dataset(seed=1)}, "data positive_rate 0.49.*now data positive_rate is 0.59"),
        ({"settings": replace(QUICK, dim=8)}, "settings dim 4, now settings dim is 8"),
        ({"settings": replace(QUICK, seed=8)}, "settings seed 0, now settings seed is 8"),
        ({"optimizers": ["cfsgd", "sgd"]}, r"optimizers \['cfsgd'\], now .* \['cfsgd', 'sgd'\]"),
        ({"space": 8.0}, "space cfsgd lr low 0..*, now space cfsgd lr low is 1.0"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)
def test_trials_of_something_else_are_refused(change, words, small, monkeypatch):
    before = (small / "trials.sqlite").read_bytes()
    asked = {"data": dataset(), "optimizers": ["cfsgd"], "settings": QUICK, **change}
    if "space" in asked:
        lr = asked.pop("space")
        monkeypatch.setattr("freqsgd.recommender.tune.find_lr", lambda *_, **__: lr)
    with pytest.raises(DataError, match=words):
        tune(**asked, out=small, trials=1, resume=True)
    assert (small / "trials.sqlite").read_bytes() == before


def foreign(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE cats (name TEXT)")


def another_study(path: Path) -> None:
    optuna.create_study(storage=f"sqlite:///{path}", study_name="cfsgd")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:30_000])


def overwritten(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4096:40_960] = b"\xff" * 36_864
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda path: path.write_bytes(b"not a database, just text\n" * 400), "not a database"),
        (lambda path: path.write_bytes(b""), "not a storage of Optuna's"),
        (foreign, "not a storage of Optuna's"),
        (another_study, "not of freqsgd tune"),
        (cut, "malformed|damaged|disk image"),
        (overwritten, "malformed|damaged|disk image|Tree"),
    ],
    ids=["text", "empty", "foreign", "another-study", "cut", "overwritten"],
)
def test_a_storage_that_cannot_be_used_is_one_error(spoil, words, small, tmp_path):
    path = tmp_path / "trials.sqlite"
    if spoil in (cut, overwritten):
        path.write_bytes((small / "trials.sqlite").read_bytes())
    spoil(path)
    before = path.read_bytes()
    if spoil not in (cut, overwritten):
        with pytest.raises(DataError, match="is no search of freqsgd tune: use another --out"):
            tune(dataset(), ["cfsgd"], QUICK, out=tmp_path, trials=1)
    with pytest.raises(DataError, match=f"(?s)cannot use .*trials.sqlite.*({words})"):
        tune(dataset(), ["cfsgd"], QUICK, out=tmp_path, trials=1, resume=True)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"optimizers": ["lion"]}, "unknown optimizer 'lion'"),
        ({"optimizers": []}, "at least one optimizer of sgd"),
        ({"optimizers": ["sgd", "sgd"]}, "named once"),
        ({"trials": 0}, "trials must be at least 1"),
        ({"seeds": 0}, "seeds must be at least 1"),
        ({"settings": Settings(patience=None)}, "patience"),
        ({"settings": Settings(seed=2**31 - 1), "seeds": 2}, "no 2 seeds"),
    ],
)
def test_bad_requests_are_refused_before_anything_is_written(change, words, tmp_path):
    with pytest.raises(DataError, match=words):
        tune(**{"data": dataset(), "optimizers": ["sgd"], "out": tmp_path / "out", **change})
    assert not (tmp_path / "out").exists()
