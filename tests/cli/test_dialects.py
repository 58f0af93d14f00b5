"""Files without a header, with separators of their own and of RecBole, as a user reads them."""

from __future__ import annotations

import json
import random

import pytest

RATINGS = ["--label", "rating", "--positive-above", "3"]
BARE = ["--separator", "tab", "--columns", "user,item,rating,timestamp"]
QUICK = ["--dim", "4", "--epochs", "1", "--lr", "0.1"]


@pytest.fixture
def command(in_process, tmp_path, monkeypatch):
    """Runs a command beside the same ratings as in ml-100k, as in RecBole, and as CSV."""
    monkeypatch.setenv("FREQSGD_CACHE", str(tmp_path / "cache"))
    draw = random.Random(0)
    rows = [[str(draw.randrange(1, most)) for most in (30, 40, 6, 10**6)] for _ in range(400)]
    files = {
        "u.data": (None, "\t"),
        "ratings.inter": ("user:token\titem:token\trating:float\ttimestamp:float", "\t"),
        "ratings.csv": ("user;item;rating;timestamp", ";"),
    }
    for name, (header, separator) in files.items():
        lines = [*([header] if header else []), *(separator.join(row) for row in rows)]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    pairs = "".join(f"{item}|{user}\n" for user, item, _, _ in rows)
    (tmp_path / "pairs.txt").write_text(pairs)
    return in_process


READ = {
    "u.data": BARE,
    "ratings.inter": [],
    "ratings.csv": ["--separator", ";"],
}


def test_every_layout_gives_the_same_model_which_reads_its_files_again(command):
    printed = set()
    for name, options in READ.items():
        given = ["--data", name, *options, *RATINGS, "--features", "user,item", *QUICK]
        command("train", *given, "--out", f"model-{name}")
        printed.add(command("predict", f"model-{name}", name).out)
    own = ["--separator", "|", "--columns", "item,user"]
    printed.add(command("predict", "model-u.data", "pairs.txt", *own).out)
    printed.add(command("predict", "model-u.data", "ratings.csv", "--separator", ";").out)
    assert len(printed) == 1
    assert len(printed.pop().splitlines()) == 401


def test_one_pass_goes_on_only_with_files_that_are_read_in_the_same_way(command, tmp_path):
    given = ["--data", "u.data", *RATINGS, "--features", "user,item"]
    given += ["--hash-rows", "100", "--dim", "4", "--lr", "0.1", "--out", "m"]
    command("stream", "train", *given, *BARE)
    first = command("predict", "m", "u.data").out
    command("stream", "train", *given, *BARE, "--resume")
    other = ["--separator", "tab", "--columns", "item,user,rating,timestamp"]
    assert (
        "the data has changed" in command("stream", "train", *given, *other, "--resume", code=2).err
    )
    assert command("predict", "m", "u.data").out == first


@pytest.mark.parametrize("name", READ)
def test_commands_that_do_not_train_read_the_same(command, tmp_path, name):
    read = READ[name]
    command("inspect", "--data", name, *read, "--features", "user,item", "--out", "i")
    fields = json.loads((tmp_path / "i" / "inspect.json").read_text())["fields"]
    assert [(field["name"], field["tokens"]) for field in fields] == [("user", 29), ("item", 39)]
    assert command("data", "info", name, *read).out.startswith("user: text\nitem: text\nrating")
    told = command("data", "info", name, *read, *RATINGS, "--features", "user,item").out
    assert "30 tokens" in told
    given = ["--data", name, *read, "--label", "rating", "--features", "user,item"]
    size = ["--hash-rows", "50", "--host-memory", "1G", "--json"]
    plan = json.loads(command("plan", *given, *size).out)
    assert plan["size"]["rows"] == 100
