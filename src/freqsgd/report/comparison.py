"""The page of runs over the same samples or text, epoch by epoch: ``compare``, ``train``, ``tune``.

:func:`kind_of` says what is compared: scores of samples, or losses of text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from freqsgd.report.charts import (
    Chart,
    Series,
    Spec,
    axis,
    chart,
    labels,
    level,
    names_axis,
    points,
    series_of,
)
from freqsgd.report.diagnosis import diagnosis_sections
from freqsgd.report.page import SENTENCES, Page, Section, Tile
from freqsgd.report.parts import (
    CUT_SHORT,
    Point,
    course_charts,
    cut_short,
    made_with,
    runs_table,
    settings_section,
    state_charts,
    state_tile,
    title_of,
)
from freqsgd.report.results import (
    CLASSES,
    Breakdown,
    Epoch,
    Measure,
    Metric,
    Results,
    Run,
    alike,
    best,
    best_standing,
    first_reaching,
    kept,
    leaders,
    optimum,
    representative,
    standings,
)
from freqsgd.report.tables import Column, Table, table
from freqsgd.report.tuning import tuning_sections
from freqsgd.report.wording import (
    capitalized,
    count_of,
    difference,
    duration,
    enumerate_words,
    megabytes,
    score,
    spread,
    thousands,
    times,
)

UNEVEN = 2  # epochs of one run do the same work: a larger spread of speeds is not the optimizer's

TRAINING_LOSS = Metric("training loss", higher_is_better=False, key="train_loss")
VALIDATION_LOSS = Metric("validation loss", higher_is_better=False, key="val_loss")
VALIDATION_AUC = Metric("validation AUC", higher_is_better=True, key="val_auc")
TEST_LOSS = Measure("test loss", higher_is_better=False, of=lambda run: run.test_loss)
TEST_AUC = Measure("test AUC", higher_is_better=True, of=lambda run: run.test_auc)

WORD_CLASSES = (
    "Head words, the most frequent, make up the first 80% of the training text, "
    "torso words the next 15%, tail words the last 5%."
)
BY_TOKEN = Breakdown(
    "test_auc_by_frequency",
    "frequency",
    title="Test AUC by token frequency",
    score="AUC",
    note="A sample belongs to the class of its rarest token. Head tokens make up the first 80% of "
    "a field's training occurrences, torso tokens the next 15%, tail tokens the last 5%.",
)
BY_PREDICTED_WORD = Breakdown(
    "test_loss_by_frequency",
    "frequency",
    title="Test loss by predicted word",
    score="loss",
    note=WORD_CLASSES,
)
BY_CENTRE_WORD = Breakdown(
    "test_loss_by_centre_frequency",
    "centre-frequency",
    title="Test loss by centre word",
    score="loss",
    note=f"The centre word predicts the words around it. {WORD_CLASSES}",
)
LISTS = {  # of pairs of words, with hyphens at which no line is broken
    "wordsim353": "WordSim\N{NON-BREAKING HYPHEN}353",
    "simlex999": "SimLex\N{NON-BREAKING HYPHEN}999",
}


@dataclass(frozen=True)
class Kind:
    """How runs are compared, and in which words."""

    by: Metric  # epochs are compared by it
    kept: Measure  # its value in the epoch whose weights were kept
    outcome: Measure  # whole runs are compared by it
    scores: Sequence[Measure]
    breakdowns: Sequence[Breakdown]
    tokens: str
    speed: str


def kind_of(results: Results) -> Kind:
    """Return how these results are compared."""
    return _of_text(results) if results.dataset.kind == "text" else _of_samples(results)


def _of_samples(results: Results) -> Kind:
    """Recommenders: AUC counts; the loss where there is none, as with labels of one kind."""
    by = _first_measured(results, VALIDATION_AUC, VALIDATION_LOSS)
    best_of = kept(by, f"best {by.name}")
    return Kind(
        by,
        best_of,
        outcome=best_of,
        scores=(best_of, TEST_AUC, TEST_LOSS, BY_TOKEN.measure("tail")),
        breakdowns=(BY_TOKEN,),
        tokens="tokens",
        speed="Samples/s",
    )


def _of_text(results: Results) -> Kind:
    """Models of text: the loss counts, that of the test text above all."""
    by = _first_measured(results, VALIDATION_LOSS, TRAINING_LOSS)
    held_out = kept(by, by.name)
    losses = [kept(metric, metric.name) for metric in (TRAINING_LOSS, VALIDATION_LOSS)]
    tail = BY_PREDICTED_WORD.measure("tail")
    return Kind(
        by,
        held_out,
        outcome=TEST_LOSS if _is_known(results, TEST_LOSS) else held_out,
        scores=(*losses, TEST_LOSS, tail, *similarity_measures(results)),
        breakdowns=(BY_PREDICTED_WORD, BY_CENTRE_WORD),
        tokens="words",
        speed="Words/s",
    )


def _first_measured(results: Results, *metrics: Metric) -> Metric:
    """The first that an epoch has a value of; the first of all if none has."""
    epochs = [epoch for run in results.runs for epoch in run.epochs]
    measured = (
        metric for metric in metrics if any(metric.of(epoch) is not None for epoch in epochs)
    )
    return next(measured, metrics[0])


def _is_known(results: Results, measure: Measure) -> bool:
    return any(measure.of(run) is not None for run in results.runs)


# ---- the page ------------------------------------------------------------------------------------


def comparison_page(results: Results) -> Page:
    """Return the page of runs over the same data, with their search and diagnosis."""
    kind = kind_of(results)
    series = series_of({run.label: run.optimizer for run in results.runs})
    said = [*_caveats(results, kind), *_chance_words(results)]
    return Page(
        title_of(results),
        _tiles(results, kind),
        said[:SENTENCES],
        [
            *tuning_sections(results, series),
            Section("Learning curves", curve_charts(results, kind, series)),
            Section("All runs", tables=[_runs_table(results, kind)]),
            Section("Read with care", remarks=said[SENTENCES:]),
            Section("Mean and spread over seeds", tables=_seeds_tables(results, kind)),
            Section(
                f"Optimizer state and rare {kind.tokens}",
                [
                    *state_charts(results, series),
                    *(
                        chart
                        for breakdown in kind.breakdowns
                        for chart in class_charts(results, kind, breakdown, series)
                    ),
                ],
            ),
            *diagnosis_sections(results, series),
            settings_section(results),
        ],
        legend=series,
        made=made_with(results),
        created=results.created,
    )


# ---- tiles ---------------------------------------------------------------------------------------


def _tiles(results: Results, kind: Kind) -> list[Tile]:
    """Tiles for what these results hold, in order of importance."""
    by_epoch = kind.outcome is kind.kept
    tiles = (
        _best_tile(results, kind.outcome),
        _reach_tile(results, kind) if by_epoch else _distance_tile(results, kind.outcome, "sgd"),
        _distance_tile(results, kind.outcome, "adam"),
        state_tile(
            *(representative(results, name, kind.outcome) for name in ("cfsgd", "adam", "cfadam"))
        ),
    )
    return [tile for tile in tiles if tile is not None]


def _place(epoch: Epoch) -> str:
    """The epoch and second of an event."""
    words = f"epoch {epoch.epoch}"
    return words if epoch.seconds is None else f"{words}, {duration(epoch.seconds)}"


def _best_tile(results: Results, by: Measure) -> Tile | None:
    """The best value that an optimizer reached."""
    found = standings(results, by)
    first = leaders(found, by)
    if not first:
        return None
    title = f"{'Highest' if by.higher_is_better else 'Lowest'} {(by.metric or by).name}"
    note = enumerate_words(one.label for one in first)
    top = first[0]
    reached = best(top.middle, by.metric) if by.metric else None
    if len(first) == 1 and top.seeds > 1:
        note += f": mean of {top.seeds} seeds"
    elif len(first) == 1 and reached:
        note += f": {_place(reached.epoch)}"
    elif second := leaders([one for one in found if one not in first], by):
        note += f"; then {second[0].label} with {score(second[0].value)}"
    return Tile(title, score(top.value), note)


def _reach_tile(results: Results, kind: Kind) -> Tile | None:
    """When CF-SGD got as far as SGD ever did."""
    runs = [representative(results, name, kind.kept) for name in ("cfsgd", "sgd")]
    mine, theirs = (best(run, kind.by) if run else None for run in runs)
    if mine is None or theirs is None:
        return None
    reached = first_reaching(mine.run, kind.by, theirs.value)
    title = f"{mine.run.label} as good as {theirs.run.label}'s best"
    if reached is None:
        short = f"{difference(mine.value, theirs.value)} short of {score(theirs.value)}"
        return Tile(title, "never", short)
    if theirs.run.still_learning:
        return None  # it might have become better: its epochs cannot be counted
    costs = [
        times(reached.epoch, theirs.epoch.epoch, "fewer epochs", "more epochs", "as many epochs")
    ]
    if reached.seconds is not None and theirs.epoch.seconds is not None:
        seconds = reached.seconds, theirs.epoch.seconds
        costs.append(times(*seconds, "less time", "more time", "as much time"))
    note = f"{enumerate_words(costs)}; {theirs.run.label}: {_place(theirs.epoch)}"
    return Tile(title, f"epoch {reached.epoch}", note)


def _distance_tile(results: Results, by: Measure, other: str) -> Tile | None:
    """The distance between CF-SGD and another optimizer, each at its best."""
    mine, theirs = best_standing(results, "cfsgd", by), best_standing(results, other, by)
    if mine is None or theirs is None:
        return None
    if any(run.still_learning for run in (*mine.runs, *theirs.runs)):
        return None  # a longer run might have come closer
    distance = round(mine.value, 4) - round(theirs.value, 4)
    sign = "" if score(abs(distance)) == score(0) else "+" if distance > 0 else "\N{MINUS SIGN}"
    note = f"{score(mine.value)} against {score(theirs.value)}"
    if max(mine.seeds, theirs.seeds) > 1:
        note += ", means over seeds"
    title = f"{mine.label} minus {theirs.label}, {(by.metric or by).name}"
    return Tile(title, sign + score(abs(distance)), note)


# ---- what to read with care ----------------------------------------------------------------------


def _caveats(results: Results, kind: Kind) -> Iterator[str]:
    """What limits what the numbers can show."""
    if not standings(results, kind.kept):
        no_split = results.splits.get("validation") == 0
        yield (
            "There is no validation split, so there are no validation scores."
            if no_split
            else f"No run got as far as a {kind.by.name}."
        )
    for run in results.runs:
        yield from _ending(run, kind.by)
    if unfinished := [run.label for run in results.runs if _unfinished(run, kind.by)]:
        yield f"Best in the last epoch, so more epochs may help: {enumerate_words(unfinished)}."
    if uneven := [run.label for run in results.runs if _speed_spread(run) > UNEVEN]:
        yield (
            f"Some epochs of {enumerate_words(uneven)} took over {UNEVEN} times as long as "
            "others, as when kernels are compiled or the machine does other work: "
            "do not rely on the seconds."
        )
    optimizers = {run.optimizer for run in results.runs}
    if 1 < len(optimizers) == len(results.runs):
        seeds = {run.seed for run in results.runs}
        seed = f" (seed {seeds.pop()})" if len(seeds) == 1 and None not in seeds else ""
        yield (
            f"Each optimizer ran once{seed}, and scores differ from seed to seed: "
            "small differences do not rank them."
        )


def _speed_spread(run: Run) -> float:
    """How many times faster than the slowest epoch the fastest one was."""
    speeds = [speed for epoch in run.epochs if (speed := epoch.speed)]
    return max(speeds) / min(speeds) if speeds else 1.0


def _ending(run: Run, by: Metric) -> Iterator[str]:
    """What is unusual about how a run ended."""
    last = run.epochs[-1].epoch if run.epochs else 0
    yield from cut_short(run, count_of(last, "epoch") if last else "")
    found, top = best(run, by), optimum(run, by)
    if run.stopped is None and run.epochs_planned and last < run.epochs_planned:
        yield f"{run.label} is not done: {last} of {run.epochs_planned} epochs."
    elif run.still_learning:
        yield (
            f"{run.label} ended by patience after epoch {last} while its training and validation "
            "losses still fell: compare it with a larger patience."
        )
    elif run.stopped not in CUT_SHORT and found and top and found.value != top.value:
        yield (
            f"{run.label} had a better {by.name}, {score(top.value)}, in epoch {top.epoch.epoch} "
            f"than in epoch {found.epoch.epoch}, whose weights were kept."
        )


def _unfinished(run: Run, by: Metric) -> bool:
    """Whether more epochs might have made a run better: its last one was its best."""
    top = optimum(run, by)
    if run.stopped != "epochs" or run.still_learning or top is None:
        return False
    rates = [epoch.lr for epoch in run.epochs if epoch.lr is not None]
    as_planned = bool(rates) and rates[-1] < rates[0]  # the last epoch is meant to be the best
    return top.epoch is run.epochs[-1] and not as_planned


# ---- charts --------------------------------------------------------------------------------------


def curve_charts(results: Results, kind: Kind, series: Sequence[Series]) -> list[Chart]:
    """Return the validation measure and the training loss over time."""
    measures = {"validation": kind.by, "training-loss": TRAINING_LOSS}
    if kind.by is TRAINING_LOSS:
        del measures["validation"]
    charts: list[Chart] = []
    for name, measure in measures.items():
        courses = {run.label: _course(run, measure, kind) for run in results.runs}
        charts += course_charts(
            name,
            measure.name,
            courses,
            series,
            unit="epoch",
            form=".4f",
            levels=_levels(results, measure, courses),
            note="The large marker is the epoch whose weights were kept.",
        )
    return charts


def _course(run: Run, measure: Metric, kind: Kind) -> list[Point]:
    """A measure of a run, epoch by epoch."""
    found = best(run, kind.by)
    return [
        Point(epoch.epoch, value, epoch.seconds, found is not None and epoch is found.epoch)
        for epoch in run.epochs
        if (value := measure.of(epoch)) is not None
    ]


def _levels(
    results: Results, measure: Metric, courses: Mapping[str, Sequence[Point]]
) -> list[Spec]:
    """What the true probabilities score, or a softmax that has learned nothing."""
    limit, words = results.best_possible.get(measure.key), results.dataset.tokens or 0
    if limit is not None:
        return level(limit, f"best possible: {score(limit)}", below=measure.higher_is_better)
    worst = max((point.value for course in courses.values() for point in course), default=0.0)
    if results.model.loss == "softmax" and words > 1 and math.log(words) < 1.1 * worst:
        return level(math.log(words), f"an even guess: {score(math.log(words))}")
    return []


def class_charts(
    results: Results, kind: Kind, breakdown: Breakdown, series: Sequence[Series]
) -> list[Chart]:
    """Return the scores of frequent and rare tokens; losses minus SGD's, as they differ more."""
    against = breakdown.is_loss and any(run.optimizer != "sgd" for run in results.runs)
    sgd = best_standing(results, "sgd", kind.outcome) if against else None
    rows = []
    for name in CLASSES:
        values = breakdown.measure(name).of
        known = [value for run in (sgd.runs if sgd else ()) if (value := values(run)) is not None]
        base = mean(known) if known else 0.0
        for run in results.runs:
            if (value := values(run)) is not None:
                form = "+.4f" if known else ".4f"
                words = f"{value - base:{form}}".replace("-", "\N{MINUS SIGN}")
                row = {"run": run.label, "class": name, "at": value - base, "value": value}
                rows.append({**row, "words": words})
    if not rows:
        return []
    return [
        chart(
            breakdown.name,
            f"{breakdown.title}{', minus that of SGD' if sgd else ''}",
            series,
            rows,
            axis("at", format="+.3f" if sgd else ".2f", padding=48),
            names_axis("class", CLASSES),
            *(level(0.0, upright=True) if sgd else []),
            points(size=70),
            labels("words"),
            tips=[
                ("run", "optimizer", ""),
                ("class", "tokens", ""),
                ("value", breakdown.score, ".4f"),
            ],
            note=f"{breakdown.note}{' Below 0 is better than SGD.' if sgd else ''}",
            height=30 + 20 * len(rows),
            offset=True,
        )
    ]


