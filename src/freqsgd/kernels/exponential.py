"""The exponential function, many numbers at once."""

from __future__ import annotations

import numpy as np

from freqsgd.kernels.machine import compiled

__all__ = ["exp_of_minus_abs"]


@compiled
def exp_of_minus_abs(x, length, bits, out):
    """``out = exp(-abs(x))`` to float32's precision, in a form that the compiler vectorises."""
    power_of_two = bits.view(np.float32)
    for i in range(length):
        y = max(np.float32(-126), -abs(x[i]) * np.float32(1.44269504089))  # in powers of 2
        whole = np.floor(y)
        bits[i] = (np.int32(whole) + np.int32(127)) << np.int32(23)
        r = (y - whole - np.float32(0.5)) * np.float32(0.69314718056)  # 2**f = sqrt(2) e**r
        t = np.float32(1 / 5040)
        t = t * r + np.float32(1 / 720)
        t = t * r + np.float32(1 / 120)
        t = t * r + np.float32(1 / 24)
        t = t * r + np.float32(1 / 6)
        t = t * r + np.float32(1 / 2)
        t = t * r + np.float32(1)
        t = t * r + np.float32(1)
        out[i] = np.float32(1.41421356237) * t
    for i in range(length):
        out[i] *= power_of_two[i]
