"""``freqsgd bench``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from freqsgd.cli import options as opt
from freqsgd.cli.options import option, target
from freqsgd.cli.output import grid, print_json, screen
from freqsgd.cli.progress import Watcher
from freqsgd.cli.session import interruptible, use_threads
from freqsgd.documents import write_document
from freqsgd.documents.planner import Bench
from freqsgd.files import check_target
from freqsgd.runs.machine import byte_size

_NAMES = {
    "cfsgd": "FM, cfsgd",
    "torchrec": "FM, TorchRec's COUNTER_SGD, one process",
    "copy": "copying memory",
    "loopback": "gloo all-to-all, two processes over loopback, each",
}


def bench(
    quick: Annotated[
        bool,
        option(
            "Measure small tables, which fit the cache: the rates are too high, and kept only "
            "with --out.",
            "--quick",
        ),
    ] = False,
    threads: opt.Threads = None,
    out: Annotated[
        Path | None, target("File for the rates (default: one in the cache folder).")
    ] = None,
    force: opt.Force = False,
    as_json: opt.AsJson = False,
) -> None:
    """Measure the rates of this machine that freqsgd plan predicts from.

    It takes under two minutes, which other work on the machine would spoil.

    Example: freqsgd bench --out host.json
    """
    from freqsgd.planner.measure import FULL, QUICK, measure
    from freqsgd.planner.speed import stored_bench

    path = out if quick else out or stored_bench()
    if path is not None:
        check_target(path, force=force or out is None)
    use_threads(threads)
    with interruptible("interrupted: nothing was written"), Watcher() as watcher:
        found = measure(QUICK if quick else FULL, watcher.loading)
    if path is not None:
        write_document(path, found)
    if as_json:
        print_json(found)
        return
    print_bench(found)
    if path is None:
        print("\nnot kept: rates of --quick are only kept with --out")
    else:
        print(f"\nkept in {path}: freqsgd plan {f'--bench {out} ' if out else ''}predicts from it")


def print_bench(bench: Bench) -> None:
    """Print the machine, and a line for each rate."""
    results = screen(140)
    machine, sizes = bench.machine, bench.sizes
    results.print(
        f"\n{machine.cpu}, {machine.cores} cores, {machine.threads} threads; torch "
        f"{machine.torch}, TorchRec {machine.torchrec or 'not measured'}"
    )
    if machine.torchrec is None:
        results.print(machine.no_torchrec, soft_wrap=True, markup=False)
    results.print(
        f"{sizes.features} features, batches of {sizes.batch_size:,}; medians of "
        f"{sizes.rounds} rounds, {bench.seconds:.0f} s in all"
    )
    table = grid("what", "vectors", "table rows", "per second", "spread")
    for each in bench.rates:
        rate = each.per_second
        table.add_row(
            _NAMES[each.what],
            "" if each.dim is None else str(each.dim),
            "" if each.table_rows is None else f"{each.table_rows:,}",
            byte_size(rate) if each.unit == "bytes" else f"{rate / 1e6:.2f} M rows",
            f"{each.slowest / rate:.2f} to {each.fastest / rate:.2f}",
        )
    results.print(table)
    if bench.quick:
        results.print("quick: tables this small fit the cache, so these rates are too high")
