"""Whatever trains in a folder keeps others out of it."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from freqsgd.compare import compare
from freqsgd.errors import DataError
from freqsgd.files import locked
from freqsgd.optimizers import Rule
from freqsgd.recommender.one_pass import fit_stream
from freqsgd.recommender.settings import Settings
from freqsgd.recommender.training import fit
from freqsgd.recommender.tune import tune
from freqsgd.words.training import fit_text
from tests.recommender.made_up import dataset
from tests.recommender.streams import MemoryStream
from tests.words.made_up import corpus, small

RULE, SETTINGS = Rule("cfsgd", 1.0), Settings(dim=2, epochs=1, patience=1)
TRAIN = {
    "fit": lambda folder: fit(dataset(), RULE, SETTINGS, folder=folder, resume=True),
    "fit_text": lambda folder: fit_text(corpus(), RULE, small(), folder=folder, resume=True),
    "compare": lambda folder: compare(dataset(), [RULE], SETTINGS, out=folder, resume=True),
    "tune": lambda folder: tune(dataset(), ["sgd"], SETTINGS, out=folder, trials=1, resume=True),
    "fit_stream": lambda folder: fit_stream(
        MemoryStream(), RULE, SETTINGS, folder=folder, resume=True
    ),
    "compare a stream": lambda folder: compare(
        MemoryStream(), [RULE], SETTINGS, out=folder, resume=True
    ),
}


@pytest.mark.parametrize("train", TRAIN.values(), ids=TRAIN)
def test_a_folder_in_use_is_refused_and_left_alone(train, tmp_path):
    with locked(tmp_path):
        with pytest.raises(DataError, match="is being used by another run"):
            train(tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == [".lock"]


@pytest.mark.parametrize("name", ["fit_stream", "compare a stream", "compare"])
def test_a_folder_is_free_again_after_a_run(name, tmp_path):
    for _ in range(2):
        TRAIN[name](tmp_path)
        assert not list(tmp_path.rglob(".lock"))


def test_a_full_disk_does_not_keep_anyone_from_locking(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with locked(tmp_path), pytest.raises(DataError, match="by another run: wait"), locked(tmp_path):
        pass
