"""Bad input: one clear line, exit code 2, and every file as it was.

To extend: add a row. A row runs in a folder of its own that holds what ``_make_world`` wrote.
"""

from __future__ import annotations

import io
import os
import random
import shlex
import shutil
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest

from freqsgd.tables.encoders.encoder import Encoder
from tests.cli.conftest import run_command


class Case(NamedTuple):
    """A command, words that its error must hold, and a file to write beforehand, or a pipe."""

    command: str
    words: tuple[str, ...]
    file: str | None = None
    content: str | bytes | None = ""  # None: a pipe to which nobody writes


_CLICK = "--label click --features user"
_OUT = "--out new"


def _parquet(columns: dict[str, object]) -> bytes:
    packed = io.BytesIO()
    pl.DataFrame(columns).write_parquet(packed)
    return packed.getvalue()


CASES = {
    "no such model": Case("predict nowhere new.csv", ("nowhere",)),
    "a column that the model needs is missing": Case(
        "predict model few.csv", ("few.csv", "item"), "few.csv", "user\nu1\n"
    ),
    "predictions to a folder": Case("predict model new.csv --out model", ("cannot write model",)),
    # Reading: pipes, separators, columns, RecBole's files.
    **{
        f"a pipe for {command}": Case(
            f"{command} pipe.csv {options}",
            ("pipe.csv: this is a pipe; write what it gives to a file first",),
            "pipe.csv",
            None,
        )
        for command, options in {
            "train --data": _CLICK,
            "stream train --data": f"{_CLICK} --hash-rows 9 --lr 1",
            "words train --data": "",
            "train --validation-data": f"{_CLICK} --data clicks.csv",
            "inspect --data": "",
            "inspect --text --data": "",
            "plan --data": _CLICK,
            "predict model": "",
            "data info": "",
        }.items()
    },
    "a device as data": Case("inspect --data /dev/null", ("/dev/null: this is a device",)),
    "a folder with a pipe": Case(
        f"train --data . {_CLICK}", ("zz.csv: this is a pipe",), "zz.csv", None
    ),
    **{
        f"a .csv file separated by {name}": Case(
            f"{command} x.csv {options}",
            ("x.csv", f"separated by {name}: use --separator {flag}"),
            "x.csv",
            separator.join(["user", "item", "click"]) + "\n",
        )
        for name, flag, separator, command, options in (
            ("';'", "';'", ";", "train --data", _CLICK),
            ("tabs", "tab", "\t", "compare --data", _CLICK),
            ("'|'", "'|'", "|", "tune --out t --data", _CLICK),
            ("'::'", "'::'", "::", "stream train --data", f"{_CLICK} --hash-rows 9 --lr 1"),
            ("' '", "' '", " ", "predict model", ""),
        )
    },
    "a separator that inspect finds": Case(
        "inspect --data x.csv", ("one column", "use --separator ';'"), "x.csv", "a;b\n1;2\n"
    ),
    "the wrong separator": Case(
        f"train --data clicks.csv --separator ';' {_CLICK}", ("use --separator ','",)
    ),
    "no separator": Case(
        f"train --data clicks.csv --separator '' {_CLICK}", ("--separator is empty",)
    ),
    "a separator of letters": Case(
        f"train --data clicks.csv --separator comma {_CLICK}",
        ("--separator 'comma' cannot stand between cells", "such as ';', '::' or tab"),
    ),
    "a separator for Parquet": Case(
        "inspect --data x.parquet --separator ';'",
        ("x.parquet: --separator is for text",),
        "x.parquet",
    ),
    "columns for Parquet": Case(
        "predict model x.parquet --columns user,item",
        ("x.parquet: --columns is for text",),
        "x.parquet",
    ),
    "a separator for a known dataset": Case(
        "train --dataset movielens-1m --separator ';'",
        ("--separator does not go with the dataset",),
    ),
    "columns for text": Case(
        "words train --data text.txt --columns a",
        ("No such option: --columns", "freqsgd train and freqsgd stream train have it"),
    ),
    "a separator for a plan of numbers": Case(
        "plan --features 2 --rows 9 --separator ';'", ("--separator does not go with numbers",)
    ),
    "too few columns": Case(
        "inspect --data u.data --separator tab --columns user,item",
        ("u.data, line 1: 3 cells, but 2 columns are named: user, item", "--columns"),
        "u.data",
        "1\t2\t1\n",
    ),
    "too many columns in a file that has another separator": Case(
        f"train --data new.csv --separator ';' --columns user,click {_CLICK}",
        ("new.csv, line 1: 1 cell, but 2 columns", "use --separator ','"),
    ),
    "columns that are named twice": Case(
        f"train --data clicks.csv --columns user,click,user {_CLICK}", ("names 'user' twice",)
    ),
    "a column without a name": Case(
        f"train --data clicks.csv --columns user,,click {_CLICK}", ("name 2 of 3 is empty",)
    ),
    "columns that the file names": Case(
        f"train --data clicks.csv --columns user,item,click {_CLICK}",
        ("clicks.csv, line 1: this row names the columns", "leave out --columns"),
    ),
    "an unknown kind of file": Case(
        "data info u.data",
        ("u.data", "cannot tell what kind of file", "--separator"),
        "u.data",
        "1\n",
    ),
    "a column that RecBole's file does not have": Case(
        f"train --data x.inter {_CLICK}",
        ("x.inter: there is no column 'user'. Did you mean 'user_id'?",),
        "x.inter",
        "user_id:token\tclick:float\nu1\t1\n",
    ),
    "lists of RecBole as numbers": Case(
        "inspect --data x.inter --numeric tags",
        ("x.inter: column 'tags'", "not numbers"),
        "x.inter",
        "user_id:token\ttags:token_seq\nu1\ta b\n",
    ),
    # values
    "fractions as categories": Case(
        "predict model fractions.parquet",
        ("fractions.parquet, row 2", "'user'", "1.5", "--numeric"),
        "fractions.parquet",
        _parquet({"user": [1.0, 1.5], "item": ["i1", "i2"]}),
    ),
    "fractions as categories, in one pass": Case(
        "stream train --data fractions.parquet --label click --features user --hash-rows 9 "
        "--lr 0.1 --out new",
        ("fractions.parquet, row 2", "'user'", "1.5", "--numeric"),
        "fractions.parquet",
        _parquet({"user": [1.0, 1.5], "click": [0, 1]}),
    ),
    "floats of 32 bits that may be other numbers": Case(
        "inspect --data large.parquet",
        ("large.parquet, row 1", "'user'", "33554432", "integers"),
        "large.parquet",
        _parquet({"user": pl.Series([2.0**25], dtype=pl.Float32), "item": ["a"]}),
    ),
    "no value is known": Case(
        "predict model strange.csv --out out.csv",
        ("strange.csv", "no value of any column", "'user'", "'x'", "'u"),
        "strange.csv",
        "user,item\n" + "x,y\n" * 150,
    ),
    "no value is known, printed": Case(
        "predict model strange.csv",
        ("same prediction",),
        "strange.csv",
        "user,item\n" + "x,\n" * 150,
    ),
    "known values in another spelling": Case(
        "predict model upper.csv --out out.csv",
        ("upper.csv", "'user'", "'U1'", "'u1'"),
        "upper.csv",
        "user,item\n" + "U1,i1\n" * 150,
    ),
    "unknown values to test on": Case(
        "train --data clicks.csv --label click --features user,item --out new "
        "--test-data strange.csv",
        ("strange.csv", "no value of any column"),
        "strange.csv",
        "user,item,click\n" + "x,y,0\nx,y,1\n" * 75,
    ),
    "vectors that are too long": Case(
        "train --data clicks.csv --label click --features user,item --dim 1000000000 --out new",
        ("does not fit", "--dim"),
    ),
    "vectors that are too long, to be tuned": Case(
        "tune --data clicks.csv --label click --features user,item --dim 1000000000 --out new",
        ("does not fit", "--dim"),
    ),
    "vectors of words that are too long": Case(
        "words train --data text.txt --min-count 1 --dim 1000000000 --out new",
        ("do not fit", "--dim"),
    ),
    "a plan for no columns": Case("plan --data clicks.csv", ("clicks.csv", "--features")),
    "names with an open quote": Case(
        "neighbors model user u1 --names names.csv",
        ("names.csv, line 2", "quotes"),
        "names.csv",
        'u1,one\nu2,"two\nu3,three\n',
    ),
    "names that are too long": Case(
        "neighbors model user u1 --names names.csv",
        ("names.csv, line 1", "field"),
        "names.csv",
        "u1," + "x" * 200_000,
    ),
    "names that are no text": Case(
        "neighbors model user u1 --names names.csv",
        ("names.csv", "not a file of text"),
        "names.csv",
        b"u1,\0\0\n",
    ),
    # found by trial
    "rows without a name": Case("predict model ''", ("name a file or folder",)),
    "rates of a machine from a pipe": Case(
        "plan --features 3 --rows 5 --bench pipe.json", ("this is a pipe",), "pipe.json", None
    ),
    "names from a pipe": Case(
        "neighbors model user u1 --names pipe.csv", ("this is a pipe",), "pipe.csv", None
    ),
    "a scale that floats do not hold": Case(
        f"train --data clicks.csv --label click --features user --init-scale 1e300 {_OUT}",
        ("error: --init-scale must be", "at most 1e6"),
    ),
    "an unknown option": Case("train --lable click", ("--lable; did you mean --label?",)),
    "an option of other programs": Case("train --learning-rate 1", ("did you mean --lr?",)),
    # files that are written
    "predictions over their own rows": Case(
        "predict model new.csv --out new.csv --force", ("new.csv", "an input, which is never")
    ),
    "predictions over a file of a folder of rows": Case(
        "predict model . --out new.csv --force", ("new.csv", "an input, which is never")
    ),
    "predictions over the model": Case(
        "predict model new.csv --out model/encoder.json --force", ("encoder.json", "an input")
    ),
    "predictions over a file": Case(
        "predict model new.csv --out clicks.csv", ("clicks.csv", "exists already", "--force")
    ),
    "vectors over a file": Case(
        "export words --format npz --out text.txt", ("text.txt", "exists already", "--force")
    ),
    "vectors over the model": Case(
        "export words --format npz --out words/model.safetensors --force", ("an input",)
    ),
    "a plan over a file": Case(
        "plan --features 3 --rows 10 --out new.csv", ("new.csv", "exists already", "--force")
    ),
    "a plan over its model": Case(
        "plan --model model --out model/results.json --force", ("results.json", "an input")
    ),
    "rates over a file": Case(
        "bench --quick --out new.csv", ("new.csv", "exists already", "--force")
    ),
    "a model over its data": Case(
        "train --data d/tokens.parquet --label click --features user --out d",
        ("d holds tokens.parquet, and no result of freqsgd", "new or empty (--out)"),
        "d/tokens.parquet",
    ),
    **{
        f"{command.split(' --')[0]} into a folder of the user's own": Case(
            f"{command} --out days",
            ("days holds day-0.csv, and no result of freqsgd", "new or empty (--out)"),
            "days/day-0.csv",
        )
        for command in (
            "train --lr 1",
            "compare",
            "tune --trials 1",
            "stream train --lr 1",
            "stream compare",
            "words train --data text.txt",
            "words compare --data text.txt",
            "inspect --data new.csv",
            "theory --users 2",
            "convert model",
        )
    },
    "resuming in a folder of the user's own": Case(
        "train --lr 1 --resume --out days", ("days holds day-0.csv, and no",), "days/day-0.csv"
    ),
    "generating into a folder of the user's own": Case(
        "stream generate --out words", ("words is not empty: name a new folder",)
    ),
    "the paper into a folder of the user's own": Case(
        "paper --out words", ("words holds other things", "another --out")
    ),
    **{
        f"{command.split(' --')[0]} over a model": Case(
            f"{command} --out model", ("model holds the run of a model, not", "another --out")
        )
        for command in (
            "compare --resume",
            "tune --trials 1 --resume",
            "inspect --data new.csv",
            "theory --force",
        )
    },
    **{
        f"an empty --out of {command.split()[0]}": Case(
            f"{command} --out ''", ("--out is empty: name a file or folder",)
        )
        for command in (
            "predict model new.csv",
            "export words --format npz",
            "train",
            "compare",
            "tune",
            "inspect",
            "theory",
            "paper",
            "plan --features 3 --rows 10",
            "bench --quick",
            "convert model",
            "stream generate",
        )
    },
    # files that are read
    "another model's dictionary": Case(
        "predict other new.csv", ("token dictionaries in other belong to another model",)
    ),
    "a dictionary of which a word was changed": Case(
        "predict edited new.csv", ("encoder.json: the file is damaged", "changed after")
    ),
    "a dictionary that is nested too deeply": Case(
        "predict model new.csv",
        ("encoder.json: the file is damaged", "nested too deeply"),
        "model/encoder.json",
        "[" * 100_000,
    ),
    "rates of a machine that are nested too deeply": Case(
        "plan --features 3 --rows 10 --bench deep.json",
        ("deep.json is damaged", "freqsgd bench"),
        "deep.json",
        "[" * 100_000,
    ),
}


