from __future__ import annotations

import json
import math

import pytest

pytest.importorskip("vl_convert", reason='needs vl-convert: pip install "freqsgd[cli]"')

from freqsgd.errors import DataError
from freqsgd.report import write_inspection
from freqsgd.report.inspection import (
    MOST_CHARTS,
    inspection_page,
    rank_charts,
    read_inspection,
    statements,
)
from freqsgd.report.page import render
from tests.report.made_up import HOSTILE, plain
from tests.report.made_up_inspection import (
    ROWS,
    make_field,
    make_inspection,
    make_promise,
    no_fit,
)
from tests.report.test_page import Elements

ONE_TOKEN = make_field(
    "constant",
    1,
    ranks=[[1, ROWS]],
    fit=no_fit("one token", 1),
    corollary={"applies": False, "reason": "no tail was fitted: one token", "top": None},
    singletons=0,
    effective_tokens=1.0,
    top_1=1.0,
    top_10=1.0,
)


def said(document) -> dict[str, str]:
    return {topic: plain(text) for topic, text in statements(read_inspection(document)).items()}


def page_of(document):
    return inspection_page(read_inspection(document))


def tiles(document) -> dict[str, str]:
    return {tile.title: plain(tile.value) for tile in page_of(document).tiles}


def elements(document) -> Elements:
    return Elements(render(page_of(document)))


def charts_of(page: Elements) -> list[dict[str, str | None]]:
    return [entry for entry in page.of("div") if entry.get("class") == "chart"]


def rows_of(document, name: str):
    chart = next(each for each in page_of(document).charts if each.name == name)
    return chart.spec["data"]["values"]


def test_the_folder_gets_a_page_and_pictures(tmp_path):
    document = make_inspection()
    path = write_inspection(document, tmp_path)
    assert path == tmp_path / "inspect.html"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [
        "inspect-memory.png",
        "inspect-promise.png",
        "inspect-ranks.png",
        "inspect.html",
    ]
    assert document == make_inspection() == json.loads(json.dumps(document))


def test_words_tables_and_command_are_on_the_page():
    page = elements(make_inspection())
    for words in (
        "Token frequencies of movielens-1m",
        "movielens-1m has 100,000 rows, 2 fields and 2,800 tokens.",
        "the most frequent 1% of the tokens have 45% of all occurrences",
        "the effective number of tokens is 322 of 2,000",
        "A polynomial tail is nearer in user and movie (nu 1.02).",
        "4.2% of the rows hold a token that was seen fewer than 10 times.",
        "9.7% of the rows hold a token of a tail",
        "For CF-SGD and an FM in batches of 1,024 try 0.5 to 2; begin at the upper end.",
        "The rule: as it is.",
        "Polynomial tail, nu = 1.02 from rank 5 on, 60% of the occurrences.",
        "These are ratios of upper bounds, no forecast of AUC.",
        "CF-SGD's AUC was 0.0004 below SGD's",
        "7 (5,000), 42 (2,500)",
        "freqsgd inspect --dataset movielens-1m --out looked",
    ):
        assert words in page.text
    charts = charts_of(page)
    assert [entry["data-chart"] for entry in charts] == ["ranks-0", "ranks-1", "promise", "state"]
    assert all(entry["role"] == "img" and len(entry["aria-label"]) > 40 for entry in charts)


def test_a_page_opens_with_at_most_five_sentences_and_a_chart():
    page = page_of(make_inspection(notes=["id is a row id."]))
    assert len(page.sentences) == 5
    assert page.sections[0].charts


def test_what_optimizers_keep_is_told():
    words = "CF-SGD 11.2 kB, Row-wise Adagrad 22.4 kB, Adagrad 728 kB and Adam 1.46 MB"
    assert words in said(make_inspection())["Memory"]
    rows = rows_of(make_inspection(), "state")
    assert [row["bytes"] for row in rows] == [11_200, 22_400, 728_000, 1_456_000]
    assert "state" not in [chart.name for chart in page_of(make_inspection(memory={})).charts]


