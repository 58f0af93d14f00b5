"""What cannot be used is refused with one message that says what, where, and what to do."""

from __future__ import annotations

import gzip
import json
import re
import warnings
from dataclasses import asdict

import polars as pl
import pytest

from freqsgd.errors import DataError, DataWarning
from freqsgd.tables.loading import load
from freqsgd.tables.spec import DataOptions

GOOD = [f"{n % 2},u{n % 5},{n}" for n in range(30)]


def csv_file(tmp_path, lines, name="clicks.csv"):
    content = lines if isinstance(lines, bytes) else "\n".join(lines).encode()
    (tmp_path / name).write_bytes(content)
    return str(tmp_path / name)


def clicks(tmp_path, lines, **options):
    path = csv_file(tmp_path, ["click,user,price", *lines])
    return DataOptions(path=path, **{"label": "click", "features": ("user",), **options})


def refused(options, *parts):
    """Loading fails with one error that says all of this."""
    with pytest.raises(DataError) as caught:
        load(options)
    for part in parts:
        assert part in str(caught.value)
    return str(caught.value)


def test_a_missing_file(tmp_path):
    path = str(tmp_path / "none.csv")
    options = DataOptions(path=path, label="click", features=("user",))
    refused(options, f"{path}: there is no such file or folder")


def test_a_missing_column_with_the_closest_and_all_names(tmp_path):
    options = clicks(tmp_path, GOOD, features=("usr",))
    refused(options, "no column 'usr'", "Did you mean 'user'?", "click, user, price")
    refused(clicks(tmp_path, GOOD, label="clicked"), "no column 'clicked'", "mean 'click'?")
    refused(clicks(tmp_path, GOOD, split="time:day"), "no column 'day'")


def test_an_empty_file_and_one_of_a_header_alone(tmp_path):
    path = csv_file(tmp_path, b"")
    refused(DataOptions(path=path, label="click", features=("user",)), f"{path}: the file is empty")
    refused(clicks(tmp_path, []), "there are no rows")
    pl.DataFrame({"a": [], "b": []}).write_parquet(tmp_path / "x.parquet")
    options = DataOptions(path=str(tmp_path / "x.parquet"), label="a", features=("b",))
    refused(options, "x.parquet: there are no rows")


def test_an_empty_file_of_a_dataset(tmp_path, monkeypatch):
    (tmp_path / "criteo").mkdir()
    (tmp_path / "criteo" / "train.txt").write_bytes(b"")
    monkeypatch.setenv("FREQSGD_DATA", str(tmp_path))
    refused(DataOptions(dataset="criteo"), "train.txt: the file is empty")


def test_labels_that_are_all_equal(tmp_path):
    refused(clicks(tmp_path, ["1,u,2"] * 20), "all 20 labels ('click') are 1", "nothing to learn")


def test_a_label_of_2_with_its_line_and_what_to_do(tmp_path):
    options = clicks(tmp_path, [*GOOD, "2,u1,3"])
    refused(options, "line 32: click is '2', not 0 or 1", "--positive-above", "--max-bad-rows")


def test_a_label_that_is_no_number(tmp_path):
    refused(clicks(tmp_path, [*GOOD, "yes,u1,3"]), "line 32: click is 'yes', not 0 or 1")
    refused(clicks(tmp_path, [*GOOD, ",u1,3"], positive_above=0), "click is '', not a number")


def test_a_binary_file_called_csv(tmp_path):
    path = csv_file(tmp_path, bytes(range(256)) * 10)
    refused(DataOptions(path=path, label="a", features=("b",)), "not a file of UTF-8 text")


def test_a_parquet_file_called_csv(tmp_path):
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "x.parquet")
    path = csv_file(tmp_path, (tmp_path / "x.parquet").read_bytes())
    refused(DataOptions(path=path, label="a", features=("b",)), "end with .parquet")


@pytest.mark.parametrize("left", [0, 10, 0.5, 0.999])
def test_a_truncated_parquet_file(tmp_path, left):
    pl.DataFrame({"a": range(1000), "b": range(1000)}).write_parquet(tmp_path / "x.parquet")
    content = (tmp_path / "x.parquet").read_bytes()
    size = left if isinstance(left, int) else int(left * len(content))
    (tmp_path / "x.parquet").write_bytes(content[:size])
    options = DataOptions(path=str(tmp_path / "x.parquet"), label="a", features=("b",))
    refused(options, "x.parquet: cannot be read as Parquet, it may be cut short")