# ---- tables --------------------------------------------------------------------------------------


def _runs_table(results: Results, kind: Kind) -> Table:
    """What was asked of every run, how good it is, what it cost."""

    def kept_epoch(run: Run) -> float | None:
        found = best(run, kind.by)
        return None if found is None else found.epoch.epoch

    def seconds(run: Run) -> float | None:
        found = best(run, kind.by)
        return None if found is None else found.epoch.seconds

    scores = [
        Column(capitalized(each.name), each.of, each.show, max if each.higher_is_better else min)
        for each in kind.scores
    ]
    columns = [
        Column("Learning rate", lambda run: run.lr, "{:g}".format),
        *scores,
        Column("Epoch kept", kept_epoch, thousands),
        Column("Seconds until then", seconds, lambda s: f"{s:,.{1 if s < 100 else 0}f}"),
        Column("State, MB", lambda run: run.state_bytes, megabytes, min),
        Column(kind.speed, lambda run: run.speed, thousands, max),
    ]
    return runs_table(results, columns)


def _seeds_tables(results: Results, kind: Kind) -> list[Table]:
    """Mean and standard deviation of what matters, one row per optimizer with several seeds."""
    scores = [measure for measure in kind.scores if _is_known(results, measure)]
    rows: list[list[str | None]] = []
    for runs in alike(results.runs):
        if len({repr(run.seed) for run in runs}) == len(runs) > 1:
            rows.append([runs[0].family, str(len(runs))])
            for measure in scores:
                values = [value for run in runs if (value := measure.of(run)) is not None]
                rows[-1].append(spread(values, measure.show) if len(values) > 1 else None)
    head = ["Optimizer", "Seeds", *(capitalized(measure.name) for measure in scores)]
    return [table(head, rows)] if rows else []


