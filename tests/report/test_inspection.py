from __future__ import annotations

import json
import math

import pytest

pytest.importorskip("plotly", reason='needs plotly: pip install "freqsgd[cli]"')
pytest.importorskip("matplotlib", reason='needs matplotlib: pip install "freqsgd[cli]"')

from freqsgd.data import DataError
from freqsgd.report import write_inspection
from freqsgd.report.inspection import read_inspection
from freqsgd.report.inspection_figures import memory, promises, rank_counts
from freqsgd.report.inspection_sections import MOST_CHARTS, inspection_panels, render_inspection
from freqsgd.report.inspection_words import headline, percent, summarize
from freqsgd.report.log_axis import log_axis
from freqsgd.report.picture_known import check_known
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
    return {each.topic: plain(each.text) for each in summarize(read_inspection(document))}


def tiles(document) -> dict[str, str]:
    return {tile.title: plain(tile.value) for tile in headline(read_inspection(document))}


def page_of(document) -> Elements:
    return Elements(render_inspection(read_inspection(document)))


def charts_of(page: Elements) -> list[dict[str, str | None]]:
    return [entry for entry in page.of("div") if entry.get("class") == "chart"]


def test_the_folder_gets_a_page_and_pictures(tmp_path):
    path = write_inspection(make_inspection(), tmp_path)
    assert path == tmp_path / "inspect.html"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [
        "inspect-memory.png",
        "inspect-promise.png",
        "inspect-ranks.png",
        "inspect.html",
    ]


def test_words_tables_and_command_are_on_the_page():
    page = page_of(make_inspection())
    for words in (
        "Token frequencies of movielens-1m",
        "movielens-1m has 100,000 rows, 2 fields and 2,800 tokens.",
        "the most frequent 1% of 2,000 tokens have 45% of all occurrences",
        "A polynomial tail is nearer in user and movie (nu 1.02).",
        "9.7% of 100,000 rows have a token of a tail",
        "CF-SGD 11.2 kB, Row-wise Adagrad 22.4 kB, Adagrad 728 kB and Adam 1.46 MB",
        "For CF-SGD try 0.5 to 2 (a rule).",
        "Polynomial tail, nu = 1.02 from rank 5 on.",
        "7 (5,000), 42 (2,500)",
        "freqsgd inspect --dataset movielens-1m --out looked",
    ):
        assert words in page.text
    charts = charts_of(page)
    assert [entry["data-figure"] for entry in charts] == ["ranks-0", "ranks-1", "promise", "memory"]
    assert all(entry["role"] == "img" and len(entry["aria-label"]) > 40 for entry in charts)


def test_counts_and_both_fits_are_drawn_where_they_were_fitted():
    field = read_inspection(make_inspection()).fields[0]
    counted, exponential, polynomial = rank_counts(field, 300).data
    assert list(zip(counted.x, counted.y, strict=True)) == list(field.ranks)
    for trace, expected in (
        (exponential, lambda n: 300 * math.exp(-0.004 * (n - 5))),
        (polynomial, lambda n: 1000 * (n / 5) ** -1.02),
    ):
        assert trace.x[0] == 5
        assert list(trace.y) == pytest.approx([expected(n) for n in trace.x])


def test_a_fit_is_drawn_only_where_the_axis_shows_it():
    fit = {**make_field()["fit"], "tau": 50.0}
    figure = rank_counts(read_inspection(make_inspection(make_field(fit=fit))).fields[0], 300)
    bottom = 10 ** figure.layout.yaxis.range[0]
    assert all(y >= bottom for trace in figure.data for y in trace.y)
    assert len(figure.data[1].x) == 1


def test_fields_without_a_fit_and_with_one_token_have_charts_too():
    field = read_inspection(make_inspection(ONE_TOKEN)).fields[0]
    figure = rank_counts(field, 300)
    assert [trace.name for trace in figure.data] == ["counted"]
    assert figure.data[0].mode == "markers"
    low, high = figure.layout.yaxis.range
    assert low < math.log10(ROWS) < high


def test_promises_are_drawn_by_field_below_those_of_all():
    document = make_inspection(make_field("a", promise=make_promise(2, 4)), make_field("b"))
    inspection = read_inspection(document)
    median, rare = promises(inspection, inspection.fields).data
    assert list(median.x) == [3, 2, 3]
    assert list(rare.x) == [5, 4, 5]
    assert list(promises(inspection, inspection.fields).layout.yaxis.ticktext)[1:] == ["a", "b"]


def test_memory_is_drawn_in_the_colours_of_the_optimizers():
    figure = memory(read_inspection(make_inspection()))
    assert [trace.x[0] for trace in figure.data] == [11_200, 22_400, 728_000, 1_456_000]
    assert figure.data[0].marker.color == "#d55e00"
    assert memory(read_inspection(make_inspection(memory={}))) is None


def test_the_least_even_field_is_the_one_that_is_told():
    uneven = make_field("item", 2000, effective_tokens=10.0, top_10=0.95)
    document = make_inspection(make_field("user"), uneven, ONE_TOKEN)
    assert said(document)["Imbalance"].startswith("In item, the least even field,")
    assert tiles(document)["The most frequent 10% of tokens have"] == "95%"