def _make_world(folder: Path) -> None:
    """Write a small table, rows to predict, a text, and the models trained on them."""
    draw = random.Random(0)
    rows = [f"u{draw.randrange(9)},i{draw.randrange(12)},{draw.randrange(2)}\n" for _ in range(300)]
    (folder / "clicks.csv").write_text("user,item,click\n" + "".join(rows))
    (folder / "new.csv").write_text("user,item\nu1,i1\nu2,i2\n")
    words = " ".join(f"w{draw.randrange(20)}" for _ in range(3000))
    (folder / "text.txt").write_text(words + "\n")
    table = "--data clicks.csv --label click --features user,item --dim 4 --epochs 1 --lr 0.1"
    for command in (
        f"train {table} --out model",
        "words train --data text.txt --min-count 1 --dim 4 --epochs 1 --out words",
    ):
        assert run_command(shlex.split(command)) == 0
    for copy in ("other", "edited"):
        shutil.copytree(folder / "model", folder / copy)
    encoder = (folder / "model" / "encoder.json").read_text()
    (folder / "edited" / "encoder.json").write_text(encoder.replace('"category"', '"integer"', 1))
    own = Encoder.load(folder / "model")
    tokens = own._tokens.with_columns(pl.col("token").reverse())
    Encoder("table", own.columns, tokens).save(folder / "other")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder of files and models that every case gets a copy of."""
    folder = tmp_path_factory.mktemp("world")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("FREQSGD_CACHE", str(tmp_path_factory.mktemp("cache")))
        _make_world(folder)
    return folder


@pytest.mark.parametrize("what", CASES)
def test_bad_input_gets_one_clear_line_and_leaves_all_files_alone(
    what, world, in_process, tmp_path
):
    command, words, file, content = CASES[what]
    shutil.copytree(world, tmp_path, dirs_exist_ok=True)
    if file is not None and content is None:
        os.mkfifo(tmp_path / file)
    elif file is not None:
        data = content if isinstance(content, bytes) else content.encode()
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_bytes(data)
    before = _contents(tmp_path)
    said = in_process(*shlex.split(command), code=2)
    lines = [line for line in said.err.splitlines() if "warning" not in line]
    assert len(lines) == 1, said.err
    assert lines[0].startswith("freqsgd: error: ")
    assert "Traceback" not in said.err
    for word in words:
        assert word in lines[0], lines[0]
    assert _contents(tmp_path) == before


def _contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
