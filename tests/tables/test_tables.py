"""Tables of one's own: every format against an encoder in plain Python."""

from __future__ import annotations

import csv
import gzip
import random
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from freqsgd.tables.loading import load
from freqsgd.tables.spec import DataOptions
from tests.tables import slow

TEXTS = ["", "a", "b", "long enough for three words", "naïve", "日本", "a b", "#", "'", "0", "00"]
QUOTED = [*TEXTS, "x,y", 'say "hi"', "two\nlines", '"', ","]


def make_rows(texts, count=700, seed=0):
    """Rows of a label, two categories, a large number as a category, and a price."""
    draw = random.Random(seed)
    rows = []
    for _ in range(count):
        price = draw.choice(
            ["", "0", "1", "2", "3", "-4", "17.5", "2.5", str(draw.randrange(10**6))]
        )
        user = str(2**31 + draw.randrange(40) ** 2)
        rows.append([str(draw.randrange(2)), draw.choice(texts), draw.choice(texts), user, price])
    return rows


HEADER = ["click", "color", "shape", "user", "price"]
OPTIONS = {"label": "click", "features": ("shape", "user", "color"), "numeric": ("price",)}


def expected(rows, min_count=1):
    label, color, shape, user, price = zip(*rows, strict=True)
    columns = [shape, user, color, [slow.log_bin(text) for text in price]]
    return np.array(label, int), slow.encode(columns, min_count)


def write_csv(path: Path, rows, **options):
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, **options).writerows([HEADER, *rows])


def check(dataset, rows, min_count=1):
    labels, ids = expected(rows, min_count)
    assert np.array_equal(dataset.labels, labels)
    assert np.array_equal(dataset.ids, ids)
    assert dataset.ids.dtype == np.int32
    assert dataset.ids.flags.c_contiguous
    assert not dataset.ids.flags.writeable
    assert [field.size for field in dataset.fields] >= (ids.max(0) + 1).tolist()


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("min_count", [1, 12])
def test_csv_with_quotes_separators_and_newlines_in_cells(tmp_path, ending, min_count):
    rows = make_rows(QUOTED)
    write_csv(tmp_path / "clicks.csv", rows, lineterminator=ending)
    path = str(tmp_path / "clicks.csv")
    check(load(DataOptions(path=path, min_count=min_count, **OPTIONS)), rows, min_count)


@pytest.mark.parametrize("block", [300, 1000, 1 << 24])
@pytest.mark.parametrize("texts", [TEXTS, QUOTED], ids=["plain", "quoted"])
def test_where_a_file_is_cut_into_blocks_changes_nothing(tmp_path, monkeypatch, block, texts):
    monkeypatch.setattr("freqsgd.tables.readers.text.BLOCK_BYTES", block)
    rows = make_rows(texts)
    write_csv(tmp_path / "clicks.csv", rows)
    check(load(DataOptions(path=str(tmp_path / "clicks.csv"), **OPTIONS)), rows)


def test_a_block_may_be_cut_inside_the_first_quotes_of_a_file(tmp_path, monkeypatch):
    text = "click,user\n" + "1,a\n0,b\n" * 10 + '1,"x\ny,\nz"\n0,c\n'
    (tmp_path / "clicks.csv").write_text(text)
    for block in range(text.index('"'), len(text)):
        monkeypatch.setattr("freqsgd.tables.readers.text.BLOCK_BYTES", block)
        monkeypatch.setenv("FREQSGD_CACHE", str(tmp_path / f"cache {block}"))
        options = DataOptions(path=str(tmp_path / "clicks.csv"), label="click", features=("user",))
        dataset = load(options)
        assert dataset.encoder.tokens(0) == ["<rare>", "a", "b", "c", "x\ny,\nz"]
        assert dataset.ids[:, 0].tolist() == [1, 2] * 10 + [4, 3]


@pytest.mark.parametrize("suffix", [".tsv", ".txt"])
def test_in_files_separated_by_tabs_quotes_are_text(tmp_path, suffix):
    rows = make_rows([*TEXTS, '"', 'a"b', '"c"'])
    text = "\n".join("\t".join(row) for row in [HEADER, *rows])  # no newline at the end
    path = tmp_path / f"clicks{suffix}"
    path.write_text(text, encoding="utf-8")
    check(load(DataOptions(path=str(path), **OPTIONS)), rows)


