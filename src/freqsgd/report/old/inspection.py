"""An inspection as its page tells of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import asdict, replace

from freqsgd.documents import check_kind, read_document
from freqsgd.documents.inspection import Inspection, Promise, TokenPromise

PLACES = ("median", "p90")  # half, or 90%, of the tokens are more frequent


def promises_of(promise: Promise | None) -> dict[str, TokenPromise]:
    """Return the promises by place."""
    return {} if promise is None else asdict(promise)


def read_inspection(document: Mapping[str, Any]) -> Inspection:
    """Return the content of an ``inspect.json``."""
    check_kind(document, "inspection", "inspect")
    return with_names(read_document(document, Inspection, "inspect.json"))


def with_names(inspection: Inspection) -> Inspection:
    """Return it with names for the fields of columns that have none."""
    fields = enumerate(inspection.fields, start=1)
    named = tuple(replace(field, name=field.name or f"field {place}") for place, field in fields)
    return replace(inspection, fields=named)
