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
    sentences,
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


def said(document) -> str:
    return plain(" ".join(sentences(read_inspection(document))))


def page_of(document):
    return inspection_page(read_inspection(document))


def notes(document) -> dict[str, str]:
    return {tile.title: plain(tile.note) for tile in page_of(document).tiles}


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
        "Top 10% of tokens",
        "upper bounds, no forecast of AUC",
        "Learning rates for CF-SGD and an FM in batches of 1,024: try 0.5 to 2, the upper end",
        "Rows100,000Fields2Tokens2,800",
        "The rule: as it is.",
        "Polynomial tail, nu = 1.02 from rank 5 on, 60% of the occurrences.",
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
    assert len(page.sentences) <= 5
    assert "id is a row id." in page.sentences
    assert page.sections[0].charts


def test_what_optimizers_keep_is_told():
    title = "Optimizer state of CF-SGD"
    assert tiles(make_inspection())[title] == "11.2 kB"
    words = "Row-wise Adagrad 22.4 kB, Adagrad 728 kB and Adam 1.46 MB; the weights have "
    assert notes(make_inspection())[title].startswith(words)
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
    assert "in item, the least even" in notes(document)["Top 10% of tokens"]
    assert tiles(document)["Top 10% of tokens"] == "95%"


def test_shares_are_told_of_fields_in_which_they_are_some_tokens():
    uneven = make_field("size", 40, effective_tokens=1.1)
    document = make_inspection(make_field("user"), uneven)
    assert "in user, the least even" in notes(document)["Top 10% of tokens"]
    document = make_inspection(uneven)
    assert "Top 10% of tokens" not in tiles(document)


def test_nothing_is_learned_from_one_token():
    assert "SGD's bound over FA-SGD's" not in tiles(make_inspection(ONE_TOKEN))
    words = said(make_inspection(make_field("user"), ONE_TOKEN))
    assert "from a field with one token: constant." in words


def test_names_of_fields_keep_their_case():
    fields = [{**ONE_TOKEN, "name": "c0"}, make_field("user", singletons=1900)]
    assert "C0" not in said(make_inspection(*fields))
    assert "User" not in said(make_inspection(*fields))


def test_promises_are_told_both_ways_and_of_bounds():
    title = "SGD's bound over FA-SGD's"
    assert tiles(make_inspection())[title] == "3.0 times"
    assert notes(make_inspection())[title] == (
        "at the median token, seen 50 times: upper bounds, no forecast of AUC"
    )
    assert tiles(make_inspection(promise=make_promise(0.5, 1.0)))[title] == "0.5 times"


def test_a_promise_for_a_token_that_was_hardly_seen_is_said_to_be_unknown():
    seen = make_inspection(promise=make_promise(2.0, 4.0, counts=(10, 10)))
    rare = make_inspection(promise=make_promise(2.0, 4.0, counts=(10, 9)))
    once = make_inspection(promise=make_promise(100.0, 100.0, counts=(1, 1)))
    title = "The median token was seen"
    assert [title in tiles(each) for each in (seen, rare, once)] == [False, False, True]
    assert "hardly known" in notes(once)[title]
    assert "SGD's bound over FA-SGD's" in tiles(rare)
    assert tiles(once)["The median token was seen"] == "once"
    assert not any("100" in value for value in tiles(once).values())


def test_where_the_corollary_applies_is_told():
    holds = {"applies": True, "reason": None, "top": 3}
    document = make_inspection(make_field("a", corollary=holds), make_field("b"))
    found = [plain(chart.note) for chart in rank_charts(read_inspection(document))]
    fit = "Polynomial tail, nu = 1.02 from rank 5 on, 60% of the occurrences."
    assert found == [fit, f"{fit} The corollary does not apply: nu = 1.02 is below 2."]


def test_text_has_words():
    document = make_inspection(make_field("word", 800), lr=None, lr_reason="text has defaults")
    assert "No range of learning rates is suggested: text has defaults." in said(document)
    assert tiles(document)["Words with a rare token"] == "4.2%"
    assert "row" not in said(document)


def test_rows_that_were_drawn_and_rare_tokens_that_count_as_one_are_told():
    document = make_inspection(tail_samples={"share": 0.7, "of": 40_000, "seen_below_10": 0.3})
    title = "Rows with a rare token"
    assert tiles(document)[title] == "30%"
    assert notes(document)[title] == "one seen fewer than 10 times; in a sample of 40,000"
    document["dataset"]["min_count"] = 10
    assert tiles(document)[title] == "70%"
    assert "5% of a field's occurrences" in notes(document)[title]


def test_notes_and_settings_are_on_the_page():
    document = make_inspection(notes=["id is a row id.", "y looks like a label."])
    more = {"name": "clicks", "rows": 1, "min_count": 10, "numeric_rule": "log"}
    document["dataset"] |= more
    assert "id is a row id. y looks like a label." in said(document)
    text = elements(document).text
    assert "Min count10" in text
    assert "Numeric rulelog" in text


def test_tokens_seen_once_are_told():
    words = said(make_inspection(make_field("word", singletons=1900)))
    assert "Over half of the tokens were seen once in word." in words


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
    assert shown[0].startswith("f10. counted rank 1")
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
