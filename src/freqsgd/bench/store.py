"""Where measured rates are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from freqsgd.data.dataset import DataError
from freqsgd.data.files import read_file, read_json, write_json
from freqsgd.data.folders import cache_folder
from freqsgd.distributed.prediction import Rates

__all__ = ["KIND", "SCHEMA", "read_rates", "stored_bench", "write_bench"]

SCHEMA = 1
KIND = "rates of a machine"


def stored_bench() -> Path:
    """The file of this machine's rates, in the cache folder."""
    return cache_folder() / "bench.json"


def write_bench(bench: dict[str, Any], path: Path | None = None) -> Path:
    """Write what was measured, whole or not at all; return where."""
    path = path or stored_bench()
    write_json(path, bench)
    return path


def read_rates(path: Path | None = None) -> Rates | None:
    """What was measured; None if nothing was stored yet, and no other file is named."""
    if path is None and not stored_bench().exists():
        return None
    path = path or stored_bench()
    unfit = f"{path} is damaged or not what freqsgd bench writes: run freqsgd bench again"
    try:
        bench = read_json(read_file(path), dict)
        if bench["kind"] != KIND:
            raise DataError(unfit)
        if bench["schema"] != SCHEMA:
            raise DataError(
                f"{path} has schema {bench['schema']}, this version of freqsgd reads {SCHEMA}: run "
                "freqsgd bench again"
            )
        return Rates.of(bench)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    except DataError:
        raise
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(unfit) from error