# ---- similarity of words -------------------------------------------------------------------------


def similarity_measures(results: Results) -> list[Measure]:
    """Return the correlation with each list of pairs of words that the results have."""
    found = {key for run in results.runs for key in run.similarity}
    return [
        _agreement(results, key) for key in [*LISTS, *sorted(found - set(LISTS))] if key in found
    ]


def _agreement(results: Results, key: str) -> Measure:
    """The correlation with one list, and how many of its pairs the vocabulary covers."""

    def value(run: Run) -> float | None:
        return run.similarity[key].spearman if key in run.similarity else None

    found = [run.similarity[key] for run in results.runs if key in run.similarity]
    counts = {(one.covered, one.pairs) for one in found if one.covered is not None and one.pairs}
    covers = [f", {covered:,} of {pairs:,} pairs" for covered, pairs in counts]
    name = f"{LISTS.get(key, key)}{covers[0] if len(covers) == 1 else ''}"
    return Measure(name, higher_is_better=True, of=value, show=_correlation)


def _correlation(value: float) -> str:
    """A correlation, to more digits than so few pairs tell."""
    return f"{value:.3f}".replace("-", "\N{MINUS SIGN}")


def _chance_words(results: Results) -> list[str]:
    """How far chance alone moves a correlation over so few pairs: one standard error."""
    fewest: dict[str, int] = {}
    for run in results.runs:
        for key, one in run.similarity.items():
            if one.spearman is not None and one.covered is not None and one.covered > 2:
                fewest[key] = min(one.covered, fewest.get(key, one.covered))
    if not fewest:
        return []
    errors = dict.fromkeys(f"{1 / (pairs - 1) ** 0.5:.2f}" for pairs in fewest.values())
    names = enumerate_words(LISTS.get(key, key) for key in fewest)
    return [
        f"{names}: Spearman's correlations of the vectors' cosines with people's judgement; by the "
        f"choice of pairs alone they vary by about {enumerate_words(errors)}."
    ]