def test_a_parquet_file_with_a_damaged_page(tmp_path):
    frame = pl.DataFrame({"a": [n % 2 for n in range(5000)], "b": [str(n) for n in range(5000)]})
    frame.write_parquet(tmp_path / "x.parquet")
    content = bytearray((tmp_path / "x.parquet").read_bytes())
    middle = len(content) // 2
    content[middle : middle + 2000] = b"\xff" * 2000
    (tmp_path / "x.parquet").write_bytes(content)
    options = DataOptions(path=str(tmp_path / "x.parquet"), label="a", features=("b",))
    refused(options, "x.parquet: cannot be read as Parquet")


@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_a_damaged_gzip_file(tmp_path, damage):
    lines = "\n".join(["click,user", *(f"{n % 2},{n * n}" for n in range(5000))])
    path = tmp_path / "x.csv.gz"
    content = gzip.compress(lines.encode())
    path.write_bytes(content[:-500] if damage == "cut" else content[:500] + content[900:])
    refused(DataOptions(path=str(path), label="click", features=("user",)), "cannot be read")


def test_lines_that_end_with_a_carriage_return_alone(tmp_path):
    path = csv_file(tmp_path, b"click,user\r1,2\r0,3\r")
    options = DataOptions(path=path, label="click", features=("user",))
    refused(options, "lines end with a carriage return alone")


def test_a_row_with_39_columns_is_reported_with_its_line(tmp_path, monkeypatch):
    good = "\t".join(["0", *"1" * 13, *"a" * 26])
    short = "\t".join(["1", *"1" * 13, *"a" * 25])
    (tmp_path / "criteo").mkdir()
    (tmp_path / "criteo" / "train.txt").write_text("\n".join([good, good, short, good]))
    monkeypatch.setenv("FREQSGD_DATA", str(tmp_path))
    refused(DataOptions(dataset="criteo"), "train.txt, line 3: 39 columns, expected 40")


def test_a_first_row_with_39_columns_is_reported_too(tmp_path, monkeypatch):
    good = "\t".join(["0", *"1" * 13, *"a" * 26])
    (tmp_path / "criteo").mkdir()
    (tmp_path / "criteo" / "train.txt").write_text("\n".join([good[2:], good, good]))
    monkeypatch.setenv("FREQSGD_DATA", str(tmp_path))
    refused(DataOptions(dataset="criteo"), "train.txt, line 1: 39 columns, expected 40")


def test_an_integer_of_criteo_that_does_not_parse(tmp_path, monkeypatch):
    rows = [["01"[n % 2], *"1" * 13, *"a" * 26] for n in range(40)]
    rows[4][3], rows[9][13], rows[11][3] = "1.5", "x", "1.5"
    (tmp_path / "criteo").mkdir()
    path = tmp_path / "criteo" / "train.txt"
    path.write_text("\n".join("\t".join(row) for row in rows))
    monkeypatch.setenv("FREQSGD_DATA", str(tmp_path))
    # Line 12 is in another block.
    monkeypatch.setattr("freqsgd.tables.readers.text.BLOCK_BYTES", 200)
    with pytest.warns(DataWarning, match="3 malformed rows") as caught:
        dataset = load(DataOptions(dataset="criteo", max_bad_rows=3, min_count=1))
    message = str(caught[0].message)
    assert "line 5: I3 is '1.5', not an integer" in message
    assert "line 10: I13 is 'x', not an integer" in message
    assert "line 12: I3 is '1.5', not an integer" in message
    assert dataset.rows == 37
    assert dataset.encoder.tokens(2) == ["<rare>", "-1"]


def test_numbers_that_do_not_parse(tmp_path):
    options = clicks(tmp_path, [*GOOD, "1,u1,cheap", "1,u1,inf"], numeric=("price",))
    message = refused(options, "line 32: price is 'cheap', not a finite number")
    assert "line 33: price is 'inf', not a finite number" in message


def test_bytes_that_are_not_utf8(tmp_path):
    lines = ["click,user,price", *GOOD]
    path = csv_file(tmp_path, "\n".join(lines).encode() + b"\n1,\xff\xfe,3\n0,na\xc3\xafve,3\n")
    options = DataOptions(path=path, label="click", features=("user",))
    refused(options, "1 malformed row among", "line 32: not UTF-8 text")
    path = csv_file(tmp_path, b"click,us\xffer\n1,2\n")
    refused(DataOptions(path=path, label="click", features=("x",)), "line 1: the header is not")


