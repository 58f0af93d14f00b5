"""How fast skip-gram with negative sampling trains, and what it has learned, against gensim.

    python -m benchmarks.word2vec [--dims 300,100] [--min-counts 50,5] [--rounds 3] [--model cbow]

One epoch of WikiText-2 with FREQSGD_DATA set, otherwise of generated text; window 4, 5 noise words.
Both read the same words (those left after min_count, in paragraphs of at most 256) and start from
the same vectors. gensim: sample=0, shrink_windows=False, its own rate 0.025. Ours: the default
rates of cfsgd and of sgd, which for skip-gram is gensim's. Contenders take turns; each has the best
of its rounds.

Speed is in words of the raw text per second. The held-out loss is that of the validation text, by
the same function for all. The ratio to the peak compares useful operations (products, and both
gradients, of every word with its window and its noise) with multiplications and additions that one
core makes when all its operands are in the nearest cache.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

import numba
import numpy as np
import torch
from gensim.models import Word2Vec

from benchmarks.figures import figure
from freqsgd.kernels.simd import add_outer, put, zeros
from freqsgd.kernels.words.job import COLUMNS, POOL_UNIT, ROWS
from freqsgd.nn.word2vec import CBOW, SkipGram, WordModel
from freqsgd.optimizers import Rule
from freqsgd.words.corpus import Corpus
from freqsgd.words.loading import load_text
from freqsgd.words.negative import BLOCK, NegativeEngine
from freqsgd.words.settings import TextSettings, with_default_lr
from freqsgd.words.spec import TextOptions

WINDOW, NEGATIVES = 4, 5

Contender = Callable[[], tuple[float, WordModel]]


def new_model(corpus: Corpus, kind: str, dim: int) -> WordModel:
    torch.manual_seed(0)
    return (SkipGram if kind == "skipgram" else CBOW)(len(corpus.words), dim, bias=False)


def ours(corpus: Corpus, kind: str, dim: int, rule: Rule, threads: int) -> Contender:
    settings = TextSettings(model=kind, dim=dim, window=WINDOW, negatives=NEGATIVES)
    rule = with_default_lr(rule, settings, corpus.counts)
    paragraphs = len(corpus.train)
    steps = -(-paragraphs // settings.batch_size)
    lrs = rule.lr * (1 - np.arange(steps) / steps)

    def run() -> tuple[float, WordModel]:
        model = new_model(corpus, kind, dim)
        engine = NegativeEngine(model, rule, settings, corpus.counts, threads)
        order = np.random.default_rng(0).permutation(paragraphs)
        start = time.perf_counter()
        for _ in engine.train(corpus.train, order, lrs, 0):
            pass
        return corpus.train.raw_words / (time.perf_counter() - start), model

    return run


def gensim(corpus: Corpus, kind: str, dim: int, workers: int) -> Contender:
    text = corpus.train
    words = np.array(corpus.words, object)[text.ids]
    sentences = [
        list(words[first:last])
        for first, last in zip(text.starts[:-1], text.starts[1:], strict=True)
    ]

    def run() -> tuple[float, WordModel]:
        model = new_model(corpus, kind, dim)
        peer = Word2Vec(
            vector_size=dim,
            window=WINDOW,
            min_count=1,
            sample=0,
            sg=int(kind == "skipgram"),
            negative=NEGATIVES,
            workers=workers,
            shrink_windows=False,
        )
        peer.build_vocab(sentences)
        rows = [peer.wv.key_to_index[word] for word in corpus.words]
        peer.wv.vectors[rows] = model.input.weight.detach().numpy()
        start = time.perf_counter()
        peer.train(sentences, total_examples=len(sentences), epochs=1)
        speed = corpus.train.raw_words / (time.perf_counter() - start)
        with torch.no_grad():
            model.input.weight.copy_(torch.from_numpy(peer.wv.vectors[rows]))
            model.output.weight.copy_(torch.from_numpy(peer.syn1neg[rows]))
        return speed, model

    return run


def held_out(corpus: Corpus, kind: str, model: WordModel) -> tuple[float, float]:
    """Loss of the validation text, and that of its rarest words as centres or as predicted."""
    settings = TextSettings(model=kind, dim=model.dim, window=WINDOW, negatives=NEGATIVES)
    losses = NegativeEngine(model, Rule("sgd"), settings, corpus.counts).evaluate(corpus.validation)
    by = losses.by_centre_frequency(corpus.counts) or losses.by_frequency(corpus.counts)
    return losses.mean, by["tail"]


def peak_flops() -> float:
    """Operations per second of one core on tiles whose operands are in the nearest cache."""

    @numba.njit
    def run(address, numbers, times):
        tile = zeros(ROWS, COLUMNS)
        for _ in range(times):
            tile = add_outer(tile, address, numbers, 4)
        put(tile, address, COLUMNS * 32)

    memory = np.zeros(1024, np.float32)
    address, times = memory.ctypes.data, 20_000_000
    run(address, address + 2048, 1)
    best = np.inf
    for _ in range(5):
        start = time.perf_counter()
        run(address, address + 2048, times)
        best = min(best, time.perf_counter() - start)
    return 2 * 8 * ROWS * COLUMNS * times / best


def flops_per_word(kind: str, dim: int) -> float:
    """Useful operations per word that is left: a product of vectors and two gradients of each."""
    if kind == "skipgram":
        products = 2 * WINDOW + POOL_UNIT * (BLOCK + 2 * WINDOW) / BLOCK
        return 3 * 2 * dim * products
    return 3 * 2 * dim * (1 + POOL_UNIT) + 2 * 2 * WINDOW * dim


def report(corpus: Corpus, kind: str, dim: int, min_count: int, rounds: int, peak: float) -> None:
    print(
        f"\n{corpus.name}, {kind}, d={dim}, min_count {min_count}: {len(corpus.words):,} words, "
        f"{len(corpus.train.ids):,} of {corpus.train.raw_words:,} left",
        flush=True,
    )
    contenders: dict[str, Contender] = {}
    for threads in (1, 2):
        on = f"{threads} thread{'s' * (threads > 1)}"
        contenders[f"gensim, {threads} workers"] = gensim(corpus, kind, dim, threads)
        contenders[f"cfsgd, {on}"] = ours(corpus, kind, dim, Rule("cfsgd"), threads)
        contenders[f"sgd, {on}"] = ours(corpus, kind, dim, Rule("sgd"), threads)
    speeds, models = dict.fromkeys(contenders, 0.0), {}
    for _ in range(rounds):
        for name, run in contenders.items():
            speed, models[name] = run()
            speeds[name] = max(speeds[name], speed)
    for name, speed in speeds.items():
        threads = name.split()[1]
        peer = next(value for key, value in speeds.items() if key.startswith(f"gensim, {threads}"))
        loss, tail = held_out(corpus, kind, models[name])
        left = len(corpus.train.ids) / corpus.train.raw_words
        share = speed * left * flops_per_word(kind, dim) / (peak * int(threads))
        of_peak = "" if name.startswith("gensim") else f"  {share:4.0%} of the peak"
        setting, who = f"{kind}, d={dim}, min_count {min_count}", name.split(",")[0]
        if who != "gensim":
            figure(f"{setting}: words/s of {name} / gensim's", speed / peer)
        if threads == "1":
            figure(f"{setting}: held-out loss of {who}", loss, "")
            figure(f"{setting}: held-out loss of {who}, rare words", tail, "")
        print(f"  {speed / 1e6:.3f} million words/s{of_peak}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dims", default="300,100")
    parser.add_argument("--min-counts", default="50,5")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model", default="skipgram", choices=("skipgram", "cbow"))
    options = parser.parse_args()
    torch.set_num_threads(2)
    peak = peak_flops()
    print(f"peak of one core: {peak / 1e9:.0f} GFLOP/s")
    dataset = "wikitext-2" if os.environ.get("FREQSGD_DATA") else "zipf-text"
    for min_count in map(int, options.min_counts.split(",")):
        corpus = load_text(TextOptions(dataset=dataset, min_count=min_count))
        for dim in map(int, options.dims.split(",")):
            report(corpus, options.model, dim, min_count, options.rounds, peak)


if __name__ == "__main__":
    main()
