"""Two ranks of TorchRec against one process of ours, and where the ranks spend their time.

    python -m benchmarks.torchrec_ranks [--tokens N] [--rounds N]

26 features of a million tokens each (power laws, exponents from 0.8 to 1.3), d=16, batches of
65,536 that are in memory; a step learns from a batch, and scores it before. Contenders take turns:
our engine (two threads), and `freqsgd train --engine torchrec`'s step with one rank of two threads,
and with two ranks of one thread, tables row-wise and table-wise.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from typing import Any

from benchmarks.figures import figure

FEATURES, DIM, BATCH, KEPT = 26, 16, 65_536, 4
CONTENDERS = {  # ranks, sharding
    "freqsgd, 1 process": (0, ""),
    "torchrec, 1 rank": (1, "row-wise"),
    "torchrec, 2 ranks, row-wise": (2, "row-wise"),
    "torchrec, 2 ranks, table-wise": (2, "table-wise"),
}
PARTS = {  # of the names of operators
    "exchange": ("ReduceScatter", "AllGather", "AllToAll", "c10d", "gloo", "All2All", "All_"),
    "FBGEMM: update": ("split_embedding_backward", "SplitLookup"),
    "FBGEMM: lookup": ("codegen_forward", "[lookup]"),
    "sorting ids out": ("bucketize", "permute", "bounds_check", "cumsum", "KJT", "expand_into"),
    "copying": ("aten::copy_", "aten::cat", "aten::fill_", "aten::zero_"),
}


def part_of(name: str) -> str:
    return next((part for part, marks in PARTS.items() if any(m in name for m in marks)), "rest")


def single(tokens: int) -> dict[str, Any]:
    from freqsgd.nn import FM
    from freqsgd.planner.measure import engine_steps, examples

    some = examples(FEATURES, tokens, BATCH, KEPT)
    steps = engine_steps(some, FM(some.sizes, DIM), "cfsgd", 2)
    steps()
    return {"rate": max(steps() for _ in range(3))}


def rank(tokens: int, sharding: str) -> dict[str, Any]:
    import torch
    import torch.distributed as dist
    from torch.profiler import ProfilerActivity, profile

    from freqsgd.planner.measure import examples, torchrec_steps
    from freqsgd.torchrec.group import join

    join()
    torch.set_num_threads(2 // dist.get_world_size())
    some = examples(FEATURES, tokens, BATCH, KEPT)
    steps = torchrec_steps(some, DIM, KEPT, sharding, lr=1.0)
    steps()
    rate = max(steps() for _ in range(3))
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        start = time.perf_counter()
        steps()
        spent = time.perf_counter() - start
    parts = dict.fromkeys([*PARTS, "rest"], 0.0)
    for event in profiler.key_averages():
        parts[part_of(event.key)] += event.self_cpu_time_total / 1e6 / spent
    found = {"rate": rate, "parts": parts, "leads": dist.get_rank() == 0}
    dist.destroy_process_group()
    return found


def start(name: str, tokens: int) -> dict[str, Any]:
    """Run a contender in processes of its own."""
    ranks, _ = CONTENDERS[name]
    begin = [sys.executable, "-m"]
    if ranks:
        begin += ["torch.distributed.run", "--nproc-per-node", str(ranks), "-m"]
    command = [*begin, "benchmarks.torchrec_ranks", "--tokens", str(tokens), "--contender", name]
    done = subprocess.run(command, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        raise SystemExit(done.stderr)
    return json.loads(lines[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--contender", choices=CONTENDERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contender:
        ranks, sharding = CONTENDERS[options.contender]
        found = rank(options.tokens, sharding) if ranks else single(options.tokens)
        if found.pop("leads", True):
            print(json.dumps(found), flush=True)
        return
    told: dict[str, list[dict[str, Any]]] = {name: [] for name in CONTENDERS}
    for _ in range(options.rounds):
        for name in CONTENDERS:
            told[name].append(start(name, options.tokens))
    rates = {name: statistics.median(one["rate"] for one in all_) for name, all_ in told.items()}
    for name, rate_ in rates.items():
        figure(name, rate_ / 1e6, "million examples/s")
        parts = told[name][-1].get("parts", {})
        if parts:
            print("   " + ", ".join(f"{part} {share:.0%}" for part, share in parts.items()))


if __name__ == "__main__":
    main()