def test_malformed_rows_are_counted_and_the_first_five_shown(tmp_path):
    lines = [*GOOD, *["1,u1"] * 4, "1,u,3", "3,u,3", *["1,u1,2,3"] * 9]
    message = refused(
        clicks(tmp_path, lines), "14 malformed rows among the first 45; the first 5 of them"
    )
    shown = re.findall(r"line (\d+): (.*)", message)
    assert [int(line) for line, _ in shown] == [32, 33, 34, 35, 37]
    assert shown[0][1] == "2 columns, expected 3"
    assert shown[4][1].startswith("click is '3'")


def test_malformed_rows_within_the_limit_are_dropped_with_a_warning_each_time(tmp_path):
    lines = [*GOOD[:10], "1,u1", *GOOD[10:], "5,u,3"]
    options = clicks(tmp_path, lines, max_bad_rows=2)
    for _ in range(2):  # encoded, then from the cache
        with pytest.warns(
            DataWarning, match=r"2 malformed rows.*\n.*line 12.*\n.*line 33.*\n.*drop"
        ):
            dataset = load(options)
        assert dataset.labels.tolist() == [n % 2 for n in range(30)]
    refused(clicks(tmp_path, lines, max_bad_rows=1), "--max-bad-rows (1 here)")


def test_malformed_rows_of_parquet_have_row_numbers(tmp_path):
    pl.DataFrame({"a": [0, 1, 7, None], "b": list("wxyz")}).write_parquet(tmp_path / "x.parquet")
    options = DataOptions(path=str(tmp_path / "x.parquet"), label="a", features=("b",))
    message = refused(options, "x.parquet, row 3: a is 7, not 0 or 1")
    assert "row 4: a is None" in message


def test_a_quote_that_is_never_closed(tmp_path):
    options = clicks(tmp_path, [*GOOD, '1,"u1,3', *GOOD])
    refused(options, "line 32: a quote in this row is never closed")


def test_a_quoted_row_over_several_lines_is_reported_with_all_of_them(tmp_path):
    options = clicks(tmp_path, [*GOOD, '1,"u', '1",3,4', *GOOD])
    refused(options, "lines 32 to 33: 4 columns, expected 3")


def test_a_row_that_does_not_end(tmp_path, monkeypatch):
    monkeypatch.setattr("freqsgd.tables.readers.text.BLOCK_BYTES", 1 << 20)
    monkeypatch.setattr("freqsgd.tables.readers.text._LONGEST_ROW", 1 << 19)
    options = clicks(tmp_path, [*GOOD, '1,"u', *GOOD * 10_000])
    refused(options, "line 32: this row is longer than", "a quote that is never closed?")


def test_folders_without_usable_files_or_with_several_kinds(tmp_path):
    folder = tmp_path / "clicks"
    folder.mkdir()
    own = {"label": "click", "features": ("user",)}
    (folder / "notes.md").write_text("x")
    refused(DataOptions(path=str(folder), **own), "the folder holds no file that ends with .csv")
    (folder / "a.csv").write_text("click,user\n1,2\n")
    (folder / "b.tsv").write_text("click\tuser\n1\t2\n")
    refused(DataOptions(path=str(folder), **own), "files of several kinds (.csv, .tsv)")


def test_a_file_in_a_folder_that_lacks_a_column(tmp_path):
    folder = tmp_path / "clicks"
    folder.mkdir()
    (folder / "a.csv").write_text("click,user\n1,2\n")
    (folder / "b.csv").write_text("click,usr\n1,2\n")
    refused(DataOptions(path=str(folder), label="click", features=("user",)), "b.csv: there is no")


def test_an_unknown_kind_of_file(tmp_path):
    path = csv_file(tmp_path, ["a,b"], "clicks.xlsx")
    refused(DataOptions(path=path, label="a", features=("b",)), "cannot tell what kind of file")


