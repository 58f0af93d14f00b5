"""What the documents that commands write hold, each defined once.

A document is a tree of Structs. Who writes one keeps to it, who prints or draws one reads it with
:func:`read_document`. ``docs/results.md`` says how versions are told apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from freqsgd.errors import DataError
from freqsgd.files import read_json, write_json

SCHEMA = 1  # of every document
KEPT_NULLS = "params"  # of a trial: null says that a setting was left out

Read = TypeVar("Read", bound=msgspec.Struct)


def read_document(document: Mapping[str, Any], kind: type[Read], name: str) -> Read:
    """Return the content of a document as its Struct.

    Keys that are not known are ignored. A key that is null, or a number that is not finite, counts
    as missing.

    Args:
        document: the JSON object
        kind: the Struct
        name: of the file, for errors

    Raises:
        DataError: it has another schema, lacks what is required, or holds something else
    """
    again = "run the command that wrote it again"
    schema = document.get("schema")
    if schema != SCHEMA or isinstance(schema, bool):
        raise DataError(
            f'{name}: "schema" is {schema!r}, this version of freqsgd reads {SCHEMA}; '
            f"use the version that wrote it, or {again}"
        )
    try:
        return msgspec.convert(_known(document), kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise DataError(f"{name}: {error}; {again}") from error


def written(content: msgspec.Struct) -> dict[str, Any]:
    """Return a part of a document as JSON has it: what has no value is null."""
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(content))
    return found


def check_kind(document: Mapping[str, Any], kind: str, command: str) -> None:
    """Refuse a document of another kind."""
    if document.get("kind") != kind:
        raise DataError(
            f'"kind" is {document.get("kind")!r}, not {kind!r}: give the file that '
            f"freqsgd {command} wrote"
        )


def load_object(path: Path) -> dict[str, Any] | None:
    """Return a JSON object; None if it is not there, or not whole."""
    try:
        return read_json(path.read_bytes(), dict)
    except (OSError, ValueError):
        return None


def _known(value: Any, *, nulls: bool = False) -> Any:
    """Return a copy without numbers that are not finite, and without keys that are null."""
    if isinstance(value, Mapping):
        pairs = ((str(key), _known(each, nulls=key == KEPT_NULLS)) for key, each in value.items())
        return {key: each for key, each in pairs if nulls or each is not None}
    if isinstance(value, list | tuple):
        return [_known(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_document(path: Path, document: msgspec.Struct) -> None:
    """Write a document as JSON, whole or not at all."""
    write_json(path, msgspec.to_builtins(document))
