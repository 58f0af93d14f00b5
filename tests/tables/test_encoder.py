from __future__ import annotations

import json
import random

import numpy as np
import polars as pl
import pytest

from freqsgd.errors import DataError, DataWarning
from freqsgd.tables.encoders.encoder import Encoder
from freqsgd.tables.loading import load
from freqsgd.tables.spec import DataOptions
from tests.tables import slow


def encode(encoder, path, **options):
    return np.concatenate(list(encoder.encode_file(str(path), **options)))


@pytest.fixture
def clicks(tmp_path):
    draw = random.Random(0)
    lines = []
    for n in range(300):
        user, shape = draw.choice(["", "u", "v"]), draw.choice("abcdef")
        lines.append(f'{n % 2},"{shape}, x",{draw.randrange(20) ** 2},{user}')
    path = tmp_path / "clicks.csv"
    path.write_text("\n".join(["click,shape,price,user", *lines]))
    options = DataOptions(
        path=str(path), label="click", features=("user", "shape"), numeric=("price",), min_count=3
    )
    return path, load(options)


def test_the_file_that_it_was_made_from_gives_the_same_ids(clicks, tmp_path):
    path, dataset = clicks
    dataset.encoder.save(tmp_path)
    encoder = Encoder.load(tmp_path)
    assert encoder.fields == dataset.fields
    assert np.array_equal(encode(encoder, path), dataset.ids)
    assert [encoder.tokens(field) for field in range(3)] == [
        dataset.encoder.tokens(field) for field in range(3)
    ]


@pytest.mark.parametrize("block", [100, 1 << 24])
def test_other_files_need_no_label_and_may_be_of_another_kind(clicks, tmp_path, monkeypatch, block):
    monkeypatch.setattr("freqsgd.tables.readers.text.BLOCK_BYTES", block)
    path, dataset = clicks
    frame = pl.read_csv(path, infer_schema=False).select("price", "user", "shape")
    frame.write_csv(tmp_path / "more.tsv", separator="\t", quote_style="never")
    frame.with_columns(pl.col("price").cast(pl.Int64)).write_parquet(tmp_path / "more.parquet")
    for name in ("more.tsv", "more.parquet"):
        assert np.array_equal(encode(dataset.encoder, tmp_path / name), dataset.ids)


def test_unseen_tokens_are_rare_and_missing_values_are_tokens(clicks, tmp_path):
    _, dataset = clicks
    (tmp_path / "new.csv").write_text("user,shape,price\nw,never,1e9\n,,\n")
    ids = encode(dataset.encoder, tmp_path / "new.csv")
    assert ids[0].tolist() == [0, 0, 0]
    tokens = dataset.encoder.tokens(0)
    assert tokens[0] == "<rare>"
    assert tokens[ids[1, 0]] == "<missing>"


def test_numbers_at_prediction_fall_into_the_bins_of_training(tmp_path):
    values = [str(n * n) for n in range(200)]
    lines = ["click,price", *(f"{n % 2},{value}" for n, value in enumerate(values))]
    (tmp_path / "clicks.csv").write_text("\n".join(lines))
    for rule in ("log", "quantiles"):
        options = DataOptions(
            path=str(tmp_path / "clicks.csv"), label="click", numeric=("price",), numeric_rule=rule
        )
        dataset = load(options)
        dataset.encoder.save(tmp_path)
        again = encode(Encoder.load(tmp_path), tmp_path / "clicks.csv")
        assert np.array_equal(again, dataset.ids)
    assert dataset.fields[0].size == 65


def test_of_a_bag_the_tokens_beyond_its_width_are_cut_off(tmp_path):
    frame = pl.DataFrame({"click": [0, 1] * 5, "genres": [["a"], ["a", "b"]] * 5})
    frame.write_parquet(tmp_path / "clicks.parquet")
    options = DataOptions(
        path=str(tmp_path / "clicks.parquet"), label="click", features=("genres",)
    )
    encoder = load(options).encoder
    new = pl.DataFrame(
        {"genres": [["b", "new", "a"], [], None]}, schema={"genres": pl.List(pl.String)}
    )
    new.write_parquet(tmp_path / "new.parquet")
    assert encode(encoder, tmp_path / "new.parquet").tolist() == [[2, 0], [-1, -1], [0, -1]]
    flat = pl.DataFrame({"genres": ["a"]})
    flat.write_parquet(tmp_path / "flat.parquet")
    with pytest.raises(DataError, match="'genres' must hold lists, but holds none"):
        encode(encoder, tmp_path / "flat.parquet")


