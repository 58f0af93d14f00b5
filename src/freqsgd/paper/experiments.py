"""The paper's figures and tables: what is run for each, and what is asked of it.

A run is a command of freqsgd. Where the data of the paper are not at hand a stand-in is generated,
and said to be one. Claims are the paper's, in our words.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from freqsgd.paper import rules
from freqsgd.paper.rules import ADAPTIVE, Rule
from freqsgd.recommender.settings import preset

__all__ = ["FIGURES", "RUNS", "Figure", "Run", "Way"]


@dataclass(frozen=True)
class Way:
    """A way to do a run: a command of freqsgd, without its ``--out``."""

    command: str
    usual: float  # seconds that it takes on two cores, from which the time left is estimated
    budget: float  # the most seconds that it may take
    smaller: str = ""  # in what it is less than the paper's


@dataclass(frozen=True)
class Run:
    """Something that is measured."""

    title: str
    quick: Way
    full: Way
    data: str | None = None  # the dataset it needs; None: everything is generated
    stand_in: Way | None = None  # where that dataset is not there


@dataclass(frozen=True)
class Figure:
    """A figure or table of the paper."""

    name: str
    number: str
    title: str
    brief: str  # the claim, in a table's cell
    claim: str
    rules: tuple[tuple[str, Rule], ...]  # each with the name of the run it is held against
    private: str = ""  # why the paper's own data are never at hand
    rates: dict[str, dict[str, float]] = field(default_factory=dict)  # by model, optimizer
    also: tuple[str, ...] = ()  # other names, which figures may share

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs that it needs, in the order in which they are shown."""
        return tuple(dict.fromkeys(run for run, _ in self.rules))


HOUR = 3600.0
FIVE = "--optimizers sgd,fasgd,cfsgd,adagrad,adam --diagnose"
MOVIES_FM = f"compare --dataset movielens-1m {FIVE}"
SYNTHETIC = f"compare --dataset synthetic {FIVE} --patience 2"
CRITEO_FM = "compare --dataset criteo --dim 16"
MOVIES_TUNED = "tune --dataset movielens-1m --patience 2"
CRITEO_TUNED = "tune --dataset criteo --dim 16 --patience 2"
CBOW, SKIPGRAM = (f"words compare --model {name} --loss softmax" for name in ("cbow", "skipgram"))
TEXT = "--dataset zipf-text --dim 32 --epochs 2"
NARROW = "dimension 16 instead of 64"
SHORT = "dimension 32 instead of 300, {} epochs instead of 20"
SEARCH = "6 trials for each optimizer, of at most 8 epochs"
CLICKS = "16 features and 2 million generated examples instead of 800 and 25 billion"

