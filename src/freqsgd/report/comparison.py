"""The page of runs over the same samples or text, epoch by epoch: ``compare``, ``train``, ``tune``.

:func:`kind_of` says what is compared: scores of samples, or losses of text.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from freqsgd.report.charts import (
    Chart,
    Series,
    Spec,
    axis,
    labels,
    level,
    names_axis,
    plot,
    points,
    series_of,
)
from freqsgd.report.diagnosis import diagnosis_sections
from freqsgd.report.page import Page, Section, Tile, opening
from freqsgd.report.parts import (
    Point,
    course_charts,
    even_guess,
    made_with,
    runs_table,
    sample_words,
    settings_section,
    state_charts,
    state_tile,
    text_words,
    title_of,
    trained_words,
)
from freqsgd.report.results import (
    CLASSES,
    Best,
    Breakdown,
    Epoch,
    Measure,
    Metric,
    Results,
    Run,
    alike,
    best,
    best_standing,
    display_name,
    first_reaching,
    kept,
    leaders,
    optimum,
    representative,
    standings,
)
from freqsgd.report.tables import Column, Table, shown, table
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

TRAINING_LOSS = Metric("train_loss", "training loss", higher_is_better=False)
VALIDATION_LOSS = Metric("val_loss", "validation loss", higher_is_better=False)
VALIDATION_AUC = Metric("val_auc", "validation AUC", higher_is_better=True)
TEST_LOSS = Measure("test loss", lambda run: run.test_loss, higher_is_better=False)
TEST_AUC = Measure("test AUC", lambda run: run.test_auc, higher_is_better=True)

WORD_CLASSES = (
    "Head words, the most frequent, make up the first 80% of the training text, "
    "torso words the next 15%, tail words the last 5%."
)
BY_TOKEN = Breakdown(
    "test_auc_by_frequency",
    "frequency",
    title="Test AUC by token frequency",
    score="AUC",
    of_classes="samples with head, torso and tail tokens",
    note="A sample belongs to the class of its rarest token. Head tokens make up the first 80% of "
    "a field's training occurrences, torso tokens the next 15%, tail tokens the last 5%.",
)
BY_PREDICTED_WORD = Breakdown(
    "test_loss_by_frequency",
    "frequency",
    title="Test loss by predicted word",
    score="loss",
    of_classes="head, torso and tail words that are predicted",
    note=WORD_CLASSES,
)
BY_CENTRE_WORD = Breakdown(
    "test_loss_by_centre_frequency",
    "centre-frequency",
    title="Test loss by centre word",
    score="loss",
    of_classes="words around head, torso and tail words",
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
    data: Callable[[Results], str]  # how large the data are, in words
    tokens: str
    speed: str
    batch: str
    inapplicable: Collection[str]  # options that are written down and mean nothing here


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
        data=sample_words,
        tokens="tokens",
        speed="Samples/s",
        batch="Batch size",
        inapplicable=(),
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
        data=text_words,
        tokens="words",
        speed="Words/s",
        batch="Paragraphs per step",
        inapplicable=("linear_lr_scale", "linear_decay_scale"),
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
    kind, series = kind_of(results), series_of(results.runs)
    data = results.dataset.name or "unnamed data"
    first = f"{trained_words(results, f'on {data}')}."
    sentences, notes = opening([first], list(_caveats(results, kind)))
    return Page(
        _title(results),
        _tiles(results, kind),
        sentences,
        [
            *tuning_sections(results, series),
            Section(_curves_title(results, kind), curve_charts(results, kind, series)),
            Section("All runs", tables=[_runs_table(results, kind)]),
            Section("Read with care", remarks=[*notes, *_chance_words(results)]),
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
            settings_section(results, kind.data(results), kind.batch, kind.inapplicable),
        ],
        legend=series,
        made=made_with(results),
        created=results.created,
    )


def _title(results: Results) -> str:
    """The heading; runs of a search have their optimizers' names only."""
    if results.tuning is None:
        return title_of(results)
    names = dict.fromkeys(display_name(run.optimizer) for run in results.runs)
    return f"{enumerate_words(names)}, tuned on {results.dataset.name or 'unnamed data'}"


