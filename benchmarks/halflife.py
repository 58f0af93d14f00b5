"""Does it help that counts fade where the data drift?

    python -m benchmarks.halflife [--new-tokens 0.02 0.2]

`clicks-small` (hidden vectors turn by 0.1 rad a day, 2% of the ranks pass to new tokens every day),
and the same with more new tokens; FM of dimension 16, batches of 1,024. CF-SGD with counts that
never fade and with halflives from a quarter of a day to four days, each at the best of three rates
by NE of the nine days learned from; two seeds of the log.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import torch

from benchmarks.figures import figure
from freqsgd.optimizers import Rule
from freqsgd.recommender.one_pass import fit_stream
from freqsgd.recommender.settings import Settings
from freqsgd.tables import CLICKS_SMALL, ClickStream

HALFLIVES = (None, 800_000.0, 200_000.0, 50_000.0)
RATES = (1.0, 1.4, 2.0)
SEEDS = (0, 1)


def best(stream: ClickStream, halflife: float | None) -> dict[str, float]:
    """What the best rate scores."""
    rules = (Rule("cfsgd", rate, halflife=halflife) for rate in RATES)
    records = [fit_stream(stream, rule, Settings(dim=16))[1] for rule in rules]
    return min(records, key=lambda record: record["train_ne"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--new-tokens", type=float, nargs="+", default=[0.02, 0.2])
    torch.set_num_threads(2)
    for new_tokens in parser.parse_args().new_tokens:
        print(f"new tokens a day: {new_tokens:.0%}; NE learned, NE of the last day, rate, by seed")
        for halflife in HALFLIVES:
            cells, learned = [], []
            for seed in SEEDS:
                log = replace(CLICKS_SMALL, new_tokens=new_tokens, seed=seed)
                found = best(ClickStream(log), halflife)
                learned.append(found["train_ne"])
                cells.append(f"{found['train_ne']:.4f} {found['test_ne']:.4f} {found['lr']:g}")
            name = "never" if halflife is None else f"{halflife:,.0f}"
            print(f"  halflife {name:>9}:  {'   '.join(cells)}", flush=True)
            claim = f"NE of days learned, {new_tokens:.0%} new tokens a day, halflife {name}"
            figure(claim, sum(learned) / len(learned), "")


if __name__ == "__main__":
    main()