def test_movielens_files_need_only_users_and_movies(tmp_path, monkeypatch):
    draw = random.Random(0)
    rows = [(draw.randrange(9), draw.randrange(9), draw.randrange(1, 6), n) for n in range(100)]
    (tmp_path / "ml-1m").mkdir()
    path = tmp_path / "ml-1m" / "ratings.dat"
    path.write_text("".join("::".join(map(str, row)) + "\n" for row in rows))
    monkeypatch.setenv("FREQSGD_DATA", str(tmp_path))
    dataset = load(DataOptions(dataset="movielens-1m"))
    users, movies, ratings, _ = zip(*rows, strict=True)
    assert np.array_equal(dataset.ids, slow.encode([users, movies]))
    assert dataset.labels.tolist() == [int(rating > 3) for rating in ratings]
    for columns in (2, 3, 4):
        lines = ("::".join(map(str, row[:columns])) for row in rows)
        (tmp_path / "new.dat").write_text("\n".join(lines))
        assert np.array_equal(encode(dataset.encoder, tmp_path / "new.dat"), dataset.ids)


def test_criteo_files_may_lack_the_label(tmp_path, monkeypatch):
    draw = random.Random(0)
    rows = [
        [
            str(n % 2),
            *(draw.choice(["", "-2", "0", "3", str(draw.randrange(500))]) for _ in range(13)),
            *(draw.choice(["", "05db9164", "68fd1e64", f"{n:08x}"]) for _ in range(26)),
        ]
        for n in range(300)
    ]
    (tmp_path / "criteo").mkdir()
    lines = ["\t".join(row) for row in rows]
    (tmp_path / "criteo" / "train.txt").write_text("\n".join(lines))
    monkeypatch.setenv("FREQSGD_DATA", str(tmp_path))
    dataset = load(DataOptions(dataset="criteo"))
    columns = list(zip(*rows, strict=True))[1:]
    columns[:13] = [[slow.log_bin(text) for text in column] for column in columns[:13]]
    assert np.array_equal(dataset.ids, slow.encode(columns, min_count=10))
    (tmp_path / "new.txt").write_text("\n".join(line.partition("\t")[2] for line in lines))
    assert np.array_equal(encode(dataset.encoder, tmp_path / "new.txt"), dataset.ids)
    assert np.array_equal(encode(dataset.encoder, tmp_path / "criteo" / "train.txt"), dataset.ids)


def test_malformed_rows_are_refused_or_left_out_with_a_warning(clicks, tmp_path):
    _, dataset = clicks
    path = tmp_path / "new.csv"
    path.write_text("user,shape,price\nu,a,1\nu\nu,a,1\nu,a,x\n")
    with pytest.raises(DataError, match="line 3: 1 columns, expected 3"):
        encode(dataset.encoder, path)
    with pytest.warns(DataWarning, match="2 malformed rows"):
        ids = encode(dataset.encoder, path, max_bad_rows=2)
    assert len(ids) == 2


def test_a_file_without_one_of_the_columns_is_refused(clicks, tmp_path):
    _, dataset = clicks
    (tmp_path / "new.csv").write_text("user,prize,shape\nu,1,a\n")
    with pytest.raises(DataError, match=r"no column 'price'\. Did you mean 'prize'\?"):
        encode(dataset.encoder, tmp_path / "new.csv")


def test_a_saved_encoder_that_is_missing_damaged_or_of_another_format(clicks, tmp_path):
    _, dataset = clicks
    folder = tmp_path / "model"
    folder.mkdir()
    with pytest.raises(DataError, match=r"encoder.json: there is no such file"):
        Encoder.load(folder)
    dataset.encoder.save(folder)
    assert sorted(file.name for file in folder.iterdir()) == ["encoder.json", "tokens.parquet"]
    tokens = (folder / "tokens.parquet").read_bytes()
    (folder / "tokens.parquet").write_bytes(tokens[:-20])
    with pytest.raises(DataError, match=r"tokens.parquet: the file is damaged"):
        Encoder.load(folder)
    (folder / "tokens.parquet").unlink()
    with pytest.raises(DataError, match=r"tokens.parquet: there is no such file"):
        Encoder.load(folder)
    pl.read_parquet(tokens).head(3).write_parquet(folder / "tokens.parquet")
    with pytest.raises(DataError, match=r"tokens.parquet: the file is damaged \(its checksum"):
        Encoder.load(folder)
    (folder / "tokens.parquet").write_bytes(tokens)
    description = json.loads((folder / "encoder.json").read_text())
    for content in ("{", "[]", "{}", json.dumps({**description, "columns": [{"no": 1}]})):
        (folder / "encoder.json").write_text(content)
        with pytest.raises(DataError, match=r"encoder.json: the file is damaged"):
            Encoder.load(folder)
    for version in (1, 3):
        (folder / "encoder.json").write_text(json.dumps({**description, "format": version}))
        with pytest.raises(DataError, match=f"the format is {version}, this version.* reads 2"):
            Encoder.load(folder)


def test_tokens_are_saved_with_their_counts(clicks, tmp_path):
    path, dataset = clicks
    dataset.encoder.save(tmp_path)
    saved = pl.read_parquet(tmp_path / "tokens.parquet")
    users = pl.read_csv(path, infer_schema=False)["user"].fill_null("").value_counts()
    found = saved.filter(pl.col("field") == 0)
    assert dict(found.select("token", "count").iter_rows()) == dict(users.iter_rows())
    assert found["id"].to_list() == list(range(1, len(found) + 1))
    assert found["count"].is_sorted(descending=True)
