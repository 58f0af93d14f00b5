"""What one pass counts is what plain Python counts."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest

from freqsgd.errors import DataError, DataWarning
from freqsgd.inspection.counting import RowSample, count
from freqsgd.inspection.options import InspectionOptions
from freqsgd.inspection.sources import open_source
from freqsgd.tables.generated.synthetic import generate_clicks
from tests.tables import slow


def counted(**options):
    given = InspectionOptions(**options)
    return count(open_source(given), given.min_count)


def falling(tokens):
    return sorted(Counter(tokens).values(), reverse=True)


def tail_tokens(tokens):
    """Those after the first tokens that have 95% of the occurrences."""
    covered, tail = 0, set()
    for token, times in Counter(tokens).most_common():
        if covered >= 0.95 * len(tokens):
            tail.add(token)
        covered += times
    return tail


@pytest.fixture
def table(tmp_path):
    """Rows of categories, of which some are missing, numbers, and bags, of which some are empty."""
    rng = np.random.default_rng(0)
    rows = 5000
    shops = [f"s{n}" if n else "" for n in (rng.pareto(1.0, rows) * 3).astype(int)]
    frame = pl.DataFrame(
        {
            "user": rng.zipf(1.5, rows),
            "shop": shops,
            "price": rng.exponential(100, rows).round(2),
            "tags": [[f"t{t}" for t in rng.zipf(1.8, n)] for n in rng.integers(0, 4, rows)],
            "click": rng.integers(0, 2, rows),
        }
    )
    frame.write_parquet(tmp_path / "clicks.parquet")
    frame.drop("tags").write_csv(tmp_path / "clicks.csv")
    return tmp_path, frame


@pytest.mark.parametrize("name", ["clicks.csv", "clicks.parquet"])
def test_counts_of_categories_and_binned_numbers(table, name):
    folder, frame = table
    found = counted(
        path=str(folder / name), features=("user", "shop"), numeric=("price",), label="click"
    )
    user, shop, price = found.fields
    assert found.rows == len(frame)
    assert user.counts.tolist() == falling(frame["user"])
    assert shop.counts.tolist() == falling(frame["shop"])
    assert price.counts.tolist() == falling(slow.log_bin(str(x)) for x in frame["price"])
    missing = Counter(frame["shop"])[""]
    assert ("<missing>", missing) in shop.most_frequent
    assert user.most_frequent[0] == ("1", Counter(frame["user"])[1])


def test_bags_and_rows_without_any_of_their_tokens(table):
    folder, frame = table
    found = counted(path=str(folder / "clicks.parquet"), features=("tags",))
    (tags,) = found.fields
    assert tags.counts.tolist() == falling(t for bag in frame["tags"] for t in bag)
    assert tags.samples == sum(1 for bag in frame["tags"] if len(bag))


def test_without_features_every_column_but_the_label_is_a_field(table):
    folder, _ = table
    path = str(folder / "clicks.parquet")
    names = [field.name for field in counted(path=path, label="click", numeric=("price",)).fields]
    assert names == ["user", "shop", "tags", "price"]
    assert len(counted(path=path, numeric=("price",)).fields) == 5
    with pytest.raises(DataError, match=r"column 'price' holds .*--numeric"):
        counted(path=path)


def test_rare_tokens_count_as_one_and_take_one_row(table):
    folder, frame = table
    options = {"path": str(folder / "clicks.csv"), "features": ("user",)}
    counts = Counter(frame["user"])
    kept = [n for n in counts.values() if n >= 10]
    rare = sum(n for n in counts.values() if n < 10)
    (field,) = counted(**options, min_count=10).fields
    assert field.counts.tolist() == sorted([*kept, rare], reverse=True)
    assert field.table_rows == len(kept) + 1
    assert ("<rare>", rare) in field.most_frequent
    (field,) = counted(**options).fields
    assert field.table_rows == len(counts) + 1


def test_integers_of_criteo_share_bins_and_39_fields_come_out(tmp_path, monkeypatch):
    rng = np.random.default_rng(1)
    integers = rng.integers(-2, 3000, (400, 13)).astype(str)
    integers[rng.random((400, 13)) < 0.2] = ""
    categories = rng.integers(0, 20, (400, 26)).astype(str)
    lines = ["\t".join(["1", *a, *b]) for a, b in zip(integers, categories, strict=True)]
    (tmp_path / "criteo").mkdir()
    (tmp_path / "criteo" / "train.txt").write_text("\n".join(lines))
    monkeypatch.setenv("FREQSGD_DATA", str(tmp_path))
    found = counted(dataset="criteo", min_count=1)
    assert len(found.fields) == 39
    for column, field in enumerate(found.fields[:13]):
        bins = [slow.log_bin(text) for text in integers[:, column]]
        assert field.counts.tolist() == falling(bins)
        name, times = field.most_frequent[0]
        assert Counter(bins)["" if name == "<missing>" else name] == times
    for column, field in enumerate(found.fields[13:]):
        assert field.counts.tolist() == falling(categories[:, column])


def test_rows_with_a_token_of_the_tail_are_those_that_plain_python_finds(tmp_path):
    users = [n for n in range(1, 40) for _ in range(n)]  # no two are equally frequent
    items = np.random.default_rng(2).permutation(users).tolist()
    pl.DataFrame({"user": users, "item": items}).write_csv(tmp_path / "x.csv")
    found = counted(path=str(tmp_path / "x.csv")).tail_samples
    tails = tail_tokens(users), tail_tokens(items)
    slowly = [u in tails[0] or i in tails[1] for u, i in zip(users, items, strict=True)]
    assert 0 < sum(slowly) < len(users)
    assert (found.share, found.of) == (np.mean(slowly), len(users))
    times = Counter(users), Counter(items)
    seldom = [times[0][u] < 10 or times[1][i] < 10 for u, i in zip(users, items, strict=True)]
    assert 0 < found.seen_below_10 == np.mean(seldom) < 1


def test_words_of_text_are_counted_without_unk(tmp_path):
    (tmp_path / "a.txt").write_text("the tea the <unk> milk\n\nthe tea\n" * 50)
    found = counted(path=str(tmp_path / "a.txt"), text=True)
    (word,) = found.fields
    assert (word.name, found.rows) == ("word", 300)
    assert word.most_frequent == [("the", 150), ("tea", 100), ("milk", 50)]


def test_rare_words_are_left_out_as_in_training(tmp_path):
    (tmp_path / "a.txt").write_text("the tea the milk\n" * 4 + "the tea\n" * 3 + "coffee\n")
    (word,) = counted(path=str(tmp_path / "a.txt"), text=True).fields
    assert word.most_frequent == [("the", 11), ("tea", 7)]  # 5 times, at least
    found = counted(path=str(tmp_path / "a.txt"), text=True, min_count=4)
    assert found.fields[0].most_frequent == [("the", 11), ("tea", 7), ("milk", 4)]
    assert (found.rows, found.rare, found.min_count) == (22, 1, 4)
    assert (found.tail_samples.of, found.tail_samples.seen_below_10) == (22, 11 / 22)


@pytest.mark.parametrize(
    ("dataset", "expected"), [("criteo", 10), ("movielens-1m", 1), ("wikitext-2", 50)]
)
def test_the_min_count_is_what_training_takes(dataset, expected, tmp_path, monkeypatch):
    files = {
        "criteo/train.txt": "\t".join(["1"] * 40),
        "ml-1m/ratings.dat": "1::2::3::4",
        **{f"wikitext-2/wiki.{part}.tokens": "a " * 60 for part in ("train", "valid", "test")},
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    monkeypatch.setenv("FREQSGD_DATA", str(tmp_path))
    assert counted(dataset=dataset).min_count == expected


def test_names_of_what_is_missing_or_rare_are_no_texts_of_the_data(tmp_path):
    cells = ["<missing>", "", "", "", "<rare>", "<rare>", "<<rare>>", "<<rare>>", "a", "b", "c"]
    (tmp_path / "x.csv").write_text("\n".join(["a,b", *(f"{cell},1" for cell in cells)]))
    (field, _) = counted(path=str(tmp_path / "x.csv"), min_count=2).fields
    names = dict(field.most_frequent)
    assert names == {"<<<rare>>>": 4, "<<missing>>": 3, "<rare>": 2, "<<rare>>": 2}


def test_generated_datasets():
    ids = generate_clicks().ids.numpy()
    found = counted(dataset="synthetic")
    assert [field.counts.tolist() for field in found.fields] == [
        falling(ids[:, 0].tolist()), falling(ids[:, 1].tolist())
    ]  # fmt: skip
    assert counted(dataset="zipf-text").fields[0].name == "word"


def test_malformed_rows_are_refused_or_left_out(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\nu,1\nv\nw,2\n")
    path = str(tmp_path / "x.csv")
    with pytest.raises(DataError, match=r"line 3: 1 columns, expected 2"):
        counted(path=path)
    with pytest.warns(DataWarning, match="line 3"):
        assert counted(path=path, max_bad_rows=1).rows == 2


def test_a_sample_holds_all_rows_if_they_are_few():
    sample = RowSample(10, 2)
    rows = np.arange(20, dtype=np.int32).reshape(10, 2)
    for start in range(0, 10, 3):
        sample.add(rows[start : start + 3])
    assert sample.rows().tolist() == rows.tolist()


def test_every_row_has_the_same_chance_to_be_sampled():
    chosen = np.zeros(1000)
    for seed in range(200):
        sample = RowSample(100, 1, seed)
        for start in range(0, 1000, 70):
            sample.add(np.arange(start, min(start + 70, 1000), dtype=np.int32).reshape(-1, 1))
        rows = sample.rows()[:, 0]
        assert len(set(rows.tolist())) == 100
        chosen[rows] += 1
    # Each tenth of the rows is expected to be chosen 2,000 times, +- 42 (one standard deviation).
    assert np.abs(chosen.reshape(10, 100).sum(1) - 2000).max() < 5 * 42
    assert chosen.max() < 20 + 6 * 4.3