def test_counts_and_both_fits_are_drawn_where_they_were_fitted():
    field = read_inspection(make_inspection()).fields[0]
    rows = rows_of(make_inspection(), "ranks-0")
    counted = [(row["rank"], row["count"]) for row in rows if row["run"] == "counted"]
    assert counted == list(field.ranks)
    for run, expected in (
        ("exponential tail", lambda n: 300 * math.exp(-0.004 * (n - 5))),
        ("polynomial tail", lambda n: 1000 * (n / 5) ** -1.02),
    ):
        fitted = [(row["rank"], row["count"]) for row in rows if row["run"] == run]
        assert fitted[0][0] == 5
        assert [count for _, count in fitted] == pytest.approx([expected(n) for n, _ in fitted])


def test_a_fit_is_drawn_only_where_counts_are_as_large():
    fit = {**make_field()["fit"], "tau": 50.0}
    document = make_inspection(make_field(fit=fit))
    least = read_inspection(document).fields[0].ranks[-1][1]
    rows = rows_of(document, "ranks-0")
    assert all(row["count"] >= least / 2 for row in rows)
    assert len([row for row in rows if row["run"] == "exponential tail"]) == 1


def test_fields_without_a_fit_and_with_one_token_are_a_marker():
    (chart,) = rank_charts(read_inspection(make_inspection(ONE_TOKEN)))
    assert chart.spec["data"]["values"] == [{"run": "counted", "rank": 1, "count": ROWS}]
    marks = [each["mark"]["type"] for each in chart.spec["layer"] if "data" in each]
    assert marks == ["point"]


def test_promises_are_drawn_by_field_below_those_of_all():
    document = make_inspection(make_field("a", promise=make_promise(2, 4)), make_field("b"))
    rows = rows_of(document, "promise")
    assert [row["error"] for row in rows if row["run"] == "median token"] == [3, 2, 3]
    assert [row["error"] for row in rows if row["run"] == "token rarer than 90%"] == [5, 4, 5]
    assert [plain(row["row"]) for row in rows[2::2]] == ["a", "b"]


def test_the_least_even_field_is_the_one_that_is_told():
    uneven = make_field("item", 2000, effective_tokens=10.0, top_10=0.95)
    document = make_inspection(make_field("user"), uneven, ONE_TOKEN)
    assert said(document)["Imbalance"].startswith("In item, the least even field,")
    assert tiles(document)["The most frequent 10% of tokens have"] == "95%"


def test_shares_are_told_of_fields_in_which_they_are_some_tokens():
    uneven = make_field("size", 40, effective_tokens=1.1)
    document = make_inspection(make_field("user"), uneven)
    assert said(document)["Imbalance"].startswith("In user, the least even field, the most")
    assert "The most frequent 10% of tokens have" in tiles(document)
    document = make_inspection(uneven)
    assert said(document)["Imbalance"].startswith(
        "In size the effective number of tokens is 1.1 of 40:"
    )
    assert "The most frequent 10% of tokens have" not in tiles(document)


def test_one_token_is_nothing_to_be_unequal():
    words = said(make_inspection(ONE_TOKEN))
    assert words["Imbalance"] == (
        "No field has more than one token: there is nothing to be unequal."
    )
    assert words["Tails"] == "Neither in constant: one token."
    assert words["Corollary"].startswith(
        "The corollary does not apply to constant: no tail was fitted: one token."
    )
    assert "Promise" not in words
    assert "Read with care" not in words
    words = said(make_inspection(make_field("user"), ONE_TOKEN))
    assert "from a field with one token: constant." in words["Read with care"]


def test_names_of_fields_keep_their_case():
    fields = [{**ONE_TOKEN, "name": "c0"}, make_field("user", singletons=1900)]
    for words in said(make_inspection(*fields)).values():
        assert "C0" not in words
        assert "User" not in words


