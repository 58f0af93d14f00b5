"""Rows are saved in any number of files, and read by any number of ranks."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
import torch

from freqsgd.errors import DataError
from freqsgd.runs.checkpoint import read_in_blocks
from freqsgd.torchrec.tables import Rows, load_rows, remove_others, save_rows

SIZES = {"field0": 11, "field1": 4}
CUTS = {  # of the files, or ranks: where each begins in the tables
    "one": [{"field0": (0, 11), "field1": (0, 4)}],
    "rows": [{"field0": (0, 6), "field1": (0, 2)}, {"field0": (6, 11), "field1": (2, 4)}],
    "tables": [{"field1": (0, 4)}, {"field0": (0, 11)}],
    "empty": [{"field0": (0, 4)}, {"field0": (4, 8), "field1": (0, 4)}, {"field0": (8, 11)}, {}],
}


def held_by(part: dict[str, tuple[int, int]], seed: int = 0) -> list[Rows]:
    """Rows of tables that are the same for the same seed."""
    generator = torch.Generator().manual_seed(seed)
    weights = {table: torch.randn(rows, 8, generator=generator) for table, rows in SIZES.items()}
    return [
        Rows(
            table,
            first,
            weights[table][first:last].clone(),
            torch.arange(first, last, dtype=torch.float32),
        )
        for table, (first, last) in part.items()
    ]


def saved(folder: Path, cuts: str = "rows", seed: int = 0) -> list[str]:
    parts = CUTS[cuts]
    return [save_rows(folder, n, len(parts), held_by(p, seed)) for n, p in enumerate(parts)]


def blank(rows: Rows, columns: int = 8, kind: torch.dtype = torch.float32) -> Rows:
    size = len(rows.weight)
    return Rows(rows.table, rows.first, torch.full((size, columns), 7.0), torch.ones(size).to(kind))


@pytest.mark.parametrize("written", CUTS)
@pytest.mark.parametrize("read", CUTS)
def test_what_some_have_written_others_read(written: str, read: str, tmp_path: Path) -> None:
    digests = saved(tmp_path, written)
    for part in CUTS[read]:
        expected = held_by(part)
        targets = [blank(rows) for rows in expected]
        load_rows(tmp_path, digests, targets)
        for target, rows in zip(targets, expected, strict=True):
            assert torch.equal(target.weight, rows.weight)
            assert torch.equal(target.counts, rows.counts)


@pytest.mark.parametrize("written", CUTS)
def test_files_are_read_some_rows_at_a_time(
    written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("freqsgd.runs.checkpoint._BLOCK", 100)  # bytes: 3 rows of 8 floats
    digests = saved(tmp_path, written)
    read = [block for path in tmp_path.iterdir() for block in read_in_blocks(path)]
    assert max(rows.nbytes for _, _, rows in read) == 96
    expected = held_by(CUTS["one"][0])
    targets = [blank(rows) for rows in expected]
    load_rows(tmp_path, digests, targets)
    for target, rows in zip(targets, expected, strict=True):
        assert torch.equal(target.weight, rows.weight)
        assert torch.equal(target.counts, rows.counts)


def test_fewer_columns_and_other_counters_may_be_read(tmp_path: Path) -> None:
    digests = saved(tmp_path)
    expected = held_by(CUTS["one"][0])
    targets = [blank(rows, columns=5, kind=torch.int32) for rows in expected]
    load_rows(tmp_path, digests, targets)
    for target, rows in zip(targets, expected, strict=True):
        assert torch.equal(target.weight, rows.weight[:, :5])
        assert torch.equal(target.counts, rows.counts.int())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("missing", r"there is no .*00001-of-00002.safetensors"),
        ("cut", r"00001-of-00002.safetensors is damaged"),
        ("bit", r"00001-of-00002.safetensors was changed after it was written"),
        ("other", r"00001-of-00002.safetensors is not the file that was saved: restore the whole"),
    ],
)
def test_a_file_that_is_not_what_was_saved_is_refused(
    change: str, said: str, tmp_path: Path
) -> None:
    digests = saved(tmp_path)
    path = tmp_path / "00001-of-00002.safetensors"
    if change == "missing":
        path.unlink()
    elif change == "other":
        saved(tmp_path, seed=1)
        save_rows(tmp_path, 0, 2, held_by(CUTS["rows"][0]))
    else:
        content = bytearray(path.read_bytes())
        if change == "cut":
            del content[-1:]
        else:
            content[-5] ^= 1
        path.write_bytes(content)
    with pytest.raises(DataError, match=said):
        load_rows(tmp_path, digests, held_by(CUTS["one"][0]))


def test_tables_of_another_size_are_refused(tmp_path: Path) -> None:
    digests = saved(tmp_path)
    larger = Rows("field0", 8, torch.zeros(5, 8), torch.zeros(5))
    with pytest.raises(DataError, match="does not hold 2 of the rows of field0 from 8 on"):
        load_rows(tmp_path, digests, [larger])


def test_only_other_shards_are_removed(tmp_path: Path) -> None:
    for name in ("shards-3", "shards-12", "shards-1", "other", "shards-2024"):
        saved(tmp_path / name)
    (tmp_path / "shards-2024" / "clicks.csv").touch()  # of the user's
    remove_others(tmp_path, "shards-12")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "shards-12", "shards-2024"]
    remove_others(tmp_path, None)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "shards-2024"]


def test_the_parts_of_this_test_are_whole() -> None:
    for parts in CUTS.values():
        for table, size in SIZES.items():
            cuts = sorted(part[table] for part in parts if table in part)
            assert (cuts[0][0], cuts[-1][1]) == (0, size)
            assert all(one[1] == other[0] for one, other in pairwise(cuts))