def test_one_token_is_nothing_to_be_unequal():
    words = said(make_inspection(ONE_TOKEN))
    assert words["Imbalance"] == (
        "No field has more than one token: there is nothing to be unequal."
    )
    assert words["Tails"] == "Neither in constant: one token."
    assert words["Corollary"].startswith(
        "The corollary does not apply: no tail was fitted: one token."
    )
    assert "Constant has one token only" in words["Read with care"]


def test_promises_are_told_both_ways_and_also_where_there_is_none():
    words = said(make_inspection())["Promise"]
    assert "at the median token of all fields, seen 5 times, 3.0 times less error" in words
    assert "or 9.0 times fewer iterations to an equal error" in words
    worse = make_inspection(promise=make_promise(0.5, 1.0))
    words = said(worse)["Promise"]
    assert "2.0 times more error" in words
    assert "as much error" in words
    assert "Promise" not in said(make_inspection(promise=None))


def test_corollaries_that_apply_and_do_not_are_told_apart():
    applies = make_field("a", corollary={"applies": True, "reason": None, "top": 3})
    assert said(make_inspection(applies))["Corollary"] == (
        "The conditions of the corollary for the nearer tail hold in a."
    )
    words = said(make_inspection(applies, make_field("b")))["Corollary"]
    assert "hold in a. They do not in b: nu = 1.02 is below 2." in words


def test_tails_of_many_fields_are_counted_and_their_rates_spanned():
    fields = [
        make_field(f"f{place}", fit={**make_field()["fit"], "nu": 1 + place / 10})
        for place in range(9)
    ]
    fields.append(make_field("none", fit=no_fit("all tokens occur once", 9)))
    words = said(make_inspection(*fields))["Tails"]
    assert words == (
        "A polynomial tail is nearer in 9 fields (nu 1 to 1.8). "
        "Neither in none: all tokens occur once."
    )


def test_tokens_seen_once_and_missing_rates_are_told():
    words = said(
        make_inspection(make_field("word", singletons=1900), lr=None, lr_reason="text has defaults")
    )
    assert "Over half of the tokens of word were seen once" in words["Read with care"]
    assert words["Learning rate"] == "No range is suggested: text has defaults."


def test_shares_that_are_not_zero_do_not_look_like_it():
    assert [percent(share) for share in (0, 0.00002, 0.004, 0.0973, 1)] == [
        "0%",
        "0.002%",
        "0.4%",
        "9.7%",
        "100%",
    ]


def test_many_fields_get_small_charts_and_very_many_only_the_largest():
    few = render_inspection(read_inspection(make_inspection()))
    many = make_inspection(*(make_field(f"f{place}", 10 + place) for place in range(70)))
    page = render_inspection(read_inspection(many))
    assert 'class="charts small"' in page
    assert 'class="charts small"' not in few
    shown = [entry["aria-label"] for entry in charts_of(Elements(page))][:-2]
    assert len(shown) == MOST_CHARTS
    assert "in f10:" in shown[0]
    assert "the 60 fields with most tokens" in Elements(page).text


@pytest.mark.parametrize("values", [[5.0], [1, 1.5], [20_000, 41_000], [1, 60], [1e-9, 1e6]])
def test_logarithmic_axes_hold_their_values_and_have_ticks(values):
    axis = log_axis(values)
    low, high = axis["range"]
    assert low < math.log10(min(values)) <= math.log10(max(values)) < high
    if "tickvals" in axis:
        assert len(axis["tickvals"]) >= 2
        assert all(10**low <= tick <= 10**high for tick in axis["tickvals"])


@pytest.mark.parametrize(
    "document",
    [
        make_inspection(ONE_TOKEN),
        make_inspection(make_field(fit=no_fit("all counts are equal", 2000))),
        make_inspection(*(make_field(f"f{place}") for place in range(8))),
        make_inspection(memory=None, promise=None, lr=None, tail_samples=None, dim=None),
        make_inspection(dataset=None, command=None, created=None),
        make_inspection({"tokens": 2, "occurrences": 3, "ranks": [[1, 2], [2, 1]]}),
        make_inspection(memory={"weights": 0, "cfsgd": 0, "adam": 0}),
    ],
    ids=["token", "no fit", "eight", "without", "nameless", "least", "no memory"],
)
def test_any_document_of_the_schema_makes_a_page_and_pictures(document):
    read = read_inspection(document)
    for panels in inspection_panels(read).values():
        for panel in panels:
            check_known(panel.figure.to_plotly_json())
    page = Elements(render_inspection(read))
    assert len(page.of("h1")) == 1
    assert "None" not in page.text
    assert "nan" not in page.text


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"schema": 1, "kind": "theory"}, "freqsgd inspect"),
        ({"schema": 7, "kind": "inspection"}, "schema"),
        (make_inspection(fields=[]), "nothing to report"),
        (make_inspection(fields=[{"name": "a"}]), '"fields" item 0'),
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
        field, dataset={"name": HOSTILE}, command=HOSTILE, created=HOSTILE, lr={"reason": HOSTILE}
    )
    page = page_of(document)
    assert not page.of("img")
    assert len(page.of("script")) == 3
    assert page.text.count(HOSTILE) >= 6
    inspection = read_inspection(document)
    assert "<script>" not in str(promises(inspection, inspection.fields).layout.yaxis.ticktext)


def test_documents_are_left_as_they_were(tmp_path):
    document = make_inspection()
    write_inspection(document, tmp_path)
    assert document == make_inspection() == json.loads(json.dumps(document))
