"""Resuming: the file that a run continues from, and checks that its options are the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor

from freqsgd.errors import DataError
from freqsgd.runs import checkpoint
from freqsgd.runs.checkpoint import MODEL

CHECKPOINT = "checkpoint.safetensors"
_FREE = ("checkpoint_steps", "checkpoint_examples")  # options that do not change the result


def used_for(folder: Path, resume: bool) -> str | None:
    """Return the file that a run goes on from; refuse a used folder unless resuming."""
    used = [name for name in (MODEL, CHECKPOINT) if (folder / name).exists()]
    if used and not resume:
        if used == [CHECKPOINT] and _diverged(folder / CHECKPOINT):
            raise DataError(
                f"{folder} holds a run that diverged: remove the folder, or use another"
            )
        raise DataError(
            f"{folder} holds a {used[0]} already: resume it (--resume), or use another folder"
        )
    return used[0] if used else None


def _diverged(path: Path) -> bool:
    """Return whether a checkpoint is of a run that diverged; a damaged one is not known to be."""
    try:
        return bool(checkpoint.describe(path)["record"]["stopped"] == "diverged")
    except (DataError, KeyError, TypeError):
        return False


def check_same(
    path: Path,
    saved: dict[str, Any],
    about: dict[str, Any],
    options: dict[str, Any],
    torch_threads: int | None,
) -> None:
    """Refuse to go on with other data or options than those a file was written with."""
    with refusing_others(path):
        before, options_then = saved["data"], saved["record"]["options"]
    changed = [
        f"{name} {before.get(name)} then, {value} now"
        for name, value in about.items()
        if value != before.get(name)
    ]
    if changed:
        raise DataError(
            f"cannot resume from {path}: the data has changed since it was written "
            f"({changed[0]}); use the same data, or another folder"
        )
    now, then = dict(options), dict(options_then)
    if torch_threads is not None and "torch_threads" in saved:
        now["threads"], then["threads"] = torch_threads, saved["torch_threads"]
    check_options(path, then, now)


def check_options(
    path: Path, then: dict[str, Any], now: dict[str, Any], *, whole_names: bool = False
) -> None:
    """Refuse to go on with other options than those a file was written with.

    Args:
        path: the file
        then, now: options by name; some may be dicts of others
        whole_names: name an option of a dict after both, as in "settings dim"
    """
    then, now = (_flat(each, whole_names) for each in (then, now))
    for name in now | then:
        if name not in _FREE and now.get(name) != then.get(name):
            raise DataError(
                f"cannot resume from {path}: it was written with {name} {then.get(name)}, now "
                f"{name} is {now.get(name)}; use the same options and data, or another folder"
            )


@contextmanager
def refusing_others(path: Path) -> Iterator[None]:
    """Refuse a file that is whole but holds something else than what a run goes on from."""
    try:
        yield
    except DataError:
        raise
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise DataError(
            f"cannot resume from {path}: it is not what this run leaves there "
            f"({type(error).__name__}: {error}); restore the whole folder, or use another"
        ) from error


def in_parts(**parts: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors of all parts of a checkpoint, by part and name."""
    return {f"{part}.{k}": v for part, tensors in parts.items() for k, v in tensors.items()}


def part_of(tensors: dict[str, Tensor], part: str) -> dict[str, Tensor]:
    """Return the tensors of one part, by their own names."""
    prefix = f"{part}."
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def _flat(options: dict[str, Any], whole_names: bool, prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in options.items():
        name = f"{prefix}{key}" if whole_names else key
        flat |= _flat(value, whole_names, f"{name} ") if isinstance(value, dict) else {name: value}
    return flat
