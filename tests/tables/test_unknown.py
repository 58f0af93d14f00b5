"""Values that a model does not know are warned of, and refused where they show a mistake."""

from __future__ import annotations

import random
import warnings

import numpy as np
import polars as pl
import pytest

from freqsgd.errors import DataError, DataWarning
from freqsgd.sklearn import FMClassifier
from freqsgd.tables.encoders.columns import Column
from freqsgd.tables.encoders.tokens import TokenTable
from freqsgd.tables.encoders.vocabulary import ENOUGH, Lookup
from freqsgd.tables.loading import load, open_stream
from freqsgd.tables.spec import DataOptions, StreamOptions

ROWS = 3 * ENOUGH


def frame_of(users, items, rows=ROWS, seed=0):
    draw = random.Random(seed)
    return pl.DataFrame(
        {
            "user": [draw.choice(users) for _ in range(rows)],
            "item": [draw.choice(items) for _ in range(rows)],
            "click": [n % 2 for n in range(rows)],
        }
    )


USERS, ITEMS = ["1", "2", "3"], ["a", "b"]
NEW = ["x", "y"]


@pytest.fixture
def encoder(tmp_path):
    frame_of(USERS, ITEMS).write_csv(tmp_path / "train.csv")
    path = str(tmp_path / "train.csv")
    return load(DataOptions(path=path, label="click", features=("user", "item"))).encoder


