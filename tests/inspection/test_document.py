"""What inspect.json says, against slow formulas and the engines themselves."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from freqsgd.documents import read_document, write_document
from freqsgd.documents.inspection import FieldCorollary, Inspection
from freqsgd.errors import DataError
from freqsgd.inspection.document import (
    effective_tokens,
    inspect_data,
    learning_rates,
    memory,
    rank_frequencies,
    top_share,
)
from freqsgd.inspection.options import InspectionOptions
from freqsgd.nn.word2vec import SkipGram
from freqsgd.optimizers import Rule
from freqsgd.recommender.engine import build_model, engine_for
from freqsgd.recommender.settings import Settings
from freqsgd.tables.loading import load
from freqsgd.tables.spec import DataOptions
from freqsgd.theory.improvement import error_improvement, field_improvements, promises
from freqsgd.words.loading import load_text
from freqsgd.words.negative import NegativeEngine
from freqsgd.words.settings import TextSettings
from freqsgd.words.spec import TextOptions


def test_shares_of_the_top_tokens():
    counts = np.array([50, 20, 10, 5, 5, 4, 3, 1, 1, 1])
    assert top_share(counts, 1) == 0.5  # at least one token
    assert top_share(counts, 10) == 0.5
    assert top_share(counts, 20) == 0.7
    assert top_share(np.ones(1000, np.int64), 1) == 0.01


def test_effective_tokens_are_all_if_equally_frequent_and_few_if_not():
    assert effective_tokens(np.full(7, 3)) == pytest.approx(7)
    shares = [0.7, 0.2, 0.1]
    expected = 1 / sum(share**2 for share in shares)
    assert effective_tokens(np.array([70, 20, 10])) == pytest.approx(expected)


@pytest.mark.parametrize("tokens", [1, 2, 299, 301, 50_000])
def test_ranks_begin_with_the_first_token_and_end_with_the_last(tokens):
    counts = np.arange(tokens, 0, -1)
    ranks = rank_frequencies(counts)
    assert ranks[0] == (1, tokens)
    assert ranks[-1] == (tokens, 1)
    assert len(ranks) <= 300
    assert all(count == tokens + 1 - rank for rank, count in ranks)
    assert [rank for rank, _ in ranks] == sorted({rank for rank, _ in ranks})


def test_the_promise_is_the_ratio_of_the_bounds_slow_terms_over_all_fields():
    counts = [np.array([60, 30, 10]), np.array([50, 20, 20, 9, 1])]
    of_fields, of_all = promises(counts, 100)
    p = [n / 100 for field in counts for n in field]
    total, squares = sum(p), sum(x * x for x in p)

    def improvement(p_k):
        """SGD: 10 sqrt(L S2 gap / T); FA-SGD: 10 sqrt(p_k L S gap / T), sigma = 1."""
        return math.sqrt(squares) / math.sqrt(p_k * total)

    median, p90 = of_fields[1].median, of_fields[1].p90
    assert (median.rank, median.count, median.p) == (3, 20, 0.2)
    assert (p90.rank, p90.count, p90.p) == (5, 1, 0.01)
    assert median.error == pytest.approx(improvement(0.2))
    assert p90.iterations == pytest.approx(improvement(0.01) ** 2)
    assert (of_all.median.rank, of_all.median.count) == (5, 20)
    assert of_all.p90.count == 1


def test_equally_frequent_tokens_are_promised_nothing():
    _, of_all = promises([np.full(10, 5), np.full(10, 5)], 50)
    assert of_all.median.error == pytest.approx(1)
    assert of_all.p90.iterations == pytest.approx(1)


def test_a_token_twice_in_each_sample_counts_twice():
    """p is 2 there; it is the scale of p that does not matter, not what is above 1."""
    counts = np.array([200, 30, 3])
    _, of_all = promises([counts], 100)
    assert (of_all.median.p, of_all.p90.p) == (0.3, 0.03)
    assert of_all.median.error == pytest.approx(error_improvement(counts / 1000)[1])
    (found,) = field_improvements([counts])
    np.testing.assert_allclose(found, error_improvement(counts / 200))


def test_a_constant_column_changes_no_other_promise():
    fields = [np.array([60, 30, 10]), np.array([50, 40, 10])]
    alone, all_alone = promises(fields, 100)
    beside, _ = promises([*fields, np.array([100])], 100)
    assert beside[:2] == alone
    assert beside[2].median.error < all_alone.median.error
    only, _ = promises([np.array([100])], 100)
    assert only[0].median.error == 1


def test_tokens_that_never_occur_are_promised_nothing():
    seen, padded = field_improvements([[7, 2]]), field_improvements([[0, 7, 0, 2], [0, 9]])
    assert padded[0].tolist() == [1, seen[0][0], 1, seen[0][1]]
    assert field_improvements([[0, 0]])[0].tolist() == [1, 1]


def test_memory_is_that_of_the_engine(tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{n % 2},{a},{b}" for n, (a, b) in enumerate(rng.zipf(1.5, (500, 2)))]
    path = tmp_path / "x.csv"
    path.write_text("\n".join(["click,a,b", *lines]))
    data = load(DataOptions(path=str(path), label="click", features=("a", "b")))
    document = inspect_data(InspectionOptions(path=str(path), label="click", dim=6))
    memory = document.memory
    for name in ("adam", "adagrad", "rowwise-adagrad", "cfsgd", "cfadam"):
        model = build_model(data, Settings(dim=6))
        engine = engine_for(model, Rule(name, 0.1), batch_size=100)
        assert 0 <= engine.state_bytes - memory[name] <= 8  # for the model's one bias
        assert memory["weights"] == model.tokens.weight.nbytes


def test_counters_have_8_bytes_where_the_engine_makes_them_so():
    small, large = (memory(10, 4, most, parts=2)["cfsgd"] for most in (2**31 - 1, 2**31))
    assert (small, large) == (40, 80)
    assert memory(10, 4, 2**31, parts=2, linear=False)["cfsgd"] == 80
    settings = TextSettings()
    pairs = 2 * settings.window
    most = (2**31 - 1) // pairs // max(pairs, 1 + settings.negatives)
    assert settings.most_counted(most) < 2**31 <= settings.most_counted(most + 1)


def test_memory_of_words_is_that_of_two_tables(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("a b c d e f g h\n" * 30)
    words = len(load_text(TextOptions(path=str(path))).words)
    document = inspect_data(InspectionOptions(path=str(path), text=True, dim=10))
    assert document.memory["weights"] == 2 * words * 10 * 4
    assert document.memory["cfsgd"] == 2 * words * 4
    model, settings = SkipGram(words, 10, bias=False), TextSettings(dim=10)
    engine = NegativeEngine(model, Rule("cfadam", 0.01), settings, np.ones(words, np.int64), 1)
    assert document.memory["cfadam"] == engine.state_bytes
    assert document.lr is None
    assert "default rates" in document.lr_reason


def test_rates_are_rounded_but_not_above_the_rule():
    assert (learning_rates(1).low, learning_rates(1).high) == (0.5, 1.5)
    found = learning_rates(39)
    assert (found.low, found.high) == (0.1, 0.4)
    assert "1.5 / 39 ** (1/3) for 39 tokens a sample" in found.rule
    assert "FM in batches of 1,024; begin at the upper end" in found.advice


def test_more_tokens_in_a_sample_take_smaller_rates():
    ranges = [learning_rates(tokens) for tokens in (1, 2, 6, 20, 39)]
    assert all(found.low < found.high for found in ranges)
    highs = [found.high for found in ranges]
    assert highs == sorted(highs, reverse=True)


@pytest.mark.parametrize(
    ("tokens", "low", "high"), [(2, 0.13, 1.6), (39, 0.01, 0.68)], ids=["MovieLens-1M", "Criteo"]
)
def test_the_range_lies_within_the_measured_ones(tokens, low, high):
    """docs/learning_rate.md: those within 0.002 of the best validation AUC."""
    found = learning_rates(tokens)
    assert low < found.low < found.high < high


def test_a_steep_polynomial_tail_is_told_from_one_below_two(tmp_path):
    def corollary(nu):
        counts = (3e4 * np.arange(1.0, 200.0) ** -nu).astype(int)
        counts = counts[counts > 0]
        tokens = np.repeat(np.arange(len(counts)), counts)
        (tmp_path / "x.csv").write_text("\n".join(["t", *tokens.astype(str)]))
        document = inspect_data(InspectionOptions(path=str(tmp_path / "x.csv")))
        return document.fields[0]

    steep, flat = corollary(2.5), corollary(1.1)
    assert steep.fit.family == flat.fit.family == "polynomial"
    assert steep.fit.nu == pytest.approx(2.5, abs=0.1)
    assert steep.corollary == FieldCorollary(True, None, 3)
    assert not flat.corollary.applies
    assert "below 2" in flat.corollary.reason


def test_a_field_of_one_token_and_one_of_tokens_seen_once(tmp_path):
    (tmp_path / "x.csv").write_text("\n".join(["a,b", *(f"x,{n}" for n in range(100))]))
    one, once = inspect_data(InspectionOptions(path=str(tmp_path / "x.csv"))).fields
    assert (one.tokens, one.effective_tokens, one.top_1) == (1, 1.0, 1.0)
    assert (once.singletons, once.effective_tokens) == (100, pytest.approx(100))
    for field in (one, once):
        assert field.fit.family is None
        assert not field.corollary.applies
        assert field.corollary.reason
    assert one.promise.median.iterations < 1
    assert once.promise.median.iterations == pytest.approx(1)


def test_numbers_of_rows_get_a_note(tmp_path):
    (tmp_path / "x.csv").write_text("\n".join(["row,shop", *(f"{n},{n % 3}" for n in range(200))]))
    path = str(tmp_path / "x.csv")
    (note,) = inspect_data(InspectionOptions(path=path)).notes
    assert note.startswith("Nearly all tokens of 'row' occur once")
    assert inspect_data(InspectionOptions(path=path, features=("shop",))).notes == ()


def test_what_was_left_out_or_binned_is_told(tmp_path):
    rows = [f"{n},{n % 3 + n // 59}" for n in range(60)]
    (tmp_path / "x.csv").write_text("\n".join(["price,shop", *rows]))
    options = {"path": str(tmp_path / "x.csv"), "numeric": ("price",), "min_count": 2}
    document = inspect_data(InspectionOptions(**options))
    assert (document.dataset.min_count, document.dataset.numeric_rule) == (2, "log")
    assert "seen fewer than 2 times" in document.notes[0]
    document = inspect_data(InspectionOptions(path=options["path"], features=("shop",)))
    assert (document.dataset.min_count, document.dataset.numeric_rule) == (1, None)


def test_the_document_is_written_and_read_again(tmp_path):
    document = inspect_data(InspectionOptions(), command="freqsgd inspect")
    write_document(tmp_path / "inspect.json", document)
    written = json.loads((tmp_path / "inspect.json").read_text())
    assert read_document(written, Inspection, "inspect.json") == document
    assert document.kind == "inspection"
    assert document.dataset.tokens == sum(field.tokens for field in document.fields)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dataset": "nope"}, "known are synthetic, movielens-1m, criteo, zipf-text, .*-103$"),
        ({"dataset": "criteo", "path": "x.csv"}, "dataset does not go with own files"),
        ({"dataset": "criteo", "features": ("a",)}, "features does not go with the dataset criteo"),
        ({"path": "x.txt", "text": True, "label": "a"}, "label does not go with text"),
        ({"path": "x.csv", "label": "a", "features": ("a",)}, "cannot be feature and label"),
        ({"path": "x.csv", "features": ("a",), "numeric": ("a",)}, "named twice"),
        ({"path": "x.csv", "numeric_rule": "sqrt"}, "unknown numeric rule 'sqrt'"),
        ({"path": ""}, "name a file or folder"),
        ({"dim": 0}, "dim must be at least 1"),
        ({"min_count": 0}, "min count must be at least 1"),
    ],
)
def test_options_that_do_not_fit_together(options, message):
    with pytest.raises(DataError, match=message):
        inspect_data(InspectionOptions(**options))