def _curves_title(results: Results, kind: Kind) -> str:
    """The heading of the learning curves, which says what they show."""
    return ": ".join(filter(None, ("Learning curves", point(results, kind))))


def point(results: Results, kind: Kind) -> str:
    """Return what learning curves show at a glance, if it is what frequency-aware rates are for."""
    found = reach(results, kind)
    if found is None or not found.is_fair:
        return ""
    if found.epoch is None or found.epoch.epoch >= found.plain.epoch.epoch:
        return ""
    slow, fast = found.plain, found.counting
    epochs = count_of(slow.epoch.epoch, "epoch")
    return f"what takes {slow.run.label} {epochs} takes {fast.run.label} {found.epoch.epoch}"


@dataclass(frozen=True)
class Reach:
    """CF-SGD and SGD, each at its best, and when CF-SGD was as good as SGD."""

    counting: Best
    plain: Best
    epoch: Epoch | None  # None: it never was

    @property
    def is_fair(self) -> bool:
        """Whether SGD's best is all that it could reach, so that its epochs can be counted."""
        return not self.plain.run.still_learning


def reach(results: Results, kind: Kind) -> Reach | None:
    """Return when CF-SGD got as far as SGD ever did; None if either has no values."""
    found = []
    for optimizer in ("cfsgd", "sgd"):
        run = representative(results, optimizer, kind.kept)
        at_best = None if run is None else best(run, kind.by)
        if at_best is None:
            return None
        found.append(at_best)
    counting, plain = found
    return Reach(counting, plain, first_reaching(counting.run, kind.by, plain.value))


# ---- tiles ---------------------------------------------------------------------------------------


