"""The paper's algorithms in plain Python, on the random numbers of the kernel."""

import math

import numpy as np

MASK = (1 << 64) - 1


class SplitMix:
    def __init__(self, state):
        self.state = int(state)

    def bits(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)


def run(problem, alias, iterations, seed, *, steps=None, lr=None, cap=None, blocks=False):
    """All iterates of one repetition, and the pairs that were drawn."""
    keep, other = alias
    items = problem.pairs.shape[1]
    rows, random = problem.start.copy(), SplitMix(seed)
    counts = np.zeros(len(rows), int)
    iterates, drawn = [rows.copy()], []
    for t in range(iterations):
        bits = random.bits()
        cell = ((bits >> 32) * len(keep)) >> 32
        if (bits & 0xFFFFFFFF) / 2**32 >= keep[cell]:
            cell = other[cell]
        i, j = cell // items, problem.users + cell % items
        label = 1 if (random.bits() >> 11) / 2**53 < problem.positive.flat[cell] else -1
        counts[[i, j]] += 1
        eta = dict.fromkeys((i, j))
        for k in (i, j):
            eta[k] = steps[k] if lr is None else min(cap, lr / math.sqrt(counts[k] / (t + 1)))
        if blocks:
            chosen = ((random.bits() >> 32) * len(rows)) >> 32
            eta = {k: eta[k] if k == chosen else 0.0 for k in eta}
        u, v = rows[i].copy(), rows[j].copy()
        slope = -label / (1 + math.exp(label * float(u @ v)))
        rows[i] -= eta[i] * slope * v
        rows[j] -= eta[j] * slope * u
        iterates.append(rows.copy())
        drawn.append((i, j))
    return iterates, drawn
