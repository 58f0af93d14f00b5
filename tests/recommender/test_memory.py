"""What is planned is what engines take."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from freqsgd.errors import DataError
from freqsgd.optimizers import OPTIMIZERS, Rule
from freqsgd.recommender.engine import engine_for, new_model
from freqsgd.recommender.memory import check_memory, memory_plan
from freqsgd.recommender.settings import Settings
from freqsgd.recommender.training import fit
from freqsgd.runs.machine import available_memory, forget_peak, peak_memory
from freqsgd.tables.fields import Field
from tests.recommender.made_up import dataset

FIELDS = (Field("a", 70), Field("b", 30), Field("bag", 11, 3))
RULES = [Rule(name, 0.1, weight_decay=decay) for name in OPTIMIZERS for decay in (0.0, 1e-3)]
RULES.append(Rule("cfsgd", 0.1, halflife=1000.0))


@pytest.mark.parametrize("model", ["fm", "deepfm"])
@pytest.mark.parametrize(
    "rule", RULES, ids=lambda r: f"{r.optimizer}-{r.weight_decay}-{r.halflife}"
)
def test_weights_and_state_are_those_of_an_engine_that_has_learned(rule, model):
    settings = Settings(model=model, dim=5, hidden=(7, 3), batch_size=16)
    plan = memory_plan(FIELDS, rule, settings)
    built = new_model(FIELDS, settings)
    engine = engine_for(built, rule, batch_size=16, frequencies=torch.ones(111))
    ids, labels = np.zeros((16, 5), np.int32), np.arange(16, dtype=np.uint8) % 2
    list(engine.train(ids, labels, np.arange(16), np.array([0.1])))
    assert plan.weights == sum(p.nbytes for p in built.parameters())
    assert plan.state == engine.state_bytes
    assert plan.total > plan.weights + plan.state


def large(optimizer, **options):
    fields = [Field(f"f{k}", 5_000_000) for k in range(20)]
    settings = Settings(dim=32, batch_size=65536)
    return memory_plan(fields, Rule(optimizer, 0.1), settings, **options)


def test_a_plan_that_does_not_fit_is_refused_with_the_arithmetic():
    with pytest.raises(DataError) as refused:
        check_memory(large("adam"), available=22_900_000_000)
    said = str(refused.value)
    assert said.startswith(
        "adam does not fit: 100,000,000 rows x 33 weights x 4 bytes = 13.2 GB of weights + 26.4 GB "
        "of optimizer state (two floats per weight) + 430.9 MB of workspace"
    )
    assert "; 22.9 GB are available. cfsgd would take 13.6 GB (one counter per row)" in said


def test_a_table_that_no_optimizer_could_hold_is_refused_with_other_advice():
    with pytest.raises(DataError, match=r"cfsgd does not fit.*Use fewer rows \(about 7"):
        check_memory(large("cfsgd"), available=10_000_000_000)
    with pytest.raises(DataError, match=r"adam does not fit.*Use fewer rows"):
        check_memory(large("adam"), available=10_000_000_000)
    many = memory_plan([Field("f", 10)], Rule("cfsgd", 0.1), Settings(dim=8, batch_size=10**9))
    with pytest.raises(DataError, match=r"Use smaller batches \(--batch-size [0-9]+ at most\)"):
        check_memory(many, available=10_000_000_000)


@pytest.mark.parametrize("model", ["fm", "deepfm"])
def test_vectors_that_are_too_long_are_named_and_the_advice_fits(model):
    available, settings = 10_000_000_000, Settings(model=model, dim=10**9, batch_size=1024)
    with pytest.raises(DataError, match="--dim") as refused:
        check_memory(memory_plan(FIELDS, Rule("cfsgd", 0.1), settings), available)
    assert "batches" not in str(refused.value)
    most = int(re.search("--dim ([0-9]+) at most", str(refused.value))[1])
    for dim, fits in ((most, True), (most + 1, False)):
        plan = memory_plan(FIELDS, Rule("cfsgd", 0.1), replace(settings, dim=dim))
        assert (plan.total <= available) == fits


def test_100_million_rows_fit_a_machine_of_24_gb_with_cfsgd_only():
    for optimizer, fits in (("cfsgd", True), ("sgd", True), ("adam", False), ("adagrad", False)):
        assert (large(optimizer).total < 22_000_000_000) == fits


def test_counters_are_wide_where_they_might_count_beyond_31_bits():
    short, long = (large("cfsgd", examples=count) for count in (2**31 - 1, 2**31))
    assert (short.state, long.state) == (400_000_000, 800_000_000)
    settings, options = Settings(dim=5), {"frequencies": torch.ones(111), "expected": 2**31}
    for optimizer in OPTIMIZERS:  # and so they are from the start
        rule = Rule(optimizer, 0.1)
        engine = engine_for(new_model(FIELDS, settings), rule, **options)
        assert engine.state_bytes == memory_plan(FIELDS, rule, settings, examples=2**31).state
    assert large("cfsgd", kept=1).total - large("cfsgd").total == 4 * (33 * 100_000_000 + 1)


def test_fit_plans_too(monkeypatch):
    monkeypatch.setattr("freqsgd.recommender.memory.available_memory", lambda: 500_010_000)
    with pytest.raises(DataError, match=r"adam does not fit: 100 rows .* of the best so far"):
        fit(dataset(), Rule("adam", 0.1), Settings(dim=4))


def test_the_least_of_machine_and_control_groups_is_available(tmp_path):
    assert available_memory(tmp_path) is None
    proc, groups = tmp_path / "proc", tmp_path / "sys/fs/cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "meminfo").write_text("MemTotal: 900 kB\nMemAvailable: 500 kB\n")
    assert available_memory(tmp_path) == 500 * 1024
    inner = groups / "job" / "task"
    inner.mkdir(parents=True)
    (proc / "self/cgroup").write_text("0::/job/task\n")
    for folder, limit in ((inner, "max"), (groups / "job", "400000")):
        (folder / "memory.max").write_text(f"{limit}\n")
        (folder / "memory.current").write_text("300000\n")
        (folder / "memory.stat").write_text("anon 200000\ninactive_file 90000\n")
    assert available_memory(tmp_path) == 400_000 - 300_000 + 90_000
    (proc / "self/cgroup").write_text("7:cpu:/x\n4:memory:/not/seen/here\n0::/\n")
    (groups / "memory").mkdir()
    (groups / "memory/memory.limit_in_bytes").write_text("200000\n")
    (groups / "memory/memory.usage_in_bytes").write_text("150000\n")
    (groups / "memory/memory.stat").write_text("total_inactive_file 1000\n")
    assert available_memory(tmp_path) == 51_000


def test_the_peak_of_memory_begins_anew():
    if peak_memory() is None:
        pytest.skip("this system does not tell")
    size = 200_000_000
    held = np.ones(size, np.uint8)
    before = peak_memory()
    del held
    forget_peak()
    assert peak_memory() < before - size // 2
