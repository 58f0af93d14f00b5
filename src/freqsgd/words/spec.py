"""What is asked for as text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from freqsgd.checks import refuse_options
from freqsgd.errors import DataError
from freqsgd.tables.catalog import known_dataset
from freqsgd.words.files import list_text_files

GENERATED = "zipf-text"
TOKENIZERS = ("whitespace", "words")
UNKNOWN = ("remove", "token")


@dataclass(frozen=True)
class TextOptions:
    """A text that is known by name, or files of one's own: a sentence or paragraph a line.

    Misused options raise ``DataError`` when the text is loaded.

    Args:
        dataset: "zipf-text" (if there is no path), "wikitext-2" or "wikitext-103"
        path: a file of plain text, packed if its name ends with .gz, or a folder of such; files
            that are to validate or test on are left out
        validation_path: the same, to validate on; by default 5% of the paragraphs, and of a folder
            with wiki.train.tokens in it wiki.valid.tokens
        test_path: the same, to test on; by default 5% of the paragraphs, or wiki.test.tokens
        tokenizer: "whitespace", or "words": letters, digits and underscores, with apostrophes
            inside; all else separates words
        lowercase: by default for the tokenizer "words" and for wikitext, by name or as a folder
        min_count: words seen less often in the training part are rare; None: 50 for wikitext, by
            name or as a folder, else 5
        max_vocab: the most words that are not rare: the most frequent ones
        unknown: "remove" rare words before windows are formed, or let one "token", <unk>, stand
            for all of them. A word <unk> of the text is always rare
        longest: paragraphs of more words are cut into pieces of so many
        split_seed: of the paragraphs that are held out
    """

    dataset: str | None = None
    path: str | None = None
    validation_path: str | None = None
    test_path: str | None = None
    tokenizer: str = "whitespace"
    lowercase: bool | None = None
    min_count: int | None = None
    max_vocab: int | None = None
    unknown: str = "remove"
    longest: int = 256
    split_seed: int = 0

    @property
    def name(self) -> str | None:
        """The dataset that is known by name; None for files of one's own."""
        return self.dataset or (GENERATED if self.path is None else None)

    def check(self) -> None:
        """Raise unless the options fit together."""
        if self.path is not None:
            refuse_options(self, "own files", "dataset")
        else:
            name = known_dataset(self.name or "", "text").name
            refuse_options(self, f"the dataset {name}", "validation_path", "test_path", "tokenizer")
            if name == GENERATED:
                refuse_options(self, f"the dataset {name}", "lowercase", "unknown")
        for what, known in (("tokenizer", TOKENIZERS), ("unknown", UNKNOWN)):
            if getattr(self, what) not in known:
                value = getattr(self, what)
                raise DataError(f"{what} must be {' or '.join(known)}, not {value!r}")
        for what, least in (("min_count", 1), ("max_vocab", 2), ("longest", 2), ("split_seed", 0)):
            value = getattr(self, what)
            if value is not None and value < least:
                name = what.replace("_", " ")
                raise DataError(f"{name} must be at least {least}, not {value}")


_MIN_COUNT, _WIKITEXT_MIN_COUNT = 5, 50
_TRAIN, *_HELD_OUT = (f"wiki.{part}.tokens" for part in ("train", "valid", "test"))


def is_wikitext(path: Path) -> bool:
    """Tell whether a folder has the layout of WikiText, which has files for all parts."""
    return (path / _TRAIN).is_file()


def default_min_count(path: Path | None) -> int:
    """Return how often a word must be seen by default; the path of generated text is None."""
    return _WIKITEXT_MIN_COUNT if path is not None and is_wikitext(path) else _MIN_COUNT


def files_of_parts(
    path: Path, validation: str | None = None, test: str | None = None
) -> tuple[tuple[Path, ...], ...]:
    """Return the files of each part; those of a held-out part are none if it has to be drawn.

    A file that is held out is never one to learn from, even if it is in the same folder.
    """
    layout = is_wikitext(path)
    train = (path / _TRAIN,) if layout else list_text_files(path)
    held_out = [list_text_files(Path(own)) if own else () for own in (validation, test)]
    if layout:
        named = zip(held_out, _HELD_OUT, strict=True)
        held_out = [files or (_existing(path / name),) for files, name in named]
    taken = {file.resolve() for files in held_out for file in files}
    left = tuple(file for file in train if file.resolve() not in taken)
    if not left:
        raise DataError(
            f"{path}: what is to be validated or tested on is all there is to learn from; name "
            "other files for one of them, or none: some paragraphs are held out then"
        )
    return (left, *held_out)


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise DataError(f"{path}: there is no such file, though {_TRAIN} is there")
    return path
