"""What the documents that become pages have in common."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from freqsgd.errors import DataError
from freqsgd.files import read_json
from freqsgd.report.results import number

__all__ = ["TAIL_RATES", "check_kind", "column", "listing", "read_document"]

COMMANDS = {"inspection": "inspect", "theory": "theory", "paper": "paper"}
TAIL_RATES = {"exponential": "tau", "polynomial": "nu"}


def check_kind(document: Mapping[str, Any], kind: str, schema: int) -> None:
    """Refuse a document of another kind or version."""
    if document.get("kind") != kind:
        raise DataError(
            f'"kind" is {document.get("kind")!r}, not {kind!r}: give the file that '
            f"freqsgd {COMMANDS[kind]} wrote"
        )
    if document.get("schema") != schema:
        raise DataError(
            f'{kind}: "schema" is {document.get("schema")!r}, this version of freqsgd reads '
            f"{schema}; run the command that wrote the file again"
        )


def listing(value: Any, what: str) -> list[Mapping[str, Any]]:
    """A list of JSON objects."""
    if not isinstance(value, list) or not all(isinstance(entry, Mapping) for entry in value):
        raise DataError(f"{what} must be a list of objects; run the command that wrote it again")
    return value


def column(entry: Mapping[str, Any], name: str, length: int, what: str) -> tuple[float | None, ...]:
    """A list of numbers, one per token; a list that is null has none."""
    values = entry.get(name)
    if values is None:
        return (None,) * length
    if not isinstance(values, list) or len(values) != length:
        raise DataError(
            f'{what}: "{name}" must have a number for each of {length} tokens; '
            "run the command that wrote it again"
        )
    return tuple(map(number, values))


def read_document(path: Path) -> dict[str, Any] | None:
    """A JSON object; None if it is not there, or not whole."""
    try:
        return read_json(path.read_bytes(), dict)
    except (OSError, ValueError):
        return None