def said(encoder, path):
    """The warnings when a file is encoded."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in encoder.encode_file(str(path)):
            pass
    return [str(warning.message) for warning in caught if warning.category is DataWarning]


@pytest.fixture(params=["csv", "tsv", "quoted.csv", "parquet"])
def write(request, tmp_path):
    """Write a frame, whose cells come to the encoder as raw text or as columns."""

    def written(frame):
        path = tmp_path / f"new.{request.param}"
        if request.param == "parquet":
            frame.write_parquet(path)
        else:
            quotes = "always" if "quoted" in request.param else "necessary"
            mark = "\t" if request.param == "tsv" else ","
            frame.write_csv(path, separator=mark, quote_style=quotes)
        return path

    return written


def test_a_column_that_is_mostly_unknown_is_warned_of(encoder, write):
    frame = frame_of([*USERS, "x", "y", "z", "w"], ITEMS, seed=2)
    unknown = sum(user not in USERS for user in frame["user"])
    (message,) = said(encoder, write(frame))
    first = next(user for user in frame["user"] if user not in USERS)
    most = encoder.tokens(0)[1]
    assert f"{unknown} of {ROWS} values ({unknown / ROWS:.0%}) of column 'user'" in message
    assert message.endswith(f"such as {first!r}; it knows {most!r}")


@pytest.mark.parametrize("block", [1, 40])
def test_all_blocks_are_counted(encoder, tmp_path, monkeypatch, block):
    monkeypatch.setattr("freqsgd.tables.readers.reader.BLOCK_ROWS", block)
    pl.concat([frame_of(USERS, ITEMS, 100), frame_of(NEW, ITEMS, 101)]).write_parquet(
        tmp_path / "new.parquet"
    )
    (message,) = said(encoder, tmp_path / "new.parquet")
    assert "101 of 201 values (50%) of column 'user'" in message


def test_half_may_be_unknown(encoder, write):
    half = pl.concat([frame_of(USERS, ITEMS, 100), frame_of(NEW, ITEMS, 100)])
    assert said(encoder, write(half)) == []


def test_missing_values_are_not_unknown(encoder, write):
    assert said(encoder, write(frame_of([None], [None]))) == []
    (message,) = said(encoder, write(frame_of([None, None, None, "x", "1"], ITEMS, seed=8)))
    assert "of column 'user'" in message
    assert f"of {ROWS} values" not in message


def test_a_few_new_rows_are_predicted_with_a_warning(encoder, write):
    few = said(encoder, write(frame_of(["x"], ["y"], ENOUGH - 1)))
    assert [f"{ENOUGH - 1} of {ENOUGH - 1} values (100%) of column" in text for text in few] == [
        True,
        True,
    ]


def test_new_users_of_known_items_are_no_mistake(encoder, write):
    assert len(said(encoder, write(frame_of(NEW, ITEMS)))) == 1


def test_rows_of_which_nothing_is_known_are_refused(encoder, write):
    with pytest.raises(DataError, match=r"new.*the model knows no value of any column.*'user'"):
        said(encoder, write(frame_of(NEW, [*NEW, None])))


def test_a_column_that_is_written_otherwise_than_in_training_is_refused(encoder, write):
    users = ["1 ", "2 ", "9 "]
    words = r"such as '[12] '; it knows '[12]': write the values as in training"
    with pytest.raises(DataError, match=f"values of column 'user' is known to the model, {words}"):
        said(encoder, write(frame_of(users, ITEMS)))
    for rows in (20, 5):
        (message,) = said(encoder, write(frame_of(users, ITEMS, rows)))
        assert "as in training" in message


def test_whole_numbers_are_known_when_they_are_written_as_floats(encoder, write):
    assert said(encoder, write(frame_of(["1.0", "2.00"], ITEMS))) == []


def test_tokens_of_bags_are_counted_one_by_one(tmp_path):
    known = [[str(n % 7)] * (n % 3) for n in range(40)]
    frame = pl.DataFrame({"tags": known, "click": [n % 2 for n in range(40)]})
    frame.write_parquet(tmp_path / "train.parquet")
    path = str(tmp_path / "train.parquet")
    encoder = load(DataOptions(path=path, label="click", features=("tags",))).encoder
    new = pl.DataFrame({"tags": [["1", "new"], [], ["other"], None, ["1", None]] * 5})
    new.write_parquet(tmp_path / "new.parquet")
    assert said(encoder, tmp_path / "new.parquet") == []  # 10 of 20
    new.vstack(pl.DataFrame({"tags": [["third"]] * 5})).write_parquet(tmp_path / "new.parquet")
    (message,) = said(encoder, tmp_path / "new.parquet")
    assert "15 of 25 values (60%) of column 'tags'" in message
    assert "such as 'new'" in message


def test_bins_of_numbers_count_as_known_but_are_not_warned_of(tmp_path):
    rows = "".join(f"{n % 5},{n % 9},{n % 2}\n" for n in range(60))
    (tmp_path / "train.csv").write_text(f"user,price,click\n{rows}")
    options = DataOptions(
        path=str(tmp_path / "train.csv"), label="click", features=("user",), numeric=("price",)
    )
    encoder = load(options).encoder
    (tmp_path / "new.csv").write_text("user,price\n" + "1,1e9\n" * ROWS)
    assert said(encoder, tmp_path / "new.csv") == []
    (tmp_path / "new.csv").write_text("user,price\n" + "x,3\n" * ROWS)
    assert len(said(encoder, tmp_path / "new.csv")) == 1
    (tmp_path / "new.csv").write_text("user,price\n" + "x,1e9\n" * ROWS)
    with pytest.raises(DataError, match="knows no value of any column"):
        said(encoder, tmp_path / "new.csv")


def test_many_such_columns_get_a_few_lines(tmp_path):
    names = [f"c{n}" for n in range(9)]
    frame = pl.DataFrame({name: ["a", "b"] * 20 for name in names})
    label = pl.Series("click", [0, 1] * 20)
    frame.with_columns(label).write_csv(tmp_path / "train.csv")
    options = DataOptions(path=str(tmp_path / "train.csv"), label="click", features=tuple(names))
    pl.DataFrame({name: ["x"] * 10 for name in names}).write_csv(tmp_path / "new.csv")
    *first, last = said(load(options).encoder, tmp_path / "new.csv")
    assert len(first) == 5
    assert "4 other columns" in last


@pytest.mark.parametrize("part", ["validation_path", "test_path"])
def test_files_to_evaluate_on_are_checked_also_from_the_cache(encoder, tmp_path, part):
    frame_of(NEW, ITEMS).write_csv(tmp_path / "more.csv")
    options = {"path": str(tmp_path / "train.csv"), "label": "click", "features": ("user", "item")}
    for _ in range(2):
        with pytest.warns(DataWarning, match=f"more.csv: {ROWS} of {ROWS} values.*'user'"):
            load(DataOptions(**options, **{part: str(tmp_path / "more.csv")}))
    frame_of(NEW, NEW).write_csv(tmp_path / "none.csv")
    with pytest.raises(DataError, match=r"none.csv: the model knows no value of any column"):
        load(DataOptions(**options, **{part: str(tmp_path / "none.csv")}))


def test_the_day_to_evaluate_on_is_checked(encoder, tmp_path):
    encoder.save(tmp_path)
    days = tmp_path / "days"
    days.mkdir()
    frame_of(USERS, ITEMS).write_csv(days / "1.csv")
    frame_of(NEW, ITEMS).write_csv(days / "2.csv")
    options = StreamOptions(path=str(days), label="click", dictionary=str(tmp_path))
    stream = open_stream(options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sum(len(chunk.ids) for chunk in stream.chunks(0, 1)) == ROWS
    with pytest.warns(DataWarning, match=f"days, day 2: {ROWS} of {ROWS} values.*'user'"):
        assert sum(len(chunk.ids) for chunk in stream.chunks(1, 2)) == ROWS
    frame_of(NEW, NEW).write_csv(days / "2.csv")
    with pytest.raises(DataError, match=r"days, day 2: the model knows no value"):
        list(open_stream(options).chunks(1, 2))


@pytest.mark.parametrize("streaming", [False, True])
def test_estimators_check_what_they_predict(streaming):
    frame = frame_of(USERS, ITEMS)
    classifier = FMClassifier(dim=2, epochs=1, lr=0.1, patience=None)
    (classifier.partial_fit if streaming else classifier.fit)(
        frame.drop("click"), frame["click"].to_numpy()
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier.predict_proba(frame.drop("click"))
    new = frame_of(NEW, ITEMS).drop("click")
    with pytest.warns(DataWarning, match=f"^{ROWS} of {ROWS} values.*'user'.*it knows '[123]'"):
        classifier.score(new, frame["click"].to_numpy())
    with pytest.raises(DataError, match=r"^the model knows no value of any column"):
        classifier.predict_proba(frame_of(NEW, NEW).drop("click"))
    with warnings.catch_warnings():  # rows of a few new users are nothing unusual
        warnings.simplefilter("error")
        classifier.predict_proba(frame_of(NEW, NEW, 1).drop("click"))


def test_no_rows_are_no_mistake():
    columns = [Column("user")]
    assert Lookup(columns, TokenTable(), np.empty(0, np.int32)).messages() == []
