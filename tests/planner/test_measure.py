"""Rates of this machine: measured, kept and read again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from msgspec.structs import replace

from benchmarks.one_pass import Bags, torch_steps
from freqsgd.cli.bench import print_bench
from freqsgd.documents import write_document
from freqsgd.documents.planner import Bench
from freqsgd.errors import DataError
from freqsgd.nn import FM
from freqsgd.planner import measure as measuring
from freqsgd.planner.measure import (
    FULL,
    QUICK,
    copy_rates,
    engine_steps,
    examples,
    loopback_rates,
    measure,
)
from freqsgd.planner.speed import read_bench, stored_bench

TINY = replace(QUICK, features=3, tokens=40, batch_size=32, rounds=2, copied=1 << 16, sent=1 << 12)


@pytest.fixture(scope="module")
def bench() -> Bench:
    return measure(TINY)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FREQSGD_CACHE", str(tmp_path / "cache"))


def test_rates_are_kept_and_read_again(bench: Bench, tmp_path: Path) -> None:
    assert read_bench() is None
    write_document(stored_bench(), bench)
    assert read_bench() == bench
    elsewhere = tmp_path / "new" / "host.json"
    write_document(elsewhere, bench)
    assert read_bench(elsewhere) == bench
    assert [path.name for path in elsewhere.parent.iterdir()] == ["host.json"]


def test_every_rate_is_a_median_of_its_rounds(bench: Bench) -> None:
    assert {"cfsgd", "copy", "loopback"} <= {each.what for each in bench.rates}
    for each in bench.rates:
        assert 0 < each.slowest <= each.per_second <= each.fastest
    assert [each.row_bytes for each in bench.rates if each.what == "cfsgd"] == [68, 260]
    assert bench.quick
    assert bench.machine.threads == torch.get_num_threads()


def test_torchrec_is_measured_where_it_is_installed(bench: Bench) -> None:
    rows = [each.row_bytes for each in bench.rates if each.what == "torchrec"]
    assert rows == [80, 272]
    assert bench.machine.torchrec is not None
    assert not torch.distributed.is_initialized()


def test_without_it_the_rest_is_measured_and_the_reason_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse() -> None:
        raise DataError("it is not there")

    monkeypatch.setattr(measuring, "require_torchrec", refuse)
    bench = measure(TINY)
    assert bench.machine.torchrec is None
    assert bench.machine.no_torchrec == "it is not there"
    print_bench(bench)
    assert "it is not there" in capsys.readouterr().out
    assert bench.rows("torchrec") == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: "[]",
        lambda text: '{"schema": 1, "runs": []}',
        lambda text: text.replace('"loopback"', '"somewhere"'),
        lambda text: text.replace('"per_second": ', '"per_second": -'),
        lambda text: text.replace('"threads"', '"fibres"'),
        lambda text: re.sub('"threads": [0-9]+', '"threads": 0', text),
        lambda text: re.sub('"row_bytes": [0-9]+', '"row_bytes": 0', text),
    ],
)
def test_what_bench_did_not_write_is_refused(bench: Bench, tmp_path: Path, damage) -> None:
    path = tmp_path / "host.json"
    write_document(path, bench)
    path.write_text(damage(path.read_text()))
    with pytest.raises(DataError, match=r"host\.json(:| is damaged).* again"):
        read_bench(path)


def test_another_schema_and_a_missing_file_are_told(bench: Bench, tmp_path: Path) -> None:
    path = tmp_path / "host.json"
    write_document(path, replace(bench, schema=2))
    with pytest.raises(DataError, match='"schema" is 2, this version of freqsgd reads 1'):
        read_bench(path)
    with pytest.raises(DataError, match=r"cannot read .*none\.json: No such file"):
        read_bench(tmp_path / "none.json")


def test_too_little_memory_is_told_before_anything_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "available_memory", lambda: 10**9)
    expected = rf"about {FULL.memory / 1e9:.1f} GB of memory, 1\.0 GB are available.*--quick"
    with pytest.raises(DataError, match=expected):
        measure()


def test_contenders_train_the_same_model() -> None:
    some = examples(3, 40, 32, 2)
    assert some.ids.shape == (64, 3)
    assert [some.batch(1).start, some.batch(1).stop] == [32, 64]
    ids = torch.from_numpy(some.ids)
    bags, model = Bags(some.sizes, 4), FM(some.sizes, 4)
    with torch.no_grad():
        model.tokens.weight.copy_(torch.cat([table.weight for table in bags.tables]))
        torch.testing.assert_close(bags(ids.long()), model(ids))
    before = model.tokens.weight.clone()
    assert engine_steps(some, model, "cfsgd", 1)() > 0
    assert not torch.equal(model.tokens.weight, before)
    assert torch_steps(some, 4, 2)() > 0


def test_bytes_move() -> None:
    assert all(rate > 0 for rate in copy_rates(1 << 12, 2))
    rates = loopback_rates(1 << 12, 3)
    assert len(rates) == 3
    assert min(rates) > 0


def test_processes_that_cannot_meet_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("freqsgd.planner.measure._loopback", lambda: {"GLOO_SOCKET_IFNAME": "no0"})
    with pytest.raises(DataError, match="could not exchange bytes over loopback: "):
        loopback_rates(1 << 12, 1)
