"""The paper's figures and tables: what is run for each, and what is asked of it.

A run is a command of freqsgd. Where the data of the paper are not at hand a stand-in is generated,
and said to be one. Claims are the paper's, in our words.
"""

from __future__ import annotations

from dataclasses import dataclass

from freqsgd.paper.rules import (
    ADAPTIVE,
    Rule,
    bounds_hold,
    closes_gap,
    counts_follow_bounds,
    few_hold_most,
    follows_counts,
    keeps,
    leads_progressively,
    leads_training,
    lower_evaluation_ne,
    near_tuned,
    peaks_first,
    peaks_near,
    slowest,
    tail_is_found,
    uniform_is_sgd,
)
from freqsgd.training.presets import preset

__all__ = ["FIGURES", "RUNS", "Figure", "Run"]


@dataclass(frozen=True)
class Run:
    """A command of freqsgd that measures something, without its ``--out``."""

    title: str
    quick: str
    full: str
    seconds: tuple[float, float]  # the most that it may take: quick, full
    data: str | None = None  # the dataset it needs; None: everything is generated
    stand_in: str | None = None  # the command where that dataset is not there


@dataclass(frozen=True)
class Figure:
    """A figure or table of the paper."""

    name: str
    number: str
    title: str
    claim: str
    rules: tuple[tuple[str, Rule], ...]  # each with the name of the run it is held against
    private: str = ""  # why the paper's own data are never at hand

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs that it needs, in the order in which they are shown."""
        return tuple(dict.fromkeys(run for run, _ in self.rules))


FOUR = ("sgd", "cfsgd", "adagrad", "adam")
BESIDE = "--optimizers sgd,fasgd,cfsgd,adagrad,adam"
HOUR = 3600.0

RUNS = {
    "ml-tokens": Run(
        "tokens of MovieLens-1M",
        quick="inspect --dataset movielens-1m",
        full="inspect --dataset movielens-1m",
        seconds=(30, 60),
        data="movielens-1m",
        stand_in="inspect --dataset synthetic",
    ),
    "ml-fm": Run(
        "FM on MovieLens-1M",
        quick=f"compare --dataset movielens-1m {BESIDE} --epochs 27 --diagnose",
        full=f"compare --dataset movielens-1m {BESIDE} --diagnose",
        seconds=(150, HOUR),
        data="movielens-1m",
        stand_in=f"compare --dataset synthetic {BESIDE} --epochs 20 --diagnose",
    ),
    "ml-deepfm": Run(
        "DeepFM on MovieLens-1M",
        quick=f"compare --dataset movielens-1m --model deepfm {BESIDE} --epochs 6 --diagnose",
        full=f"compare --dataset movielens-1m --model deepfm {BESIDE} --diagnose",
        seconds=(180, HOUR),
        data="movielens-1m",
        stand_in=f"compare --dataset synthetic --model deepfm {BESIDE} --epochs 4 --diagnose",
    ),
    "criteo-fm": Run(
        "FM on Criteo",
        quick="compare --dataset criteo --dim 16 --epochs 12",
        full="compare --dataset criteo --dim 16",
        seconds=(60, 2 * HOUR),
        data="criteo",
    ),
    "criteo-deepfm": Run(
        "DeepFM on Criteo",
        quick="compare --dataset criteo --model deepfm --epochs 8",
        full="compare --dataset criteo --model deepfm",
        seconds=(90, 2 * HOUR),
        data="criteo",
    ),
    "clicks": Run(
        "one pass over ten generated days of clicks",
        quick="compare --one-pass --dataset clicks-small",
        full="compare --one-pass --dataset clicks-small",
        seconds=(120, HOUR),
    ),
    "ml-tuned": Run(
        "tuned FM on MovieLens-1M",
        quick="tune --dataset movielens-1m --trials 6 --epochs 8",
        full="tune --dataset movielens-1m --trials 40",
        seconds=(90, 3 * HOUR),
        data="movielens-1m",
    ),
    "criteo-tuned": Run(
        "tuned FM on Criteo",
        quick="tune --dataset criteo --dim 16 --trials 6 --epochs 8",
        full="tune --dataset criteo --dim 16 --trials 40",
        seconds=(60, 3 * HOUR),
        data="criteo",
    ),
    "cbow": Run(
        "CBOW on WikiText-2",
        quick="compare --model cbow --loss softmax --dataset wikitext-2 --dim 32 --epochs 2",
        full="compare --model cbow --loss softmax --dataset wikitext-2 --dim 300 --epochs 20",
        seconds=(150, 4 * HOUR),
        data="wikitext-2",
        stand_in="compare --model cbow --loss softmax --dataset zipf-text --dim 32 --epochs 3",
    ),
    "skipgram": Run(
        "Skip-Gram on WikiText-2",
        quick="compare --model skipgram --loss softmax --dataset wikitext-2 --dim 32 --epochs 3",
        full="compare --model skipgram --loss softmax --dataset wikitext-2 --dim 300 --epochs 20",
        seconds=(90, 2 * HOUR),
        data="wikitext-2",
        stand_in="compare --model skipgram --loss softmax --dataset zipf-text --dim 32 --epochs 3",
    ),
    "criteo-tokens": Run(
        "tokens of Criteo",
        quick="inspect --dataset criteo",
        full="inspect --dataset criteo",
        seconds=(30, 600),
        data="criteo",
    ),
    "theory-exponential": Run(
        "theorems, exponential tail",
        quick="theory --tail exponential",
        full="theory --tail exponential --iterations 4000000",
        seconds=(45, HOUR),
    ),
    "theory-polynomial": Run(
        "theorems, polynomial tail",
        quick="theory --tail polynomial",
        full="theory --tail polynomial --iterations 4000000",
        seconds=(45, HOUR),
    ),
    "theory-uniform": Run(
        "theorems, uniform tokens",
        quick="theory --tail uniform --repetitions 40",
        full="theory --tail uniform",
        seconds=(30, HOUR),
    ),
}


def _learning(run: str) -> tuple[tuple[str, Rule], ...]:
    """What the paper sees in every comparison of training loss and validation AUC."""
    return (
        (run, slowest("sgd")),
        (run, leads_training("cfsgd", ["sgd"], epochs=5)),
        (run, leads_training("cfsgd", ADAPTIVE, epochs=2)),
        (run, peaks_first("cfsgd", ("sgd", *ADAPTIVE), behind=0.005)),
    )


def _rates(dataset: str, run: str) -> tuple[tuple[str, Rule], ...]:
    """The paper's learning rates of FM against those of a search."""
    rates = {name: preset("paper", dataset, "fm", name) for name in FOUR}
    return tuple(
        (run, near_tuned(name, rate["lr"], factor=10)) for name, rate in rates.items() if rate
    )


