from __future__ import annotations

import copy
import json
import math

import pytest

pytest.importorskip("vl_convert", reason='needs vl-convert: pip install "freqsgd[cli]"')

from freqsgd.errors import DataError
from freqsgd.report import write_theory
from freqsgd.report.page import render
from freqsgd.report.theory import FAR, read_theory, theory_page
from tests.report.made_up import HOSTILE, plain
from tests.report.made_up_theory import ITEMS, TOP, USERS, make_run, make_theory
from tests.report.test_page import Elements

TOKENS = USERS + ITEMS


def page_of(document):
    return theory_page(read_theory(document))


def said(document) -> str:
    """All sentences and remarks."""
    page = page_of(document)
    remarks = [remark for section in page.sections for remark in section.remarks]
    return plain(" ".join([*page.sentences, *remarks]))


def tiles(document) -> dict[str, str]:
    return {tile.title: plain(tile.value) for tile in page_of(document).tiles}


def spec_of(document, name: str):
    return next(chart.spec for chart in page_of(document).charts if chart.name == name)


def drawn(spec, run: str):
    return [row for row in spec["data"]["values"] if row["run"] == run]


def changed(document, *path, value):
    """A copy with one entry replaced."""
    found = copy.deepcopy(document)
    place = found
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return found


def test_the_folder_gets_a_page_and_pictures(tmp_path):
    document = make_theory()
    path = write_theory(document, tmp_path)
    assert path == tmp_path / "theory.html"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [
        "theory-distribution.png",
        "theory-error.png",
        "theory-improvement.png",
        "theory.html",
    ]
    assert document == make_theory() == json.loads(json.dumps(document))


def test_words_tables_and_command_are_on_the_page():
    page = Elements(render(page_of(make_theory())))
    for words in (
        "Bounds and measurements, tokens with an exponential tail (tau = 0.3)",
        "Top users are within a factor e of the first: 3 of 12, left of the line.",
        "CF-SGD's rates converge",
        "FA-SGD, by the bounds",
        "Alpha of SGD",
        "freqsgd theory --tail exponential",
        "made 2024-05-01 12:00 UTC",
    ):
        assert words in page.text
    charts = [entry for entry in page.of("div") if entry.get("class") == "chart"]
    assert [entry["data-chart"] for entry in charts] == [
        f"{name}-{side}"
        for name in ("improvement", "error", "distribution")
        for side in ("user", "item")
    ]
    assert all("FA-SGD rank 1, measured" in entry["aria-label"] for entry in charts[:4])
    assert all(entry["role"] == "img" and "rank" in entry["aria-label"] for entry in charts[4:])
    assert len([entry for entry in page.of("button") if "data-run" in entry]) == 4


def test_a_page_opens_with_at_most_five_sentences():
    failed = {"statement": "it holds", "holds": False, "detail": ""}
    page = page_of(make_theory(checks=[failed]))
    assert page.sentences[0] == "1 of the paper's statements did not hold: it holds."
    assert len(page.sentences) <= 5
    assert page.sections[0].charts


def test_charts_hold_what_was_measured_with_its_interval():
    document = make_theory()
    run = document["runs"][1]
    rows = drawn(spec_of(document, "error-item"), "FA-SGD")
    assert [row["rank"] for row in rows] == list(range(1, ITEMS + 1))
    for key, column in (("value", "measured"), ("low", "low"), ("high", "high")):
        assert [row[key] for row in rows] == run[column][USERS:]
    layers = spec_of(document, "error-item")["layer"]
    bounds = next(each for each in layers if "strokeDash" in each["mark"] and "run" in str(each))
    values = bounds["data"]["values"]
    assert [row["value"] for row in values if row["run"] == "FA-SGD"] == run["bound"][USERS:]
    assert not [row for row in values if row["run"] == "SBCD"]


def test_the_corollarys_line_is_the_root_of_its_factor_of_iterations():
    document = make_theory()
    guaranteed = document["improvements"][0]["corollary"][:USERS]
    expected = [math.sqrt(value) for value in guaranteed]
    lines = [
        [row["value"] for row in each["data"]["values"] if row.get("run") == "FA-SGD"]
        for each in spec_of(document, "improvement-user")["layer"]
        if "data" in each
    ]
    assert any(line == pytest.approx(expected) for line in lines if line)


def test_intervals_that_reach_zero_are_cut_off():
    document = make_theory()
    document["runs"][0]["low"] = [-1.0] * TOKENS
    spec = spec_of(document, "error-user")
    least = min(row["value"] for row in spec["data"]["values"])
    assert [row["low"] for row in drawn(spec, "SGD")] == [least / FAR] * USERS


@pytest.mark.parametrize(("tail", "axis"), [("exponential", None), ("polynomial", "log")])
def test_axes_make_the_tail_a_straight_line_and_mark_the_top(tail, axis):
    spec = spec_of(make_theory(tail, 2.0), "distribution-user")
    assert spec["encoding"]["x"]["scale"].get("type") == axis
    assert f'"level": {TOP + 0.5}' in json.dumps(spec["layer"])


