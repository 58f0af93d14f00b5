"""What this machine does in a second."""

from freqsgd.bench.measuring import FULL, QUICK, measure
from freqsgd.bench.store import read_rates, stored_bench, write_bench

__all__ = ["FULL", "QUICK", "measure", "read_rates", "stored_bench", "write_bench"]
