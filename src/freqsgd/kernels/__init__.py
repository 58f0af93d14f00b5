"""Numba kernels for the CPU: arrays in, arrays out, no torch, no input or output."""
