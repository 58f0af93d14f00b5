"""Where ``freqsgd predict`` writes to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading

import pytest

from freqsgd.errors import DataError
from freqsgd.nn.fm import FM
from freqsgd.recommender.folder import save_model
from freqsgd.recommender.predict import predict_file
from freqsgd.tables.loading import load
from freqsgd.tables.spec import DataOptions


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A model in ``model``, rows in ``rows.csv``; both in the current folder."""
    monkeypatch.setenv("FREQSGD_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    rows = [f"u{n % 7},i{n % 5},{n % 2}\n" for n in range(50)]
    (tmp_path / "rows.csv").write_text("user,item,click\n" + "".join(rows))
    data = load(DataOptions(path="rows.csv", label="click", features=("user", "item")))
    model = FM([field.size for field in data.fields], 2)
    model.tokens.weight.data.normal_()
    (tmp_path / "model").mkdir()
    save_model(tmp_path / "model", model, data, {"record": {}, "data": {}})
    return tmp_path / "model"


def test_it_says_what_it_wrote_and_replaces_it_when_forced(model, in_process, tmp_path):
    printed = in_process("predict", "model", "rows.csv").out
    assert in_process("predict", "model", "rows.csv", "--out", "p.csv").out == "p.csv: 50 rows\n"
    assert (tmp_path / "p.csv").read_text() == printed
    (tmp_path / "p.csv").write_text("old")
    (tmp_path / "link").symlink_to("p.csv")
    in_process("predict", "model", "rows.csv", "--out", "link", "--force")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "p.csv").read_text() == printed


def test_days_are_predicted_in_order_and_never_replaced(model, in_process, tmp_path):
    rows = (tmp_path / "rows.csv").read_text().splitlines(keepends=True)
    for day, part in enumerate((rows[1:31], rows[31:])):
        (tmp_path / f"day-{day}.csv").write_text("".join([rows[0], *part]))
    whole = in_process("predict", "model", "rows.csv").out
    assert in_process("predict", "model", "day-*.csv").out == whole
    with pytest.raises(DataError, match=r"day-1.csv is an input, which is never replaced"):
        predict_file(model, "day-*.csv", tmp_path / "day-1.csv", force=True)


def test_a_pipe_gets_the_predictions_and_nothing_else(model, in_process, tmp_path):
    os.mkfifo("pipe")
    read = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_text()))
    reader.start()
    said = in_process("predict", "model", "rows.csv", "--out", "pipe")
    reader.join(30)
    assert said.out == ""
    assert "pipe: 50 rows" in said.err
    assert read == [in_process("predict", "model", "rows.csv").out]
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize("out", [None, "/dev/stdout"])
def test_a_reader_that_has_gone_is_no_error_of_data(model, tmp_path, out):
    """Commands end on a broken pipe without a word, so it must reach them as what it is."""
    code = (
        "from pathlib import Path\n"
        "from freqsgd.recommender.predict import predict_file\n"
        "try:\n"
        f"    predict_file(Path('model'), 'rows.csv', {out and f'Path({out!r})'})\n"
        "except BrokenPipeError:\n"
        "    import os; os._exit(7)\n"
    )
    ours, theirs = os.pipe()
    os.close(ours)
    ended = subprocess.run([sys.executable, "-c", code], stdout=theirs, cwd=tmp_path)
    os.close(theirs)
    assert ended.returncode == 7


def test_a_dictionary_without_its_checksum_is_refused(model, tmp_path):
    path = model / "encoder.json"
    described = json.loads(path.read_text())
    del described["checksum"]
    path.write_text(json.dumps(described))
    with pytest.raises(DataError, match=r"encoder.json: the file is damaged"):
        predict_file(model, "rows.csv", tmp_path / "then.csv")
