"""Files of models, checkpoints and caches that were changed: refused, or the same result.

A case takes a folder, does one random thing to its files (``CHANGES``), and uses it. That must end
in a :class:`DataError`, which commands print with exit code 2, or in the very result of the folder
as it was: never in another one, another exception or a huge allocation. A subject's cases are drawn
from its name and their numbers, which a failure prints. ``FREQSGD_TAMPERINGS`` sets their number.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from freqsgd import FMClassifier
from freqsgd.compare import compare
from freqsgd.errors import DataError, InterruptedFitError
from freqsgd.optimizers import Rule
from freqsgd.recommender.one_pass import fit_stream
from freqsgd.recommender.predict import probabilities
from freqsgd.recommender.settings import Settings
from freqsgd.recommender.training import fit
from freqsgd.tables import cache
from freqsgd.tables.loading import load
from freqsgd.tables.spec import DataOptions
from freqsgd.vectors.vectors import Vectors
from freqsgd.words.loading import load_text
from freqsgd.words.settings import TextSettings
from freqsgd.words.spec import TextOptions
from freqsgd.words.training import fit_text
from tests.estimators.made_up import clicks
from tests.recommender.made_up import dataset
from tests.recommender.streams import MemoryStream
from tests.recommender.test_rate_grid import timeless
from tests.tables.days_of_files import frame_of, stream_of, write

SMALL = Settings(dim=3, epochs=3, batch_size=100, patience=None)
CHOOSING = Settings(dim=3, epochs=6, batch_size=100, patience=2)
ROOM = 2 << 30  # bytes that a case may ask for
TICK = 0.02  # seconds that the times of files are apart, at most

Files = dict[str, bytes]


@dataclass
class Subject:
    """Files that are used, files like them, and what comes out."""

    use: Callable[[Path], bytes]
    own: Files
    others: Files
    settle: bool = False  # whether it is used once before it is changed
    expected: bytes = b""


def read(folder: Path) -> Files:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def restore(folder: Path, files: Files) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


# ---- what is done to files -----------------------------------------------------------------------


def somewhere(draw: random.Random, size: int) -> int:
    """A place of a file: anywhere, or in its head, where sizes and names are."""
    return draw.randrange(min(size, draw.choice([size, 300])))


def flip_a_bit(draw, files, name, others):
    content = bytearray(files[name])
    content[somewhere(draw, len(content))] ^= 1 << draw.randrange(8)
    files[name] = bytes(content)


def set_bytes(draw, files, name, others):
    content = bytearray(files[name])
    first = somewhere(draw, len(content))
    for place in range(first, min(first + draw.choice([1, 1, 4, 16]), len(content))):
        content[place] = draw.choice([draw.randrange(256), *b"0019e[]{}"])
    files[name] = bytes(content)


def cut(draw, files, name, others):
    files[name] = files[name][: somewhere(draw, len(files[name]))]


def insert(draw, files, name, others):
    place, more = somewhere(draw, len(files[name])), draw.randbytes(draw.choice([1, 8, 4096]))
    files[name] = files[name][:place] + more + files[name][place:]


def extend(draw, files, name, others):
    files[name] += draw.choice([bytes(4), b" ", files[name], draw.randbytes(100)])


def empty(draw, files, name, others):
    files[name] = draw.choice([b"", b"{}", b"[]", b"null", b"[" * 100_000, b'{"a":' * 100_000])


def remove(draw, files, name, others):
    del files[name]


def swap(draw, files, name, others):
    other = draw.choice(sorted(files))
    files[name], files[other] = files[other], files[name]


def take_from_another(draw, files, name, others):
    """The file of the same name, or of another."""
    alike = [each for each in others if Path(each).name == Path(name).name]
    files[name] = others[draw.choice(alike or sorted(others))]


def take_any_from_another(draw, files, name, others):
    files[name] = others[draw.choice(sorted(others))]


CHANGES = (
    flip_a_bit,
    flip_a_bit,
    set_bytes,
    set_bytes,
    cut,
    insert,
    extend,
    empty,
    remove,
    swap,
    take_from_another,
    take_any_from_another,
)


# ---- what is changed -----------------------------------------------------------------------------


def table(folder: Path, seed: int) -> Path:
    draw = random.Random(seed)
    lines = [f"u{draw.randrange(9)},i{draw.randrange(12)},{draw.randrange(2)}" for _ in range(120)]
    (folder / f"{seed}.csv").write_text("\n".join(["user,item,click", *lines]))
    return folder / f"{seed}.csv"


def options_of(path: Path) -> DataOptions:
    return DataOptions(path=str(path), label="click", features=("user", "item"))


def predicted(file: Path) -> Callable[[Path], bytes]:
    return lambda folder: b"".join(part.tobytes() for part in probabilities(folder, str(file)))


def dictionary_model(tmp: Path) -> Subject:
    for seed in (0, 1):
        data = load(options_of(table(tmp, seed)))
        fit(data, Rule("cfsgd", 0.5), Settings(dim=3, epochs=1), threads=1, folder=tmp / f"m{seed}")
    return Subject(predicted(tmp / "0.csv"), read(tmp / "m0"), read(tmp / "m1"))


def hashed_model(tmp: Path) -> Subject:
    for seed in (0, 1):
        write(frame_of(60, seed), tmp / f"days{seed}" / "1.parquet")
        stream = stream_of(tmp / f"days{seed}", hash_rows="user=40,item=50")
        fit_stream(stream, Rule("cfsgd", 0.5), SMALL, threads=1, folder=tmp / f"m{seed}")
    return Subject(predicted(tmp / "days0" / "1.parquet"), read(tmp / "m0"), read(tmp / "m1"))


def text(folder: Path, seed: int) -> Path:
    draw = random.Random(seed)
    lines = (" ".join(f"w{draw.randrange(20)}" for _ in range(12)) for _ in range(60))
    (folder / f"{seed}.txt").write_text("\n".join(lines))
    return folder / f"{seed}.txt"


def word_model(tmp: Path) -> Subject:
    settings = TextSettings(dim=3, window=2, epochs=1, loss="softmax")
    for seed in (0, 1):
        corpus = load_text(TextOptions(path=str(text(tmp, seed)), min_count=1))
        fit_text(corpus, Rule("cfsgd", 0.5), settings, threads=1, folder=tmp / f"m{seed}")

    def use(folder: Path) -> bytes:
        vectors = Vectors.of_model(folder)
        return repr(vectors.tokens).encode() + vectors.matrix.tobytes() + vectors.counts.tobytes()

    return Subject(use, read(tmp / "m0"), read(tmp / "m1"))


def estimator(tmp: Path) -> Subject:
    for seed in (0, 1):
        model = FMClassifier(dim=3, epochs=1, lr=0.5, random_state=0)
        model.fit(*clicks(80, seed=seed)).save(tmp / f"m{seed}")
    rows = clicks(80)[0]

    def use(folder: Path) -> bytes:
        loaded = FMClassifier.load(folder)
        return repr(loaded.get_params()).encode() + loaded.predict_proba(rows).tobytes()

    return Subject(use, read(tmp / "m0"), read(tmp / "m1"))


def in_cache(tmp: Path, use: Callable[[], bytes], others: Callable[[], bytes]) -> Subject:
    """What is in a folder of encoded data, and in one of others."""
    found = []
    for name, fill in (("own", use), ("others", others)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("FREQSGD_CACHE", str(tmp / name))
            fill()
        found.append(read(tmp / name))

    def from_cache(folder: Path) -> bytes:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("FREQSGD_CACHE", str(folder))
            return use()

    return Subject(from_cache, *found, settle=True)


def table_cache(tmp: Path) -> Subject:
    def use(path: Path) -> bytes:
        data = load(options_of(path))
        splits = (data.splits.train, data.splits.validation, data.splits.test)
        arrays = b"".join(np.asarray(a).tobytes() for a in (data.ids, data.labels, *splits))
        words = [data.encoder.tokens(field) for field in range(2)]
        return repr((data.fields, words, data.encoder.counts())).encode() + arrays

    first, second = table(tmp, 0), table(tmp, 1)
    return in_cache(tmp, lambda: use(first), lambda: use(second))


def text_cache(tmp: Path) -> Subject:
    def use(path: Path) -> bytes:
        corpus = load_text(TextOptions(path=str(path), min_count=1))
        raw = [part.raw_words for part in (corpus.train, corpus.validation, corpus.test)]
        return f"{corpus.fingerprint} {raw} {corpus.words} {corpus.counts}".encode()

    first, second = text(tmp, 0), text(tmp, 1)
    return in_cache(tmp, lambda: use(first), lambda: use(second))


def interrupted(folder: Path, start: Callable[..., object], after: int) -> None:
    calls = iter(range(after))

    def listener(progress, record):
        if next(calls, None) is None:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(InterruptedFitError):
        start(folder=folder, listener=listener)


def bits(model) -> bytes:
    return b"".join(tensor.numpy().tobytes() for tensor in model.state_dict().values())


def checkpoint(tmp: Path) -> Subject:
    """Of a run in its second epoch, whose first is the best, as in the other run."""

    def use(folder: Path, seed: int = 0) -> bytes:
        data, rule = dataset(400, (20, 10), seed), Rule("cfsgd", 12.0)
        return bits(fit(data, rule, CHOOSING, threads=1, folder=folder, resume=True)[0])

    for seed in (0, 1):
        data = dataset(400, (20, 10), seed)

        def start(data=data, **options):
            settings = replace(CHOOSING, checkpoint_steps=1)
            fit(data, Rule("cfsgd", 12.0), settings, threads=1, **options)

        interrupted(tmp / f"m{seed}", start, after=7)
    return Subject(use, read(tmp / "m0"), read(tmp / "m1"))


def one_pass_checkpoint(tmp: Path) -> Subject:
    def stream(seed):
        return MemoryStream((20, 10), (200, 200), seed)

    def use(folder: Path) -> bytes:
        rule = Rule("cfsgd", 0.5)
        return bits(fit_stream(stream(0), rule, SMALL, threads=1, folder=folder, resume=True)[0])

    for seed in (0, 1):

        def start(seed=seed, **options):
            fit_stream(stream(seed), Rule("cfsgd", 0.5), SMALL, threads=1, **options)

        interrupted(tmp / f"m{seed}", start, after=2)
    return Subject(use, read(tmp / "m0"), read(tmp / "m1"))


def rates(tmp: Path) -> Subject:
    """Records of the learning rates of a comparison."""

    def use(folder: Path, seed: int = 0) -> bytes:
        stream, rules = MemoryStream((20, 10), (200, 200), seed), [Rule("cfsgd"), Rule("sgd", 1.0)]
        found = compare(stream, rules, SMALL, threads=1, out=folder, resume=True)
        return json.dumps(timeless(found), sort_keys=True).encode()

    for seed in (0, 1):
        use(tmp / f"m{seed}", seed)
    files = ({k: v for k, v in read(tmp / f"m{s}").items() if "rates/" in k} for s in (0, 1))
    return Subject(use, *files)


SUBJECTS = (
    dictionary_model,
    hashed_model,
    word_model,
    estimator,
    table_cache,
    text_cache,
    checkpoint,
    one_pass_checkpoint,
    rates,
)
CASES = -(-int(os.environ.get("FREQSGD_TAMPERINGS", "324")) // len(SUBJECTS))


@pytest.fixture
def little_room():
    """A case that asks for much more memory than there is now fails."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + ROOM, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.parametrize("make", SUBJECTS, ids=lambda make: make.__name__)
