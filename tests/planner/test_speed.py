"""Speed that is predicted from measured rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from msgspec import convert, structs

from freqsgd.documents import read_document
from freqsgd.documents.planner import KIND, Bench
from freqsgd.errors import DataError
from freqsgd.planner.measure import QUICK
from freqsgd.planner.speed import (
    Fleet,
    predict_hosts,
    predict_one_process,
    row_wise_sums,
    seconds_of_row,
    table_wise,
)
from freqsgd.planner.workload import Workload


def document(
    cfsgd: Sequence[tuple[int, float]] = ((68, 30e6), (260, 10e6)),
    torchrec: Sequence[tuple[int, float]] = ((80, 4e6), (272, 2e6)),
    copied: float = 8e9,
    sent: float = 1e9,
    **changes: object,
) -> dict[str, Any]:
    """The content of a file that freqsgd bench writes. Every number in it is made up."""
    found = [
        {"what": what, "unit": "rows", "per_second": speed, "row_bytes": row_bytes}
        for what, points in (("cfsgd", cfsgd), ("torchrec", torchrec))
        for row_bytes, speed in points
    ]
    found += [
        {"what": what, "unit": "bytes", "per_second": speed}
        for what, speed in (("copy", copied), ("loopback", sent))
    ]
    return {
        "schema": 1,
        "kind": KIND,
        "machine": {"cpu": "Z80", "threads": 2, "freqsgd": "1.0"},
        "created": "2031-02-03T04:05:06+00:00",
        "quick": False,
        "seconds": 1.0,
        "sizes": structs.asdict(QUICK),
        "rates": [{**rate, "slowest": 1.0, "fastest": 1e12} for rate in found],
        **changes,
    }


def bench(**changes: Any) -> Bench:
    return convert(document(**changes), Bench)


WORK = Workload((1000,) * 10, columns=10, dim=16, batch_size=4000)


def test_rates_are_those_of_the_document() -> None:
    rates = bench()
    assert rates.measured == "Z80, 2 threads, 2031-02-03"
    assert rates.rows("torchrec") == [(80, 4e6), (272, 2e6)]
    assert (rates.bytes_per_second("copy"), rates.bytes_per_second("loopback")) == (8e9, 1e9)


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
def test_rates_that_cannot_be_are_refused(rate: float) -> None:
    with pytest.raises(DataError, match="rates"):
        read_document(document(copied=rate), Bench, "bench.json")


def test_time_of_a_row_lies_on_the_line_through_two_measurements() -> None:
    points = [(100, 1e6), (300, 0.5e6)]  # 1 and 2 microseconds
    for length, microseconds in ((100, 1.0), (200, 1.5), (300, 2.0), (500, 3.0)):
        assert seconds_of_row(points, length) == pytest.approx(microseconds * 1e-6)
    assert seconds_of_row(points, 4) == pytest.approx(1e-6)  # no shorter than measured
    noisy = [(100, 0.5e6), (300, 1e6)]
    assert seconds_of_row(noisy, 200) == pytest.approx(2e-6)
    assert seconds_of_row([(100, 1e6)], 250) == pytest.approx(2.5e-6)


def test_step_of_hosts_is_updates_sums_and_exchange_one_after_another() -> None:
    exchange = row_wise_sums(WORK, 4)
    found = predict_hosts("row-wise", WORK, exchange, Fleet(4, network=2e9), bench())
    updates = 40_000 / 4 / 4e6
    sums = 2 * 40_000 * 80 * 3 / 4 / 8e9
    assert found.seconds.updates == pytest.approx(updates)
    assert found.seconds.buffers == pytest.approx(sums)
    assert found.seconds.exchange == pytest.approx(exchange.total / 2e9)
    whole = updates + sums + exchange.total / 2e9
    assert found.examples_per_second == pytest.approx(4000 / whole)
    assert found.assumptions == ()


def test_without_a_network_loopback_is_taken_and_told() -> None:
    exchange = table_wise(WORK, 2)
    found = predict_hosts("table-wise", WORK, exchange, Fleet(2), bench())
    assert found.seconds.exchange == pytest.approx(exchange.total / 1e9)
    assert found.seconds.buffers == 0
    assert any("1.00 GB/s, as over loopback: --network" in text for text in found.assumptions)


def test_cores_shorten_updates_only() -> None:
    exchange = row_wise_sums(WORK, 2)
    two, eight = (
        predict_hosts("row-wise", WORK, exchange, Fleet(2, cores), bench()) for cores in (2, 8)
    )
    assert eight.seconds.updates == pytest.approx(two.seconds.updates / 4)
    assert eight.seconds.exchange == two.seconds.exchange
    assert any("measured on 2, hosts have 8" in text for text in eight.assumptions)


def test_one_process_has_rows_that_are_not_padded() -> None:
    found = predict_one_process(replace(WORK, tokens=3), Fleet(9), bench())
    assert (found.hosts, found.seconds.exchange) == (1, 0)
    assert found.examples_per_second == pytest.approx(30e6 / 3)


def test_what_is_not_in_the_rates_is_told() -> None:
    deep = replace(WORK, hidden=(4,))
    found = predict_one_process(deep, Fleet(1), bench(quick=True))
    assert any("network is left out" in text for text in found.assumptions)
    assert any("--quick" in text for text in found.assumptions)