RUNS = {
    "ml-tokens": Run(
        "tokens of MovieLens-1M",
        quick=Way("inspect --dataset movielens-1m", 6, 60),
        full=Way("inspect --dataset movielens-1m", 8, 60),
        data="movielens-1m",
        stand_in=Way("inspect --dataset synthetic", 6, 60),
    ),
    "ml-fm": Run(
        "FM on MovieLens-1M",
        quick=Way(f"{MOVIES_FM} --epochs 27", 40, 150, "at most 27 epochs"),
        full=Way(MOVIES_FM, 90, HOUR),
        data="movielens-1m",
        stand_in=Way(f"{SYNTHETIC} --epochs 20", 23, 90, "generated clicks, at most 20 epochs"),
    ),
    "ml-deepfm": Run(
        "DeepFM on MovieLens-1M",
        quick=Way(f"{MOVIES_FM} --model deepfm --epochs 6", 60, 180, "at most 6 epochs"),
        full=Way(f"{MOVIES_FM} --model deepfm", 600, HOUR),
        data="movielens-1m",
        stand_in=Way(
            f"{SYNTHETIC} --model deepfm --epochs 3", 20, 90, "generated clicks, at most 3 epochs"
        ),
    ),
    "criteo-fm": Run(
        "FM on Criteo",
        quick=Way(f"{CRITEO_FM} --epochs 12", 5, 60, f"{NARROW}, at most 12 epochs"),
        full=Way(CRITEO_FM, HOUR, 2 * HOUR, NARROW),
        data="criteo",
    ),
    "criteo-deepfm": Run(
        "DeepFM on Criteo",
        quick=Way("compare --dataset criteo --model deepfm --epochs 8", 13, 90, "at most 8 epochs"),
        full=Way("compare --dataset criteo --model deepfm", HOUR, 2 * HOUR),
        data="criteo",
    ),
    "clicks": Run(
        "one pass over ten generated days of clicks",
        quick=Way("stream compare --dataset clicks-small", 40, 120, CLICKS),
        full=Way("stream compare --dataset clicks-small", 60, HOUR, CLICKS),
    ),
    "ml-tuned": Run(
        "tuned FM on MovieLens-1M",
        quick=Way(f"{MOVIES_TUNED} --trials 6 --epochs 8", 70, 150, SEARCH),
        full=Way(f"{MOVIES_TUNED} --trials 40", HOUR, 3 * HOUR),
        data="movielens-1m",
    ),
    "criteo-tuned": Run(
        "tuned FM on Criteo",
        quick=Way(f"{CRITEO_TUNED} --trials 6 --epochs 8", 15, 60, f"{NARROW}, {SEARCH}"),
        full=Way(f"{CRITEO_TUNED} --trials 40", 2 * HOUR, 3 * HOUR, NARROW),
        data="criteo",
    ),
    "cbow": Run(
        "CBOW on WikiText-2",
        quick=Way(f"{CBOW} --dataset wikitext-2 --dim 32 --epochs 2", 110, 170, SHORT.format(2)),
        full=Way(f"{CBOW} --dataset wikitext-2 --dim 300 --epochs 20", 2 * HOUR, 4 * HOUR),
        data="wikitext-2",
        stand_in=Way(f"{CBOW} {TEXT}", 23, 90, f"generated text, {SHORT.format(2)}"),
    ),
    "skipgram": Run(
        "Skip-Gram on WikiText-2",
        quick=Way(f"{SKIPGRAM} --dataset wikitext-2 --dim 32 --epochs 3", 50, 90, SHORT.format(3)),
        full=Way(f"{SKIPGRAM} --dataset wikitext-2 --dim 300 --epochs 20", HOUR, 2 * HOUR),
        data="wikitext-2",
        stand_in=Way(f"{SKIPGRAM} {TEXT}", 15, 60, f"generated text, {SHORT.format(2)}"),
    ),
    "criteo-tokens": Run(
        "tokens of Criteo",
        quick=Way("inspect --dataset criteo", 8, 60),
        full=Way("inspect --dataset criteo", 100, 600),
        data="criteo",
    ),
    "theory-exponential": Run(
        "theorems, exponential tail",
        quick=Way("theory --tail exponential", 17, 90),
        full=Way("theory --tail exponential --iterations 4000000", 400, HOUR),
    ),
    "theory-polynomial": Run(
        "theorems, polynomial tail",
        quick=Way("theory --tail polynomial", 12, 90),
        full=Way("theory --tail polynomial --iterations 4000000", 400, HOUR),
    ),
    "theory-uniform": Run(
        "theorems, uniform tokens",
        quick=Way("theory --tail uniform --repetitions 40", 8, 60),
        full=Way("theory --tail uniform", 60, HOUR),
    ),
}


FOUR = ("sgd", "cfsgd", "adagrad", "adam")


def _learning(run: str) -> tuple[tuple[str, Rule], ...]:
    """Return what the paper sees in every comparison of training loss and validation AUC."""
    return (
        (run, rules.slowest("sgd")),
        (run, rules.leads_training("cfsgd", ["sgd"], epochs=5)),
        (run, rules.leads_training("cfsgd", ADAPTIVE, epochs=2)),
        (run, rules.peaks_first("cfsgd", ("sgd", *ADAPTIVE), behind=0.005)),
    )


def _rates(dataset: str) -> dict[str, dict[str, float]]:
    """Return the rates of the paper's tables, with which its other figures are measured too."""
    rates: dict[str, dict[str, float]] = {"fm": {}, "deepfm": {}}
    for model, of_model in rates.items():
        for name in FOUR:
            if known := preset("paper", dataset, model, name):
                of_model[name] = known["lr"]
    return rates


def _searched(dataset: str, run: str) -> tuple[tuple[str, Rule], ...]:
    """Return rules that hold the paper's rates of FM against those of a search."""
    rates = _rates(dataset)["fm"]
    return tuple((run, rules.near_tuned(name, lr, factor=10)) for name, lr in rates.items())