def test_changed_files_are_refused_or_give_the_same_result(make, tmp_path, monkeypatch, request):
    monkeypatch.setenv("FREQSGD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_SETTLED_SECONDS", TICK)
    warnings.simplefilter("ignore")
    subject, work = make(tmp_path), tmp_path / "work"
    restore(work, subject.own)
    subject.expected = subject.use(work)
    request.getfixturevalue("little_room")
    ends = {"refused": 0, "the same": 0}
    for number in range(CASES):
        ends[end_of(subject, work, f"{make.__name__} {number}")] += 1
    print(make.__name__, ends)
    assert subject.settle or ends["refused"] > CASES / 2  # what was encoded is encoded anew


def end_of(subject: Subject, work: Path, seed: str) -> str:
    draw = random.Random(seed)
    files = dict(subject.own)
    change, name = draw.choice(CHANGES), draw.choice([name for name in files if files[name]])
    restore(work, files)
    if subject.settle and draw.random() < 0.5:  # files that were compared are not read again
        time.sleep(2 * TICK)
        assert subject.use(work) == subject.expected
        files = read(work)
    change(draw, files, name, subject.others)
    if files == subject.others:  # all of it, which is another model
        return "refused"
    for each in files.keys() | subject.own.keys():
        path = work / each
        if each not in files:
            path.unlink()
        elif path.read_bytes() != files[each]:
            path.write_bytes(files[each])  # in place, with the number that it had
    what = f"case {seed!r}: {change.__name__} {name}"
    try:
        found = subject.use(work)
    except DataError:
        return "refused"
    except BaseException as error:
        raise AssertionError(f"{what} ended in {type(error).__name__}: {error}") from error
    assert found == subject.expected, f"{what} gave another result"
    return "the same"