def test_promises_are_told_both_ways_and_of_bounds():
    words = said(make_inspection())["Promise"]
    assert words == (
        "After equally many iterations SGD's bound on a token's squared gradient is 3.0 times "
        "FA-SGD's for the median token (seen 50 times) and 5.0 times FA-SGD's for the token that "
        "90% of all are more frequent than (seen 20 times). These are ratios of upper "
        "bounds, no forecast of AUC."
    )
    assert tiles(make_inspection())["SGD's bound over FA-SGD's"] == "3.0 times"
    worse = said(make_inspection(promise=make_promise(0.5, 1.0)))["Promise"]
    assert "is 0.5 times FA-SGD's for the median" in worse


def test_a_promise_for_a_token_that_was_hardly_seen_is_said_to_be_unknown():
    seen = make_inspection(promise=make_promise(2.0, 4.0, counts=(10, 10)))
    rare = make_inspection(promise=make_promise(2.0, 4.0, counts=(10, 9)))
    once = make_inspection(promise=make_promise(100.0, 100.0, counts=(1, 1)))
    unknown = "hardly known, and it grows with the number of rows"
    assert [unknown in said(each)["Promise"] for each in (seen, rare, once)] == [False, True, True]
    assert "SGD's bound over FA-SGD's" in tiles(rare)
    assert tiles(once)["The median token was seen"] == "once"
    assert not any("100" in value for value in tiles(once).values())


def test_where_the_corollary_applies_is_told():
    holds = {"applies": True, "reason": None, "top": 3}
    document = make_inspection(make_field("a", corollary=holds), make_field("b"))
    words = said(document)["Corollary"]
    assert words.startswith("The corollary's conditions on one field hold in a, from the rank on")
    assert "two fields with as many tokens and the same tail from rank 1 on, which no real" in words
    assert "The corollary does not apply to b: nu = 1.02 is below 2." in words
    assert words.endswith("The promise does not need it: it comes from the counts.")
    notes = [plain(chart.note) for chart in rank_charts(read_inspection(document))]
    fit = "Polynomial tail, nu = 1.02 from rank 5 on, 60% of the occurrences."
    assert notes == [fit, f"{fit} The corollary does not apply: nu = 1.02 is below 2."]


def test_text_has_words_and_one_field_has_its_tail_by_definition():
    word = make_field("word", 800)
    reason = "text has defaults"
    words = said(make_inspection(word, lr=None, lr_reason=reason))
    assert words["Data"] == "movielens-1m has 100,000 words and 800 distinct words."
    assert words["Rare tokens"].startswith("4.2% of the words hold a token that was seen fewer")
    assert words["Rare tokens"].endswith("with 5% of its occurrences, by definition.")
    assert words["Learning rate"] == f"No range is suggested: {reason}."
    assert "row" not in " ".join(words.values()).replace("grows", "")


def test_rows_that_were_drawn_and_rare_tokens_that_count_as_one_are_told():
    drawn = {"share": 0.7, "of": 40_000, "seen_below_10": 0.3}
    words = said(make_inspection(tail_samples=drawn))["Rare tokens"]
    assert words.startswith("30% of the rows, of which 40,000 were drawn, hold a token that")
    document = make_inspection(tail_samples=drawn)
    document["dataset"]["min_count"] = 10
    words = said(document)["Rare tokens"]
    assert words.startswith("70% of the rows, of which 40,000 were drawn, hold a token of a tail")
    assert tiles(document)["Rows with a rare token"] == "70%"


def test_notes_and_settings_are_on_the_page():
    document = make_inspection(notes=["id is a row id.", "y looks like a label."])
    more = {"name": "clicks", "rows": 1, "min_count": 10, "numeric_rule": "log"}
    document["dataset"] |= more
    assert said(document)["Notes"] == "id is a row id. y looks like a label."
    assert said(document)["Data"].startswith("clicks has 1 row, 2 fields")
    text = elements(document).text
    assert "Min count10" in text
    assert "Rule for bins of numberslog" in text


