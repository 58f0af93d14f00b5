"""What this machine does in a second."""

from typing import TYPE_CHECKING

from freqsgd._lazy import lazy_names

if TYPE_CHECKING:
    from freqsgd.bench.measuring import FULL, QUICK, measure
    from freqsgd.bench.store import read_rates, stored_bench, write_bench

__all__ = ["FULL", "QUICK", "measure", "read_rates", "stored_bench", "write_bench"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "FULL": "freqsgd.bench.measuring",
            "QUICK": "freqsgd.bench.measuring",
            "measure": "freqsgd.bench.measuring",
            "read_rates": "freqsgd.bench.store",
            "stored_bench": "freqsgd.bench.store",
            "write_bench": "freqsgd.bench.store",
        },
    )