FIGURES = (
    Figure(
        "fig1",
        "Figure 1",
        "How often users and movies occur",
        "Users and movies of MovieLens-1M are highly imbalanced: a small part of them takes the "
        "majority of the ratings, and counts fall with an exponential or polynomial tail.",
        (
            ("ml-tokens", few_hold_most(0.2, 0.5, of_fields=1)),
            ("ml-tokens", tail_is_found(of_fields=1)),
        ),
    ),
    Figure(
        "fig2",
        "Figure 2",
        "MovieLens-1M, FM and DeepFM",
        "SGD is slowest. CF-SGD converges much faster than SGD, and early on faster than Adagrad "
        "and Adam. All reach a peak AUC near 0.81, CF-SGD first.",
        tuple(
            asked
            for run in ("ml-fm", "ml-deepfm")
            for asked in (*_learning(run), (run, peaks_near(0.81, 0.01, FOUR)))
        ),
    ),
    Figure(
        "fig3ab",
        "Figure 3a-b",
        "Second moments against counts",
        "The second moments of Adagrad and Adam quickly become almost linear in the frequencies "
        "that CF-SGD counts: adaptive methods use frequency implicitly.",
        tuple(
            (run, follows_counts(name, pearson=0.9, slope=(0.8, 1.25), epoch=5))
            for run in ("ml-fm", "ml-deepfm")
            for name in ADAPTIVE
        ),
    ),
    Figure(
        "fig3cd",
        "Figure 3c-d",
        "Criteo, FM",
        "As on MovieLens-1M: SGD is slowest, CF-SGD much faster and as fast as Adagrad and Adam.",
        _learning("criteo-fm"),
    ),
    Figure(
        "fig4ab",
        "Figure 4a-b",
        "Criteo, DeepFM",
        "As on MovieLens-1M: SGD is slowest, CF-SGD much faster and as fast as Adagrad and Adam.",
        _learning("criteo-deepfm"),
    ),
    Figure(
        "table1",
        "Figure 4c-d, Table 1",
        "One pass over ten days of clicks",
        "Trained in one pass, CF-SGD's NE falls faster than that of a tuned Adagrad, and on "
        "evaluation data it is 0.02% below, which is considered significant.",
        (
            ("clicks", leads_progressively("cfsgd", "adagrad")),
            ("clicks", lower_evaluation_ne("cfsgd", "adagrad", percent=0.02)),
        ),
        private="The paper's 25 billion examples of an industrial recommender are not public",
    ),
    Figure(
        "table2",
        "Table 2",
        "Learning rates for MovieLens-1M",
        "Learning rates tuned for each optimizer, FM: SGD 10, CF-SGD 1, Adagrad 0.02, Adam 0.001.",
        _rates("movielens-1m", "ml-tuned"),
    ),
    Figure(
        "table3",
        "Table 3",
        "Learning rates for Criteo",
        "Learning rates tuned for each optimizer, FM: SGD 0.01, CF-SGD 0.1, Adagrad 0.01, "
        "Adam 0.001.",
        _rates("criteo", "criteo-tuned"),
    ),
    Figure(
        "memory",
        "Section 4, memory",
        "What optimizers keep beside the weights",
        "Of a table of N rows and d columns Adam keeps 2Nd numbers more, Adagrad Nd, CF-SGD N.",
        (
            ("ml-fm", keeps("adam", lambda dim: 2.0, "two numbers per weight")),
            ("ml-fm", keeps("adagrad", lambda dim: 1.0, "one number per weight")),
            ("ml-fm", keeps("cfsgd", lambda dim: 1 / (dim + 1), "one number per row")),
        ),
    ),
    Figure(
        "fig5",
        "Figure 5",
        "Word2Vec on WikiText-2",
        "CF-SGD improves much over SGD for CBOW and Skip-Gram, and ends with a test loss close to "
        "Adam's.",
        tuple(
            (run, closes_gap("cfsgd", below="sgd", near="adam", percent=1, within=2))
            for run in ("cbow", "skipgram")
        ),
    ),
    Figure(
        "appendix-c",
        "Appendix C",
        "How often the tokens of 28 Criteo features occur",
        "Most features of Criteo are highly imbalanced, with a clear exponential or polynomial "
        "tail.",
        (
            ("criteo-tokens", few_hold_most(0.2, 0.5, of_fields=0.5, first=28)),
            ("criteo-tokens", tail_is_found(of_fields=0.5, first=28)),
        ),
    ),
    Figure(
        "theory",
        "Theorems 1-3, corollaries",
        "Bounds against a simulation",
        "The bounds hold for every token; with an exponential or polynomial tail FA-SGD and CF-SGD "
        "gain on SGD the more the rarer a token is; with equal frequencies FA-SGD is SGD.",
        (
            *(
                (f"theory-{tail}", rule)
                for tail in ("exponential", "polynomial")
                for rule in (
                    bounds_hold(),
                    counts_follow_bounds("fasgd"),
                    counts_follow_bounds("cfsgd"),
                )
            ),
            ("theory-uniform", uniform_is_sgd(within=0.1)),
        ),
    ),
)