def test_a_byte_order_mark_is_not_part_of_the_first_name(tmp_path):
    rows = make_rows(TEXTS)
    write_csv(tmp_path / "clicks.csv", rows)
    text = (tmp_path / "clicks.csv").read_text(encoding="utf-8")
    (tmp_path / "clicks.csv").write_text(text, encoding="utf-8-sig")
    check(load(DataOptions(path=str(tmp_path / "clicks.csv"), **OPTIONS)), rows)


def test_packed_csv_is_read_like_csv(tmp_path):
    rows = make_rows(QUOTED)
    write_csv(tmp_path / "clicks.csv", rows)
    packed = gzip.compress((tmp_path / "clicks.csv").read_bytes())
    (tmp_path / "clicks.csv.gz").write_bytes(packed)
    check(load(DataOptions(path=str(tmp_path / "clicks.csv.gz"), **OPTIONS)), rows)


def test_blank_lines_are_no_rows(tmp_path):
    rows = make_rows(TEXTS, 40)
    lines = [",".join(row) for row in [HEADER, *rows]]
    (tmp_path / "clicks.csv").write_text("\n\n".join(lines) + "\n\n\n", encoding="utf-8")
    check(load(DataOptions(path=str(tmp_path / "clicks.csv"), **OPTIONS)), rows)


def test_a_folder_is_read_file_after_file_in_the_order_of_names(tmp_path):
    rows = make_rows(QUOTED)
    folder = tmp_path / "clicks"
    folder.mkdir()
    write_csv(folder / "b.csv", rows[300:])
    write_csv(folder / "a.csv", rows[:300])
    (folder / "README.md").write_text("not data")
    check(load(DataOptions(path=str(folder), **OPTIONS)), rows)


@pytest.mark.parametrize("block", [64, 1 << 18])
def test_parquet_columns_of_any_type(tmp_path, monkeypatch, block):
    monkeypatch.setattr("freqsgd.tables.readers.reader.BLOCK_ROWS", block)
    rows = make_rows(QUOTED)
    label, color, shape, user, price = map(list, zip(*rows, strict=True))
    days = [f"2024-01-{1 + len(text) % 28:02d}" for text in shape]
    frame = pl.DataFrame(
        {
            "click": pl.Series(label).cast(pl.Int8).cast(pl.Boolean),
            "color": pl.Series(color).cast(pl.Categorical),
            "shape": [text or None for text in shape],
            "user": pl.Series(user).cast(pl.Int64),
            "price": pl.Series(price).cast(pl.Float64, strict=False),
            "day": pl.Series(days).str.to_date(),
            "odd": pl.Series(label).cast(pl.Int8).cast(pl.Boolean),
        }
    )
    path = tmp_path / "clicks.parquet"
    frame.write_parquet(path, row_group_size=100)
    check(load(DataOptions(path=str(path), **OPTIONS)), rows)
    more = load(DataOptions(path=str(path), label="click", features=("day", "odd")))
    odd = ["true" if text == "1" else "false" for text in label]
    assert np.array_equal(more.ids, slow.encode([days, odd]))


def test_empty_lists_beside_lists_of_one_token_can_be_trained_on(tmp_path):
    bags = [[], ["a"], ["b"], None] * 50
    frame = pl.DataFrame({"click": [0, 1] * 100, "genre": bags})
    frame.write_parquet(tmp_path / "rows.parquet")
    path = str(tmp_path / "rows.parquet")
    data = load(DataOptions(path=path, label="click", features=("genre",)))
    assert data.token_counts.sum() == sum(
        bag != [] for bag in np.array(bags, object)[data.splits.train]
    )