FIGURES = (
    Figure(
        "fig1",
        "Figure 1",
        "How often users and movies occur",
        "few tokens hold most ratings",
        "Users and movies of MovieLens-1M are highly imbalanced: a small part of them takes the "
        "majority of the ratings, and counts fall with an exponential or polynomial tail.",
        (
            ("ml-tokens", rules.few_hold_most(0.2, 0.5, of_fields=1)),
            ("ml-tokens", rules.tail_is_found(of_fields=1)),
        ),
    ),
    Figure(
        "fig2",
        "Figure 2",
        "MovieLens-1M, FM and DeepFM",
        "SGD slowest, CF-SGD first to peak, near 0.81",
        "SGD is slowest. CF-SGD converges much faster than SGD, and early on faster than Adagrad "
        "and Adam. All reach a peak AUC near 0.81, CF-SGD first.",
        tuple(
            asked
            for run in ("ml-fm", "ml-deepfm")
            for asked in (*_learning(run), (run, rules.peaks_near(0.81, 0.01, FOUR)))
        ),
    ),
    Figure(
        "fig3ab",
        "Figure 3a-b",
        "Second moments against counts",
        "second moments follow counts",
        "The second moments of Adagrad and Adam quickly become almost linear in the frequencies "
        "that CF-SGD counts: adaptive methods use frequency implicitly.",
        tuple(
            (run, rules.follows_counts(name, pearson=0.9, slope=(0.8, 1.25), epoch=5))
            for run in ("ml-fm", "ml-deepfm")
            for name in ADAPTIVE
        ),
        also=("fig3",),
    ),
    Figure(
        "fig3cd",
        "Figure 3c-d",
        "Criteo, FM",
        "SGD slowest, CF-SGD as fast as Adam",
        "As on MovieLens-1M: SGD is slowest, CF-SGD much faster and as fast as Adagrad and Adam.",
        _learning("criteo-fm"),
        also=("fig3",),
    ),
    Figure(
        "fig4ab",
        "Figure 4a-b",
        "Criteo, DeepFM",
        "SGD slowest, CF-SGD as fast as Adam",
        "As on MovieLens-1M: SGD is slowest, CF-SGD much faster and as fast as Adagrad and Adam.",
        _learning("criteo-deepfm"),
        also=("fig4",),
    ),
    Figure(
        "table1",
        "Figure 4c-d, Table 1",
        "One pass over ten days of clicks",
        "CF-SGD's NE 0.02% below Adagrad's",
        "Trained in one pass, CF-SGD's NE falls faster than that of a tuned Adagrad, and on "
        "evaluation data it is 0.02% below, which is considered significant.",
        (
            ("clicks", rules.leads_progressively("cfsgd", "adagrad")),
            ("clicks", rules.lower_evaluation_ne("cfsgd", "adagrad", percent=0.02)),
        ),
        also=("fig4", "fig4cd"),
        private="The paper's 25 billion examples of an industrial recommender are not public",
    ),
    Figure(
        "table2",
        "Table 2",
        "Learning rates for MovieLens-1M",
        "SGD 10, CF-SGD 1, Adagrad 0.02, Adam 0.001",
        "Learning rates tuned for each optimizer, FM: SGD 10, CF-SGD 1, Adagrad 0.02, Adam 0.001.",
        _searched("movielens-1m", "ml-tuned"),
        rates=_rates("movielens-1m"),
    ),
    Figure(
        "table3",
        "Table 3",
        "Learning rates for Criteo",
        "SGD 0.01, CF-SGD 0.1, Adagrad 0.01, Adam 0.001",
        "Learning rates tuned for each optimizer, FM: SGD 0.01, CF-SGD 0.1, Adagrad 0.01, "
        "Adam 0.001.",
        _searched("criteo", "criteo-tuned"),
        rates=_rates("criteo"),
    ),
    Figure(
        "memory",
        "Section 4, memory",
        "What optimizers keep beside the weights",
        "Adam 2Nd, Adagrad Nd, CF-SGD N",
        "Of a table of N rows and d columns Adam keeps 2Nd numbers more, Adagrad Nd, CF-SGD N.",
        (
            ("ml-fm", rules.keeps("adam", lambda dim: 2.0, "two numbers per weight")),
            ("ml-fm", rules.keeps("adagrad", lambda dim: 1.0, "one number per weight")),
            ("ml-fm", rules.keeps("cfsgd", lambda dim: 1 / (dim + 1), "one number per row")),
        ),
    ),
    Figure(
        "fig5",
        "Figure 5",
        "Word2Vec on WikiText-2",
        "CF-SGD far below SGD, close to Adam",
        "CF-SGD improves much over SGD for CBOW and Skip-Gram, and ends with a test loss close to "
        "Adam's.",
        tuple(
            (run, rules.closes_gap("cfsgd", below="sgd", near="adam", percent=1, within=2))
            for run in ("cbow", "skipgram")
        ),
    ),
    Figure(
        "appendix-c",
        "Appendix C",
        "How often the tokens of 28 Criteo features occur",
        "most features are imbalanced",
        "Most features of Criteo are highly imbalanced, with a clear exponential or polynomial "
        "tail.",
        (
            ("criteo-tokens", rules.few_hold_most(0.2, 0.5, of_fields=0.5, first=28)),
            ("criteo-tokens", rules.tail_is_found(of_fields=0.5, first=28)),
        ),
    ),
    Figure(
        "theory",
        "Theorems 1-3, corollaries",
        "Bounds against a simulation",
        "bounds hold; rare tokens gain most",
        "The bounds hold for every token; with an exponential or polynomial tail FA-SGD and CF-SGD "
        "gain on SGD the more the rarer a token is; with equal frequencies FA-SGD is SGD.",
        (
            *(
                (f"theory-{tail}", rule)
                for tail in ("exponential", "polynomial")
                for rule in (
                    rules.bounds_hold(),
                    rules.conditions_are_met(),
                    rules.counts_follow_bounds("fasgd"),
                    rules.counts_follow_bounds("cfsgd"),
                )
            ),
            ("theory-uniform", rules.uniform_is_sgd(within=0.1)),
        ),
    ),
)
