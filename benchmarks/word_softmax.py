"""The first epochs of the paper's word2vec experiment: losses, their parts by frequency, seconds.

    python -m benchmarks.word_softmax [--model cbow] [--epochs 3] [--max-norm 0] [--lr sgd=4,adam=1]

WikiText-2 (needs FREQSGD_DATA), full softmax, words seen 50 times or more, 300 dimensions, window
4, steps of 96 paragraphs; the rates fall as over 20 epochs, of which the first few are run. Test
losses of the whole text, and of the rarest words that make up 5% of the training text: as predicted
words and, for skip-gram, as centres.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

from benchmarks.figures import figure
from freqsgd.optimizers import Rule
from freqsgd.words.loading import load_text
from freqsgd.words.settings import TextSettings
from freqsgd.words.spec import TextOptions
from freqsgd.words.training import new_model, word_engine

RATES = "sgd=1,cfsgd=1,adam=0.025"  # the paper's


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="skipgram", choices=("skipgram", "cbow"))
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--max-norm", type=float, default=1.0, help="0: none")
    parser.add_argument("--lr", default=RATES)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    corpus = load_text(TextOptions(dataset="wikitext-2"))
    settings = TextSettings(
        model=options.model, loss="softmax", max_norm=options.max_norm or None
    )  # of 20 epochs
    print(f"{settings.model}, {len(corpus.words):,} words, max_norm {settings.max_norm}")
    for part in options.lr.split(","):
        name, _, lr = part.partition("=")
        rule = Rule(name, float(lr))
        model = new_model(len(corpus.words), settings)
        engine = word_engine(model, rule, settings, corpus.counts, options.threads)
        paragraphs = len(corpus.train)
        steps = -(-paragraphs // settings.batch_size)
        for epoch in range(options.epochs):
            order = np.random.Generator(np.random.PCG64([0, epoch])).permutation(paragraphs)
            lrs = np.full(steps, rule.lr * (1 - epoch / settings.epochs))
            start = time.perf_counter()
            found = np.concatenate(list(engine.train(corpus.train, order, lrs, epoch)))
            seconds = time.perf_counter() - start
            test = engine.evaluate(corpus.test)
            loss, samples = found.sum(0)
            by_centre = test.by_centre_frequency(corpus.counts)
            centre = "" if by_centre is None else f", as centres {by_centre['tail']:.4f}"
            print(
                f"  {name:15} lr {lr:5} epoch {epoch + 1}: {seconds:6.1f} s  train "
                f"{loss / samples:.4f}  test {test.mean:.4f}, rare words as predicted "
                f"{test.by_frequency(corpus.counts)['tail']:.4f}{centre}",
                flush=True,
            )
            claim = f"{settings.model}, {name}, epoch {epoch + 1}"
            figure(f"{claim}: seconds", seconds, "s")
            figure(f"{claim}: test loss", test.mean, "")


if __name__ == "__main__":
    main()
