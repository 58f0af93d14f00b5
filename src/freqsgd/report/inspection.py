"""An inspection as its page tells of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from freqsgd.documents import check_kind, inspection, read_document
from freqsgd.documents.inspection import FEW_TIMES, Promise

PLACES = ("median", "p90")  # half, or 90%, of the tokens are more frequent


class Inspection(inspection.Inspection, frozen=True):
    """All of some data."""

    @property
    def is_text(self) -> bool:
        """Whether the tokens are words: for these alone there is a reason not to suggest rates."""
        return self.lr is None and self.lr_reason is not None

    @property
    def name(self) -> str:
        """Of the data."""
        return self.dataset.name or "unnamed data"

    @property
    def overall(self) -> dict[str, Promise]:
        """What is promised over all fields; nothing where each has a single token."""
        return self.promise if any(field.tokens > 1 for field in self.fields) else {}

    @property
    def seldom_share(self) -> float | None:
        """The share of samples with a token seen less than FEW_TIMES times, if there are any."""
        merged = (self.dataset.min_count or 0) >= FEW_TIMES
        return None if merged else self.tail_samples.seen_below_10


def read_inspection(document: Mapping[str, Any]) -> Inspection:
    """The content of an ``inspect.json``."""
    check_kind(document, "inspection", "inspect")
    found = read_document(document, Inspection, "inspect.json")
    fields = enumerate(found.fields, start=1)
    named = tuple(replace(field, name=field.name or f"field {place}") for place, field in fields)
    return replace(found, fields=named)