def test_tails_of_many_fields_are_counted_and_their_rates_spanned():
    fields = [
        make_field(f"f{place}", fit={**make_field()["fit"], "nu": 1 + place / 10})
        for place in range(9)
    ]
    fields.append(make_field("none", fit=no_fit("all tokens occur once", 9)))
    words = said(make_inspection(*fields))["Tails"]
    assert words == (
        "A polynomial tail is nearer in f0, f1, f2, f3, f4 and 4 more (nu 1 to 1.8). "
        "Neither in none: all tokens occur once."
    )


def test_tokens_seen_once_are_told():
    words = said(make_inspection(make_field("word", singletons=1900)))
    assert "Over half of the tokens were seen once in word." in words["Read with care"]


def test_long_names_are_cut_on_the_page_and_in_charts():
    names = [300 * "x" + end for end in "ab"]
    document = make_inspection(*map(make_field, names), make_field('c"x'))
    page = elements(document)
    assert page.text.count(300 * "x") == 2  # where most frequent tokens are told
    names = [row["row"] for row in rows_of(document, "promise")[2::2]]
    assert max(map(len, names)) == 24
    assert len(set(names)) == 3
    assert names[2] == 'c"x'


def test_names_that_are_alike_once_they_are_cut_are_told_apart():
    names = ["x" * 200 + middle + "x" * 100 for middle in "ab"]
    rows = rows_of(make_inspection(*map(make_field, names), make_field("all fields")), "promise")
    assert len({row["row"] for row in rows}) == 4


def test_many_fields_get_small_charts_and_very_many_only_the_largest():
    few = render(page_of(make_inspection()))
    many = make_inspection(*(make_field(f"f{place}", 10 + place) for place in range(70)))
    page = render(page_of(many))
    assert 'class="charts small"' in page
    assert 'class="charts small"' not in few
    shown = [entry["aria-label"] for entry in charts_of(Elements(page))][:-2]
    assert len(shown) == MOST_CHARTS
    assert "in f10:" in shown[0]
    assert Elements(page).text.count("the 60 fields with most tokens") == 2
    assert len(page_of(many).pictures["ranks"]) == MOST_CHARTS


@pytest.mark.parametrize(
    "document",
    [
        make_inspection(ONE_TOKEN),
        make_inspection(make_field(fit=no_fit("all counts are equal", 2000))),
        make_inspection(*(make_field(f"f{place}") for place in range(8))),
        make_inspection(memory={}, lr=None),
        make_inspection(memory={"weights": 0, "cfsgd": 0, "adam": 0}),
    ],
    ids=["token", "no fit", "eight", "without", "no memory"],
)
def test_any_document_of_the_schema_makes_a_page_and_pictures(document, tmp_path):
    page = Elements(write_inspection(document, tmp_path).read_text())
    assert len(page.of("h1")) == 1
    assert "None" not in page.text
    assert "nan" not in page.text


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"schema": 1, "kind": "theory"}, "freqsgd inspect"),
        ({"schema": 7, "kind": "inspection"}, "schema"),
        (make_inspection(fields=[]), r"inspect.json: .*`\$\.fields`"),
        (make_inspection(fields=[{"name": "a"}]), r"at `\$\.fields\[0\]`"),
    ],
)
def test_what_cannot_be_read_is_refused_and_nothing_is_written(document, words, tmp_path):
    with pytest.raises(DataError, match=words):
        write_inspection(document, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_strings_from_outside_stay_text():
    field = make_field(
        HOSTILE,
        most_frequent=[[HOSTILE, 3]],
        fit=no_fit(HOSTILE, 3),
        corollary={"applies": False, "reason": HOSTILE},
    )
    document = make_inspection(
        field,
        command=HOSTILE,
        created=HOSTILE,
        lr=None,
        lr_reason=HOSTILE,
    )
    document["dataset"]["name"] = HOSTILE
    page = elements(document)
    assert not page.of("img")
    assert len(page.of("script")) == 3
    assert page.text.count(HOSTILE) >= 6
