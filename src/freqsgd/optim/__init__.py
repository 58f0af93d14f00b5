"""Frequency-aware optimizers for PyTorch."""

from freqsgd.optim.cfadam import CFAdam
from freqsgd.optim.cfsgd import CFSGD
from freqsgd.optim.fasgd import FASGD
from freqsgd.optim.groups import param_groups
from freqsgd.optim.watch import Watch, watch

__all__ = ["CFSGD", "FASGD", "CFAdam", "Watch", "param_groups", "watch"]
