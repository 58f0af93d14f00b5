"""The plan as a whole."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from freqsgd.documents.planner import Plan
from freqsgd.errors import DataError
from freqsgd.optimizers import COUNTER_SGD
from freqsgd.planner.document import plan
from freqsgd.planner.workload import PLANNED, Workload
from tests.planner.test_speed import bench

RATES = bench()

PAPER = Workload((10**8,) * 800, columns=800, dim=64, batch_size=65_536)
SMALL = Workload((1000, 50), columns=2, dim=16, batch_size=100)


def hosts_of(document, name: str, how: str = "row-wise") -> int:
    return next(each.hosts[how] for each in document.optimizers if each.optimizer == name)


def test_a_plan_survives_json() -> None:
    for work in (PAPER, SMALL):
        for rates in (None, RATES):
            found = plan(work, host_memory=10**12, bench=rates)
            assert msgspec.json.decode(msgspec.json.encode(found), type=Plan) == found


def test_the_papers_size_needs_many_hosts_and_few_with_a_counter() -> None:
    found = plan(PAPER, host_memory=10**12)
    assert found.weights == 8 * 10**10 * 68 * 4
    assert not found.one_process.fits
    assert [each.optimizer for each in found.optimizers] == list(PLANNED)
    state = {each.optimizer: each.state for each in found.optimizers}
    assert state["adam"] == 2 * state["adagrad"] == 2 * found.weights
    assert state[COUNTER_SGD] == 3 * state["cfsgd"] == 12 * 8 * 10**10
    assert hosts_of(found, "adam") > 2 * hosts_of(found, "cfsgd")
    assert found.hosts == hosts_of(found, COUNTER_SGD)


def test_without_rates_nothing_is_predicted_but_how_to_get_them() -> None:
    found = plan(PAPER, host_memory=10**12)
    assert found.predictions == ()
    assert "freqsgd bench" in found.no_prediction


def test_predictions_are_of_every_way_to_train() -> None:
    found = plan(SMALL, host_memory=10**9, hosts=2, bench=RATES)
    assert [each.how for each in found.predictions] == [
        "one process",
        "row-wise",
        "table-wise",
    ]
    assert found.no_prediction is None
    assert plan(SMALL, host_memory=10**9, bench=RATES).hosts == 1
    alone = plan(SMALL, host_memory=10**9, bench=RATES).predictions
    assert [each.how for each in alone] == ["one process"]


def test_hours_follow_the_examples() -> None:
    work = replace(SMALL, examples=10**9)
    for each in plan(work, host_memory=10**9, hosts=2, bench=RATES).predictions:
        assert each.hours * 3600 * each.examples_per_second == pytest.approx(10**9)


def test_hosts_that_do_not_hold_it_are_not_predicted() -> None:
    found = plan(PAPER, host_memory=10**12, hosts=3, bench=RATES)
    assert found.predictions == ()
    assert (
        f"{hosts_of(found, COUNTER_SGD)} hosts row-wise or 26 hosts table-wise are needed, not 3"
        in found.no_prediction
    )
    assert found.bottleneck.startswith("memory")


def test_torchrec_that_was_not_measured_is_not_predicted() -> None:
    found = plan(SMALL, host_memory=10**9, hosts=2, bench=bench(torchrec=[]))
    assert [each.how for each in found.predictions] == ["one process"]
    assert "did not measure it" in found.no_prediction


def test_the_bottleneck_is_the_longest_part_of_a_step() -> None:
    slow = bench(torchrec=[(80, 1e3), (272, 1e3)])
    said = plan(PAPER, host_memory=10**12, bench=slow).bottleneck
    assert "row updates would take" in said
    said = plan(PAPER, host_memory=10**12, bench=RATES, network=1e6).bottleneck
    assert "the exchange would take 100%" in said
    assert "times less table-wise" in said
    said = plan(PAPER, host_memory=10**12, bench=bench(copied=1e3)).bottleneck
    assert "sums of the whole batch would take" in said


def test_whole_tables_are_not_spread_over_more_hosts_than_there_are() -> None:
    found = plan(SMALL, host_memory=10**9, hosts=3)
    assert found.exchange["table-wise"] is None
    assert any("no table-wise sharding" in note for note in found.notes)
    assert plan(SMALL, host_memory=10**9, hosts=2).exchange["table-wise"] is not None


def test_a_network_takes_its_time_for_the_bytes() -> None:
    for each in plan(PAPER, host_memory=10**12, network=2e9).exchange.values():
        assert each.seconds == each.total / 2e9
    for each in plan(PAPER, host_memory=10**12).exchange.values():
        assert each.seconds is None


def test_counts_beyond_what_counters_hold_are_told() -> None:
    long = plan(replace(SMALL, examples=2**31), host_memory=10**9)
    assert any("8 bytes here" in note for note in long.notes)
    assert any("16,777,216 batches" in note for note in long.notes)
    short = plan(replace(SMALL, examples=10**6), host_memory=10**9)
    assert not any("bytes" in note and "count" in note for note in short.notes)


def test_what_one_process_holds_is_planned_where_row_wise_sharding_does_not_fit() -> None:
    work = replace(PAPER, tables=(1000,) * 800)
    for rates in (None, RATES):
        found = plan(work, host_memory=32 * 10**9, bench=rates)
        assert found.one_process.fits
        assert hosts_of(found, COUNTER_SGD) is None
        assert found.hosts == hosts_of(found, COUNTER_SGD, "table-wise") == 2
        assert found.exchange["row-wise"] is None
        assert "row-wise sharding fits no number of these hosts" in found.notes
    assert [each.how for each in found.predictions] == ["one process", "table-wise"]


def test_whole_tables_fit_where_sums_of_the_batch_would_not() -> None:
    found = plan(PAPER, host_memory=10**12, hosts=26, bench=RATES)  # 31 tables of 28.4 GB
    assert found.exchange["row-wise"] is None
    assert [each.how for each in found.predictions] == ["table-wise"]
    assert "of a table-wise step" in found.bottleneck


def test_a_network_too_large_for_one_process_asks_for_several_hosts() -> None:
    work = Workload((1000,) * 100, columns=100, dim=64, batch_size=10**6, hidden=(16,))
    found = plan(work, host_memory=10**11, bench=RATES)
    assert not found.one_process.fits
    assert found.hosts > 1
    assert [each.how for each in found.predictions] == ["row-wise", "table-wise"]
    one = plan(work, host_memory=10**11, hosts=1, bench=RATES)
    assert one.predictions == ()
    assert "are needed, not 1" in one.no_prediction


def test_hosts_of_a_counter_that_no_engine_shards_are_marked() -> None:
    found = plan(PAPER, host_memory=10**12)
    marked = [each.optimizer for each in found.optimizers if each.hypothetical]
    assert marked == ["cfsgd"]
    assert any("no engine shards" in note for note in found.notes)
    without = plan(PAPER, host_memory=10**12, optimizers=["adam"])
    assert not any("no engine shards" in note for note in without.notes)


def test_hosts_too_small_for_a_batch_are_refused() -> None:
    with pytest.raises(DataError, match=r"too small.*; take smaller batches or more memory"):
        plan(PAPER, host_memory=10**9)


def test_smaller_batches_are_not_advised_where_one_example_does_not_fit() -> None:
    wide = replace(PAPER, dim=10**9)
    with pytest.raises(DataError, match=r"take a smaller dimension \(--dim\) or more memory"):
        plan(wide, host_memory=10**12)
