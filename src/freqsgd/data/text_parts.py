"""Which files of a text are to learn from, and which are held out."""

from __future__ import annotations

from pathlib import Path

from freqsgd.data.dataset import DataError
from freqsgd.data.text_files import list_text_files

__all__ = ["default_min_count", "files_of_parts", "is_wikitext"]

_MIN_COUNT, _WIKITEXT_MIN_COUNT = 5, 50
_TRAIN, *_HELD_OUT = (f"wiki.{part}.tokens" for part in ("train", "valid", "test"))


def is_wikitext(path: Path) -> bool:
    """Whether it is a folder in the layout of WikiText, which has files for all parts."""
    return (path / _TRAIN).is_file()


def default_min_count(path: Path | None) -> int:
    """How often a word must be seen unless something else is asked for; generated text is None."""
    return _WIKITEXT_MIN_COUNT if path is not None and is_wikitext(path) else _MIN_COUNT


def files_of_parts(
    path: Path, validation: str | None = None, test: str | None = None
) -> tuple[tuple[Path, ...], ...]:
    """The files of each part; those of a held-out part are none if it has to be drawn.

    A file that is held out is never one to learn from, though it be in the same folder.
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
