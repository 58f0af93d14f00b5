"""What commands write must be what the Structs of ``freqsgd.documents`` hold."""

from __future__ import annotations

from typing import Any

import msgspec

from freqsgd.documents import read_document


def check_lossless(document: dict[str, Any], kind: type[msgspec.Struct]) -> None:
    """Fail unless the Struct has every key of the document with its value; null is no value."""
    lost = list(missing(document, msgspec.to_builtins(read_document(document, kind, "document"))))
    assert not lost, lost


def missing(written: Any, held: Any, place: str = "$") -> list[str]:
    """Return the places of what is written and not held."""
    if isinstance(written, dict) and isinstance(held, dict):
        return [
            lost
            for key, value in written.items()
            if value is not None
            for lost in missing(value, held.get(key), f"{place}.{key}")
        ]
    if isinstance(written, list) and isinstance(held, list | tuple) and len(written) == len(held):
        pairs = enumerate(zip(written, held, strict=True))
        return [lost for n, (a, b) in pairs for lost in missing(a, b, f"{place}[{n}]")]
    return [] if written == held else [f"{place}: {written!r} became {held!r}"]
