"""What was trained on what, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping

from freqsgd.documents.results import Model
from freqsgd.report.old.results import Results, display_name
from freqsgd.report.old.wording import enumerate_words, score, thousands

LOSSES = {"softmax": "full softmax", "negative": "negative sampling"}


def model_words(model: Model) -> str:
    """The model and its sizes."""
    words = display_name(model.name or "a model")
    if model.loss:
        words += f" with {LOSSES.get(model.loss, model.loss)}"
    sizes = [f"{model.dim} dimensions"] if model.dim else []
    if model.window:
        sizes.append(f"{model.window} words on each side")
    if model.negatives:
        sizes.append(f"{model.negatives} negatives")
    if model.hidden:
        sizes.append(f"hidden layers of {enumerate_words(map(str, model.hidden))}")
    return f"{words} ({', '.join(sizes)})" if sizes else words


def sample_words(results: Results) -> str:
    """How many samples there are, how many labels are positive, and what was for what."""
    data = results.dataset
    sizes = [
        f"{thousands(count)} {word}"
        for count, word in (
            (data.rows, "samples"),
            (data.fields, "fields"),
            (data.tokens, "tokens"),
        )
        if count is not None
    ]
    sentences = []
    if sizes:
        rate = data.positive_rate
        labels = "" if rate is None else f"; {rate:.1%} of the labels are positive"
        sentences.append(f"The data hold {enumerate_words(sizes)}{labels}.")
    if parts := split_words(results.splits):
        sentences.append(f"Of the samples there are {parts}.")
    return " ".join(sentences)


def text_words(results: Results) -> str:
    """How long the text is, how many words are known, and what was for what."""
    counts = {
        key: thousands(value)
        for key in ("tokens", "words", "raw_words", "paragraphs")
        if (value := getattr(results.dataset, key)) is not None
    }
    sentences = []
    if words := counts.get("words"):
        whole = counts.get("raw_words", words)
        within = f" in {counts['paragraphs']} paragraphs" if "paragraphs" in counts else ""
        left = f"; {words} are left without the rare ones" if whole != words else ""
        distinct = f", {counts['tokens']} of them distinct" if "tokens" in counts else ""
        sentences.append(f"The training text has {whole} words{within}{left}{distinct}.")
    held_out = {key: count for key, count in results.splits.items() if key != "train"}
    if any(held_out.values()):
        sentences.append(f"Held out are {split_words(held_out)}.")
    elif held_out:
        sentences.append("No text is held out.")
    return " ".join(sentences)


def even_guess(results: Results) -> str:
    """What a softmax scores that has learned nothing: a level to see losses against."""
    words = results.dataset.tokens
    if results.model.loss != "softmax" or words is None or words < 2:
        return ""
    guess = score(math.log(words))
    return f"An even guess among the {thousands(words)} words would score {guess} on each of them."


def split_words(splits: Mapping[str, float]) -> str:
    """How much was for what."""
    uses = (("train", "training"), ("validation", "validation"), ("test", "the test"))
    return enumerate_words(
        f"{thousands(splits[key]) if splits[key] else 'none'} for {use}"
        for key, use in uses
        if key in splits
    )