def test_bounds_that_are_broken_are_counted():
    document = make_theory()
    assert tiles(document)["Below the bound"] == "60 of 60"
    document["runs"][1]["bound"][3] = document["runs"][1]["bound"][-1] = 1e-9
    assert tiles(document)["Below the bound"] == "58 of 60"


def test_improvement_at_the_tail_is_a_geometric_mean_beyond_the_top():
    document = make_theory()
    tail = [rank - 1 for side in (USERS, ITEMS) for rank in range(TOP + 1, side + 1)]
    mean = math.exp(0.3 * sum(tail) / len(tail))
    assert tiles(document)["FA-SGD at the tail"] == f"{mean:.1f} times"


def test_an_optimizer_that_is_worse_is_said_to_be():
    document = make_theory()
    document["improvements"][0] |= {
        "measured": [0.25] * TOKENS,
        "low": [0.2] * TOKENS,
        "high": [0.5] * TOKENS,
    }
    assert tiles(document)["FA-SGD at the tail"] == "0.25 times"


def test_uniform_sides_of_other_sizes_have_a_rate_each():
    document = make_theory("uniform", None)
    document["problem"]["corollary"] = {"applies": False, "reason": "|U| = 12 is not |V| = 8"}
    assert "The corollary does not apply: |U| = 12 is not |V| = 8." in said(document)


def test_a_corollary_that_does_not_apply_says_why():
    found = {"applies": False, "reason": "nu = 1.5 is below 2"}
    document = changed(make_theory(), "problem", "corollary", value=found)
    for entry in document["improvements"]:
        entry["corollary"] = None
    assert "The corollary does not apply: nu = 1.5 is below 2." in said(document)
    assert "Dotted: what the corollary" not in Elements(render(page_of(document))).text


def test_a_uniform_distribution_has_nothing_to_gain_and_no_tail():
    document = make_theory("uniform", None)
    words = said(document)
    assert "All tokens are equally frequent: FA-SGD is SGD, and gains nothing." in words
    assert "a uniform distribution" in page_of(document).title


def test_what_did_not_come_out_is_said_and_counted():
    failed = {"statement": "top tokens lose at most 1.8 times", "holds": False, "detail": "2.5."}
    document = make_theory(checks=[*make_theory()["checks"], failed])
    words = "1 of the paper's statements did not hold: top tokens lose at most 1.8 times."
    assert words in said(document)
    assert tiles(document)["Statements"] == "2 of 3"
    assert "did not hold" not in said(make_theory())


def test_repetitions_that_left_the_ball_are_told():
    document = make_theory()
    document["runs"][2]["invalid"] = 7
    assert "ball in which L holds: 7 of 100 repetitions of CF-SGD." in said(document)


def test_the_iterate_that_is_measured_is_told():
    last = changed(make_theory(), "problem", "output", value="last")
    assert "the last iterate" not in said(make_theory())
    assert "the last iterate" in said(last)
    notes = [render(page_of(each)).count("second half") for each in (make_theory(), last)]
    assert notes == [2, 0]


def only(document, **kept):
    return {**document, "runs": [], "improvements": [], "checks": [], **kept}


@pytest.mark.parametrize(
    "document",
    [
        only(make_theory()),
        only(make_theory(), runs=[make_run("sgd", [1.0] * TOKENS)]),
        make_theory("uniform", None),
        changed(make_theory(), "runs", 0, "measured", value=[0.0] * TOKENS),
    ],
    ids=["bare", "one", "uniform", "zero"],
)
def test_any_document_of_the_schema_makes_a_page_and_pictures(document, tmp_path):
    page = Elements(write_theory(document, tmp_path).read_text())
    assert len(page.of("h1")) == 1
    assert "None" not in page.text
    assert "nan" not in page.text


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"schema": 1, "kind": "inspection"}, "freqsgd theory"),
        ({"schema": 2, "kind": "theory"}, "schema"),
        (make_theory(tokens={"side": ["bus"], "rank": [1]}), "'bus' .*tokens.side"),
        (changed(make_theory(), "tokens", "rank", value=[]), 'tokens: "rank" must have'),
        (changed(make_theory(), "runs", 0, "measured", value=[math.nan] * TOKENS), "measured"),
        (make_theory(runs=[make_run("sgd", [1.0])]), 'run of sgd: "steps" .* each of 20 tokens'),
        (make_theory(checks=None), "checks"),
    ],
)
def test_what_cannot_be_read_is_refused_and_nothing_is_written(document, words, tmp_path):
    with pytest.raises(DataError, match=words):
        write_theory(document, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_strings_from_outside_stay_text():
    document = make_theory(
        command=HOSTILE,
        created=HOSTILE,
        checks=[{"statement": HOSTILE, "holds": False, "detail": HOSTILE}],
    )
    document["runs"][0]["optimizer"] = document["improvements"][0]["optimizer"] = HOSTILE
    document["problem"]["output"] = document["problem"]["tail"] = HOSTILE
    page = Elements(render(page_of(document)))
    assert not page.of("img")
    assert len(page.of("script")) == 3
    assert HOSTILE in page.text
