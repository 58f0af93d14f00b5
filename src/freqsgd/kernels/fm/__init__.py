"""Factorization machines: the kernel of a training step, phase by phase."""