def _tiles(results: Results, kind: Kind) -> list[Tile]:
    """Tiles for what these results hold, in order of importance."""
    by_epoch = kind.outcome is kind.kept
    tiles = (
        _best_tile(results, kind.outcome),
        _reach_tile(results, kind) if by_epoch else _distance_tile(results, kind.outcome, "sgd"),
        _distance_tile(results, kind.outcome, "adam"),
        state_tile(*(representative(results, name, kind.outcome) for name in ("cfsgd", "adam"))),
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
    title = f"{capitalized(by.extreme)} {(by.metric or by).name}"
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
    found = reach(results, kind)
    if found is None:
        return None
    mine, theirs, reached = found.counting, found.plain, found.epoch
    title = f"{mine.run.label} as good as {theirs.run.label}'s best"
    if reached is None:
        short = f"{difference(mine.value, theirs.value)} short of {score(theirs.value)}"
        return Tile(title, "never", short)
    if not found.is_fair:
        return None
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
    yield from filter(None, (_ending(run, kind.by) for run in results.runs))
    if unfinished := [run.label for run in results.runs if _unfinished(run, kind.by)]:
        one = len(unfinished) == 1
        best_in = "was at its best in its" if one else "were at their best in their"
        they = "it" if one else "they"
        yield f"{enumerate_words(unfinished)} {best_in} last epoch: {they} may not have finished."
    uneven = [run.label for run in results.runs if _speed_spread(run) > UNEVEN]
    if uneven:
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


def _ending(run: Run, by: Metric) -> str:
    """What is unusual about how a run ended."""
    last = run.epochs[-1].epoch if run.epochs else 0
    so_far = f"after {count_of(last, 'epoch')}" if last else "in its first epoch"
    if run.stopped == "diverged":
        reason = f": {run.error.rstrip('.')}" if run.error else ""
        before = " Its figures are from the time before." if last else ""
        return f"{run.label} diverged {so_far}{reason}.{before}"
    if run.stopped == "interrupted":
        planned = f" ({run.epochs_planned} were planned)" if run.epochs_planned else ""
        return f"{run.label} was interrupted {so_far}{planned}."
    if run.stopped is None and run.epochs_planned and last < run.epochs_planned:
        return f"{run.label} is not done: {last} of {run.epochs_planned} epochs."
    if run.still_learning:
        return (
            f"{run.label} ended by patience after epoch {last} while its training and validation "
            "losses still fell: it might have become better. Compare it with a larger patience."
        )
    found, top = best(run, by), optimum(run, by)
    if found is not None and top is not None and found.value != top.value:
        return (
            f"{run.label} had a better {by.name}, {score(top.value)}, in epoch {top.epoch.epoch} "
            f"than in epoch {found.epoch.epoch}, whose weights were kept: stop early to keep those."
        )
    return ""


def _unfinished(run: Run, by: Metric) -> bool:
    """Whether more epochs might have made a run better: its last one was its best."""
    found, top = best(run, by), optimum(run, by)
    if run.stopped != "epochs" or run.still_learning or found is None or top is None:
        return False
    rates = [epoch.lr for epoch in run.epochs if epoch.lr is not None]
    as_planned = bool(rates) and rates[-1] < rates[0]  # the last epoch is meant to be the best
    is_last = found.epoch.epoch == run.epochs[-1].epoch
    return is_last and found.value == top.value and not as_planned


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
    """What the true probabilities score, or an even guess if a run was near it."""
    limit, guess = results.best_possible.get(measure.key), even_guess(results)
    if limit is not None:
        return level(limit, f"best possible: {score(limit)}", below=measure.higher_is_better)
    values = [point.value for course in courses.values() for point in course]
    if guess is not None and values and guess < 1.1 * max(values):
        return level(guess, f"an even guess: {score(guess)}")
    return []


def class_charts(
    results: Results, kind: Kind, breakdown: Breakdown, series: Sequence[Series]
) -> list[Chart]:
    """Return the scores of frequent and rare tokens, minus those of SGD where these count."""
    minus = _sgd_level(results, kind, breakdown)
    rows = []
    for name in CLASSES:
        for run in results.runs:
            value = breakdown.measure(name).of(run)
            if value is None or (minus and (run.optimizer == "sgd" or name not in minus)):
                continue
            apart = value - minus.get(name, 0.0)
            words = f"{apart:+.4f}".replace("-", "\N{MINUS SIGN}") if minus else score(value)
            rows.append(
                {"run": run.label, "class": name, "at": apart, "value": value, "words": words}
            )
    if not rows:
        return []
    table_rows = [
        [run.label, *(shown(breakdown.measure(name).of(run), score) for name in CLASSES)]
        for run in results.runs
    ]
    told = "; ".join(" ".join(entry or "unknown" for entry in row) for row in table_rows)
    remark = " The chart shows the loss minus SGD's: below 0 is better than SGD." if minus else ""
    tips = [("run", "optimizer", ""), ("class", "tokens", ""), ("value", breakdown.score, ".4f")]
    spec = plot(
        series,
        rows,
        axis("at", format="+.3f" if minus else ".2f", padding=48),
        names_axis("class", CLASSES),
        *(level(0.0, upright=True) if minus else []),
        points(size=70),
        labels("words"),
        tips=tips,
        height=30 + 20 * len(rows),
        offset=True,
    )
    return [
        Chart(
            breakdown.name,
            title=f"{breakdown.title}{', minus that of SGD' if minus else ''}",
            spec=spec,
            description=f"Test {breakdown.score} of {breakdown.of_classes}: {told}.{remark}",
            note=breakdown.note + remark,
            table=table(["Optimizer", *CLASSES], table_rows),
        )
    ]


def _sgd_level(results: Results, kind: Kind, breakdown: Breakdown) -> dict[str, float]:
    """What SGD scores by class; nothing if scores are not seen against it, or nothing else ran."""
    sgd = best_standing(results, "sgd", kind.outcome)
    others = [one for one in standings(results, kind.outcome) if one.middle.optimizer != "sgd"]
    if not breakdown.is_loss or sgd is None or not others:
        return {}
    found = {}
    for name in CLASSES:
        values = [breakdown.measure(name).of(run) for run in sgd.runs]
        known = [value for value in values if value is not None]
        if known:
            found[name] = mean(known)
    return found


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
    return Measure(name, value, higher_is_better=True, show=_correlation)


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