def test_two_columns_of_the_same_name(tmp_path):
    path = csv_file(tmp_path, ["a,b,a", "1,2,3"])
    refused(DataOptions(path=path, label="a", features=("b",)), "two columns are called 'a'")


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({"b": [{"x": 1}, {"x": 2}]}, "'b' is of type Struct"),
        ({"b": [[[1]], [[2]]]}, "'b' is of type List(List(Int64))"),
        ({"b": [b"1", b"2"]}, "'b' is of type Binary"),
    ],
)
def test_nested_columns(tmp_path, column, message):
    pl.DataFrame({"a": [0, 1], **column}).write_parquet(tmp_path / "x.parquet")
    options = DataOptions(path=str(tmp_path / "x.parquet"), label="a", features=("b",))
    refused(options, message, "cannot be used as a feature")


def test_lists_where_single_values_are_needed(tmp_path):
    frame = pl.DataFrame({"a": [[0], [1]], "b": [1, 2], "c": [["x"], ["y"]]})
    frame.write_parquet(tmp_path / "x.parquet")
    path = str(tmp_path / "x.parquet")
    refused(DataOptions(path=path, label="a", features=("b",)), "'a' holds lists")
    refused(DataOptions(path=path, label="b", numeric=("c",)), "'c' is of type", "not numbers")


def test_a_list_that_is_too_long_for_a_bag(tmp_path):
    frame = pl.DataFrame({"a": [0, 1], "b": [["x"], ["x"] * 257]})
    frame.write_parquet(tmp_path / "x.parquet")
    options = DataOptions(path=str(tmp_path / "x.parquet"), label="a", features=("b",))
    refused(options, "row 2: the list in column 'b' has 257 tokens", "at most 256")


def test_an_unknown_part_or_time(tmp_path):
    refused(clicks(tmp_path, GOOD, split="column:user"), "user is 'u0', not train, validation")
    refused(clicks(tmp_path, GOOD, split="time:user"), "user is 'u0', not a number, nor a time")


def test_only_tables_are_named_where_the_name_of_one_is_unknown():
    with pytest.raises(DataError, match=r"known are synthetic, movielens-1m, criteo$"):
        load(DataOptions(dataset="movielens"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"dataset": "movielens"},
            "unknown dataset 'movielens': known are synthetic,",
        ),
        ({"dataset": "synthetic", "label": "x"}, "label does not go with the dataset synthetic"),
        ({"dataset": "criteo", "positive_above": 3.0}, "positive_above does not go with"),
        ({"dataset": "criteo", "path": "x.csv"}, "dataset does not go with own files"),
        ({"path": "x.csv", "features": ("a",)}, "name the column that holds the label"),
        ({"path": "x.csv", "label": "a"}, "name the columns that are features"),
        ({"path": "x.csv", "label": "a", "features": ("a",)}, "cannot be feature and label"),
        ({"path": "x.csv", "label": "a", "features": ("b", "b")}, "'b' is named twice"),
        (
            {"path": "x.csv", "label": "a", "numeric": ("b",), "numeric_rule": "bins"},
            "unknown numeric rule 'bins': known are log, quantiles",
        ),
        ({"path": "x.csv", "label": "a", "features": ("b",), "min_count": 0}, "at least 1, not 0"),
        ({"path": "x.csv", "label": "a", "features": ("b",), "split": "rows"}, "unknown split"),
        (
            {
                "path": "x.csv",
                "label": "a",
                "features": ("b",),
                "split": "time:c",
                "test_path": "y.csv",
            },
            "does not go with files for validation or testing",
        ),
        ({"tail": "fat"}, "unknown tail 'fat'"),
    ],
)
def test_options_that_do_not_fit_together(options, message):
    refused(DataOptions(**options), message)


def test_options_survive_json(tmp_path):
    options = clicks(tmp_path, GOOD, numeric=("price",))
    again = DataOptions(**json.loads(json.dumps(asdict(options))))
    assert again == options
    assert load(DataOptions(**json.loads(json.dumps(asdict(DataOptions(samples=20)))))).rows == 20


def test_a_dataset_that_is_not_there_says_how_to_get_it(cache):
    message = refused(DataOptions(dataset="movielens-1m"), "freqsgd data get movielens-1m")
    assert str(cache / "data" / "ml-1m" / "ratings.dat") in message
    message = refused(DataOptions(dataset="criteo"), "criteo/train.txt was not found")
    assert "FREQSGD_DATA" in message


def test_good_input_gives_no_warning(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(clicks(tmp_path, GOOD))


def test_a_label_above_nan(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("user,click\na,1\nb,0\n")
    options = DataOptions(
        path=str(path), label="click", features=("user",), positive_above=float("nan")
    )
    refused(options, "--positive-above takes a number")
