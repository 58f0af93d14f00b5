"""What was streamed, which rates were chosen, and what limits the scores of one-pass runs."""

from __future__ import annotations

from freqsgd.report.old.background import count_words
from freqsgd.report.old.data_words import model_words
from freqsgd.report.old.one_pass import OnePass
from freqsgd.report.old.results import Run
from freqsgd.report.old.wording import count_of, enumerate_words, small_number, thousands


def streamed(found: OnePass) -> str:
    """Which optimizers, which model, which stream."""
    results = found.results
    what = f"{model_words(results.model)} in one pass over {results.dataset.name or 'a stream'}"
    if len(found.runs) == 1:
        opening = f"{found.runs[0].label} trained {what}."
    else:
        who = enumerate_words(run.label for run in found.runs)
        opening = f"{count_words(results).capitalize()} trained {what}: {who}."
    return " ".join(filter(None, (opening, examples_words(found), tables_words(found))))


def examples_words(found: OnePass) -> str:
    """How many examples there are of what, and how they were learned."""
    results = found.results
    days = results.dataset.days
    of_days = f" of {count_of(len(days), 'day')}" if days else ""
    train = results.splits.get("train") or max(run.examples or 0 for run in found.runs)
    if not train:
        return ""
    sizes = sorted({run.batch_size for run in found.runs if run.batch_size is not None})
    batch = f" of {enumerate_words(map(thousands, sizes))}" if sizes else ""
    test = results.splits.get("test")
    kept = f"; {thousands(test)} at the end were kept for evaluation" if test else ""
    return (
        f"Of a stream{of_days}, {thousands(train)} examples were learned once, in batches{batch}, "
        f"each batch scored before it was learned{kept}."
    )


def tables_words(found: OnePass) -> str:
    """How many features there are, and how large their tables."""
    dataset = found.results.dataset
    if dataset.fields is None or dataset.tokens is None:
        return ""
    filled = ", to which tokens are hashed" if dataset.encoding == "hash" else ""
    return (
        f"An example has {count_of(dataset.fields, 'feature')}; "
        f"their tables have {count_of(dataset.tokens, 'row')}{filled}."
    )


def rates(found: OnePass) -> str:
    """How rates were chosen, and what limits that."""
    searched = with_rates(found)
    if not searched:
        return ""
    counts = {len(run.search) for run in searched}
    tried = f"{small_number(counts.pop())} rates" if len(counts) == 1 else "several rates"
    who = (
        "Each optimizer"
        if len(searched) == len(found.runs)
        else enumerate_words(run.label for run in searched)
    )
    chosen = (
        f"{who} at the best of {tried}: the one of lowest NE while training; "
        "the evaluation examples play no part."
    )
    return " ".join([chosen, *rate_limits(found)])


def with_rates(found: OnePass) -> list[Run]:
    """Runs whose rate was chosen among several."""
    return [run for run in found.runs if len(run.search) > 1]


def rate_limits(found: OnePass) -> list[str]:
    """Where a better rate may lie, and which rates diverged."""
    searched, sentences = with_rates(found), []
    edges = [f"{run.label} ({edge_words(run)})" for run in searched if run.search_edge]
    if edges:
        sentences.append(
            "The best lies at the end of what was tried, so that a better one may lie beyond: "
            f"{enumerate_words(edges)}."
        )
    failed = [
        f"{run.label} at {one.lr:.3g}"
        for run in searched
        for one in run.search
        if one.train_ne is None
    ]
    if failed:
        sentences.append(f"Diverged: {enumerate_words(failed)}.")
    return sentences


def edge_words(run: Run) -> str:
    """At which end of the rates the best one is."""
    end = "smallest" if run.lr == run.search[0].lr else "largest"
    return f"the {end}" if run.lr is None else f"the {end}, {run.lr:.3g}"


def caveats(found: OnePass) -> str:
    """What limits what the numbers can show."""
    sentences = [sentence for run in found.runs if (sentence := ending(run))]
    dropped = max(run.dropped or 0 for run in found.runs)
    if dropped:
        sentences.append(f"Malformed rows left out: {thousands(dropped)}.")
    if found.skipped:
        sentences.append(f"Files left out, listed below: {thousands(len(found.skipped))}.")
    if len(found.runs) > 1:
        sentences.append(
            "Each optimizer ran once at the rate shown, on the same examples in the same order: "
            "another start ends a little apart, and small differences do not rank them."
        )
    return " ".join(sentences)


def ending(run: Run) -> str:
    """What is unusual about how a run ended."""
    seen = run.examples or (run.windows[-1].examples if run.windows else 0)
    so_far = f"after {count_of(seen, 'example')}" if seen else "at its start"
    if run.stopped == "diverged":
        reason = f": {run.error.rstrip('.')}" if run.error else ""
        return f"{run.label} diverged {so_far}{reason}."
    if run.stopped == "interrupted":
        return f"{run.label} was interrupted {so_far}."
    return ""