def test_lists_are_bags_padded_with_absent_tokens(tmp_path):
    draw = random.Random(1)
    bags = [[draw.choice("abcde") for _ in range(draw.randrange(5))] for _ in range(200)]
    bags[3], bags[4], bags[5] = None, [None, "a"], []
    user = [draw.choice("xyz") for _ in bags]
    label = [n % 2 for n in range(200)]
    frame = pl.DataFrame({"click": label, "genres": bags, "user": user, "pair": [[1, 2]] * 200})
    frame = frame.with_columns(pl.col("pair").cast(pl.Array(pl.Int64, 2)))
    frame.write_parquet(tmp_path / "clicks.parquet")
    dataset = load(
        DataOptions(
            path=str(tmp_path / "clicks.parquet"),
            label="click",
            features=("genres", "user", "pair"),
            min_count=2,
        )
    )
    as_tokens = [[""] if bag is None else [token or "" for token in bag] for bag in bags]
    columns = [as_tokens, user, [["1", "2"]] * 200]
    assert np.array_equal(dataset.ids, slow.encode(columns, min_count=2))
    assert [field.width for field in dataset.fields] == [4, 1, 2]
    assert dataset.ids[5, :4].tolist() == [-1] * 4


def test_quantiles_put_about_equally_many_numbers_into_each_bin(tmp_path):
    draw = random.Random(2)
    values = [draw.lognormvariate(0, 3) for _ in range(6400)]
    frame = pl.DataFrame({"click": [0, 1] * 3200, "price": values, "flat": [7.0] * 6400})
    frame.write_parquet(tmp_path / "clicks.parquet")
    dataset = load(
        DataOptions(
            path=str(tmp_path / "clicks.parquet"),
            label="click",
            numeric=("price", "flat"),
            numeric_rule="quantiles",
        )
    )
    counts = np.bincount(dataset.ids[:, 0])[1:]
    assert len(counts) == 64
    assert counts.min() >= 98
    assert counts.max() <= 102
    order = np.argsort(values)
    bins = np.array([int(text) for text in dataset.encoder.tokens(0)[1:]])
    assert np.all(np.diff(bins[dataset.ids[order, 0] - 1]) >= 0)
    assert dataset.fields[1].size == 2


def test_ratings_become_labels(tmp_path):
    rows = [[str(n % 5 + 1), f"u{n % 7}"] for n in range(50)]
    lines = [",".join(row) for row in [["rating", "user"], *rows]]
    (tmp_path / "ratings.csv").write_text("\n".join(lines))
    dataset = load(
        DataOptions(
            path=str(tmp_path / "ratings.csv"),
            label="rating",
            features=("user",),
            positive_above=3,
        )
    )
    assert dataset.labels.tolist() == [int(int(rating) > 3) for rating, _ in rows]


def test_the_split_may_go_by_a_time_or_a_column(tmp_path):
    times = [(n * 37) % 100 for n in range(100)]
    parts = [["train", "Validation", "test", "val"][n % 4] for n in range(100)]
    lines = ["click,user,day,part"] + [
        f"{n % 2},u{n % 3},2024-01-01 00:{times[n] // 60:02d}:{times[n] % 60:02d},{parts[n]}"
        for n in range(100)
    ]
    (tmp_path / "clicks.csv").write_text("\n".join(lines))
    own = {"path": str(tmp_path / "clicks.csv"), "label": "click", "features": ("user",)}
    splits = load(DataOptions(**own, split="time:day")).splits
    assert sorted(times[row] for row in splits.test) == list(range(90, 100))
    assert sorted(times[row] for row in splits.validation) == list(range(80, 90))
    splits = load(DataOptions(**own, split="column:part")).splits
    assert splits.test.tolist() == list(range(2, 100, 4))
    assert len(splits.validation) == 50


def test_files_for_validation_and_testing_follow_and_their_new_tokens_are_rare(tmp_path):
    def write(name, users):
        lines = ["click,user"] + [f"{n % 2},{user}" for n, user in enumerate(users)]
        (tmp_path / name).write_text("\n".join(lines))
        return str(tmp_path / name)

    options = DataOptions(
        path=write("train.csv", ["a", "a", "a", "b"]),
        validation_path=write("validation.csv", ["b", "new"]),
        test_path=write("test.csv", ["new", "a", "b"]),
        label="click",
        features=("user",),
    )
    dataset = load(options)
    assert dataset.ids[:, 0].tolist() == [1, 1, 1, 2, 2, 0, 0, 1, 2]
    assert dataset.labels.tolist() == [0, 1, 0, 1, 0, 1, 0, 1, 0]
    parts = (dataset.splits.train, dataset.splits.validation, dataset.splits.test)
    assert [part.tolist() for part in parts] == [[0, 1, 2, 3], [4, 5], [6, 7, 8]]
    assert dataset.fields[0].size == 3
