from __future__ import annotations

import copy
import json
import math

import pytest

pytest.importorskip("plotly", reason='needs plotly: pip install "freqsgd[cli]"')
pytest.importorskip("matplotlib", reason='needs matplotlib: pip install "freqsgd[cli]"')

from freqsgd.errors import DataError
from freqsgd.report.old import write_theory
from freqsgd.report.old.picture_known import check_known
from freqsgd.report.old.theory import read_theory
from freqsgd.report.old.theory_figures import distribution, error, improvement
from freqsgd.report.old.theory_sections import render_theory, theory_pictures
from freqsgd.report.old.theory_words import headline, summarize
from tests.report.made_up import HOSTILE, plain
from tests.report.made_up_theory import ITEMS, TOP, USERS, make_run, make_theory
from tests.report.test_page import Elements

TOKENS = USERS + ITEMS


def said(document) -> dict[str, str]:
    return {each.topic: plain(each.text) for each in summarize(read_theory(document))}


def tiles(document) -> dict[str, str]:
    return {tile.title: plain(tile.value) for tile in headline(read_theory(document))}


def changed(document, *path, value):
    """A copy with one entry replaced."""
    found = copy.deepcopy(document)
    place = found
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return found


def test_the_folder_gets_a_page_and_pictures(tmp_path):
    path = write_theory(make_theory(), tmp_path)
    assert path == tmp_path / "theory.html"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [
        "theory-distribution.png",
        "theory-error.png",
        "theory-improvement.png",
        "theory.html",
    ]


def test_words_tables_and_command_are_on_the_page():
    page = Elements(render_theory(read_theory(make_theory())))
    for words in (
        "Bounds and measurements, tokens with an exponential tail (tau = 0.3)",
        "Top users are within a factor e of the first: 3 of 12.",
        "CF-SGD's rates converge",
        "20 tokens",
        "SGD / FA-SGD, measured",
        "alpha of SGD",
        "freqsgd theory --tail exponential",
        "made 2024-05-01 12:00 UTC",
    ):
        assert words in page.text
    charts = [entry for entry in page.of("div") if entry.get("class") == "chart"]
    assert [entry["data-figure"] for entry in charts] == [
        f"{name}-{side}"
        for name in ("distribution", "error", "improvement")
        for side in ("user", "item")
    ]
    assert all(entry["role"] == "img" and "rank" in entry["aria-label"] for entry in charts[:2])
    assert all("FA-SGD measured" in entry["aria-label"] for entry in charts[2:])


def test_the_legend_lists_optimizers_only_and_comes_before_their_charts():
    page = render_theory(read_theory(make_theory()))
    buttons = [entry for entry in Elements(page).of("button") if "data-run" in entry]
    assert len(buttons) == 4
    assert page.index("distribution-user") < page.index('class="legend"') < page.index("error-user")


def test_figures_hold_what_was_measured_with_its_interval():
    document = make_theory()
    figure = error(read_theory(document), "item")
    by_name = {trace.name: trace for trace in figure.data}
    run = document["runs"][1]
    trace = by_name["FA-SGD, measured"]
    assert list(trace.x) == list(range(1, ITEMS + 1))
    assert list(trace.y) == run["measured"][USERS:]
    for place, (y, more, less) in enumerate(
        zip(trace.y, trace.error_y.array, trace.error_y.arrayminus, strict=True), start=USERS
    ):
        assert y + more == pytest.approx(run["high"][place])
        assert y - less == pytest.approx(run["low"][place])
    assert list(by_name["FA-SGD, bound"].y) == run["bound"][USERS:]
    assert "SBCD, bound" not in by_name


def test_the_corollarys_line_is_the_root_of_its_factor_of_iterations():
    document = make_theory()
    figure = improvement(read_theory(document), "user")
    line = next(trace for trace in figure.data if trace.name == "FA-SGD, corollary")
    guaranteed = document["improvements"][0]["corollary"][:USERS]
    assert list(line.y) == pytest.approx([math.sqrt(value) for value in guaranteed])


def test_intervals_that_reach_zero_end_at_the_bottom_of_the_axis():
    document = make_theory()
    document["runs"][0]["low"] = [-1.0] * TOKENS
    figure = error(read_theory(document), "user")
    bottom = 10 ** figure.layout.yaxis.range[0]
    trace = next(trace for trace in figure.data if trace.name == "SGD, measured")
    ends = [y - less for y, less in zip(trace.y, trace.error_y.arrayminus, strict=True)]
    assert ends == pytest.approx([bottom] * USERS)


@pytest.mark.parametrize(("tail", "axis"), [("exponential", None), ("polynomial", "log")])
def test_axes_make_the_tail_a_straight_line_and_mark_the_top(tail, axis):
    figure = distribution(read_theory(make_theory(tail, 2.0)), "user")
    assert figure.layout.xaxis.type == axis
    assert figure.layout.shapes[0].x0 == TOP + 0.5
    assert figure.layout.annotations[0].x == (math.log10(TOP + 0.5) if axis == "log" else TOP + 0.5)


def test_bounds_that_hold_are_told():
    words = said(make_theory())["Bounds"]
    assert words.startswith(
        "The mean squared gradient of every token stays below the bound for SGD, FA-SGD and CF-SGD."
    )
    assert "SGD 200 times" in words
    assert "SBCD has no bound here." in words
    assert tiles(make_theory())["Below the bound"] == "60 of 60"


def test_a_bound_that_is_broken_is_told_with_its_tokens():
    document = make_theory()
    document["runs"][1]["bound"][3] = document["runs"][1]["bound"][-1] = 1e-9
    words = said(document)["Bounds"]
    assert "stays below the bound for SGD and CF-SGD." in words
    assert "FA-SGD is above its bound at 2 of 20 tokens: user 4 and item 8." in words
    assert tiles(document)["Below the bound"] == "58 of 60"


def test_improvement_at_the_tail_is_a_geometric_mean_beyond_the_top():
    document = make_theory()
    tail = [rank - 1 for side in (USERS, ITEMS) for rank in range(TOP + 1, side + 1)]
    mean = math.exp(0.3 * sum(tail) / len(tail))
    words = said(document)["Tail tokens"]
    assert f"FA-SGD's error is {mean:.1f} times smaller than SGD's" in words
    assert "at user 12, the rarest, 27 times smaller" in words
    assert "the bounds say 5.2 times, or 27 times fewer iterations" in words
    assert tiles(document)["FA-SGD at the tail"] == f"{mean:.1f} times"


def test_an_optimizer_that_is_worse_is_said_to_be():
    document = make_theory()
    document["improvements"][0] |= {
        "measured": [0.25] * TOKENS,
        "low": [0.2] * TOKENS,
        "high": [0.5] * TOKENS,
    }
    words = said(document)
    assert "the rarest, 4.0 times larger than SGD's (2 to 5)" in words["Tail tokens"]
    assert "FA-SGD's error is 4.0 times larger than SGD's" in words["Tail tokens"]
    assert "SGD's error over FA-SGD's is 0.25 at the 6 top tokens" in words["Top tokens"]
    assert tiles(document)["FA-SGD at the tail"] == "0.25 times"


@pytest.mark.parametrize(
    ("slope", "words"),
    [
        ((0.29, 0.27, 0.31, 0.15), "the more is gained. The bounds predict 0.15: what was measured "
         "is more."),
        ((0.14, 0.10, 0.18, 0.15), "the more is gained. The bounds predict 0.15, which is within"),
        ((0.02, -0.10, 0.14, 0.15), "not told apart from no slope. The bounds predict 0.15: what "
         "was measured is less."),
        ((-0.2, -0.3, -0.1, 0.15), "falls by 0.2 per rank (95% interval -0.3 to -0.1, over 14 "
         "tokens): the rarer the token, the less is gained."),
    ],
)  # fmt: skip
def test_slopes_are_told_beside_their_prediction(slope, words):
    names = ("measured", "low", "high", "predicted")
    found = {**dict(zip(names, slope, strict=True)), "axis": "rank", "tokens": 14, "begun": 14}
    document = make_theory()
    document["improvements"][0]["slope"] = found
    assert words in said(document)["Along the tail"]


@pytest.mark.parametrize(("begun", "words"), [(14, None), (5, "SGD has begun to learn 5 of these")])
def test_that_few_tokens_were_learned_is_said_once(begun, words):
    document = make_theory()
    for entry in document["improvements"]:
        entry["slope"]["begun"] = begun
    told = said(document)["Along the tail"]
    assert told.count("the improvement cannot grow there") == (words is not None)
    assert words is None or words in told


def test_uniform_sides_of_other_sizes_have_a_rate_each():
    document = make_theory("uniform", None)
    document["problem"]["corollary"] = {"applies": False, "reason": "|U| = 12 is not |V| = 8"}
    assert said(document)["Corollary"] == (
        "The corollary does not apply: |U| = 12 is not |V| = 8. "
        "FA-SGD is SGD with one rate for users and one for items."
    )


def test_a_corollary_that_does_not_apply_says_why():
    document = changed(
        make_theory(),
        "problem",
        "corollary",
        value={"applies": False, "reason": "nu = 1.5 is below 2"},
    )
    for entry in document["improvements"]:
        entry["corollary"] = None
    assert said(document)["Corollary"] == "The corollary does not apply: nu = 1.5 is below 2."
    assert "Dotted: what the corollary" not in Elements(render_theory(read_theory(document))).text


def test_a_uniform_distribution_has_nothing_to_gain_and_no_tail():
    words = said(make_theory("uniform", None))
    assert (
        words["Corollary"] == "All tokens are equally frequent: FA-SGD is SGD, and gains nothing."
    )
    assert {"Tail tokens", "Along the tail"}.isdisjoint(words)
    assert "a uniform distribution" in words["Simulated"]


def test_what_did_not_come_out_is_said_and_counted():
    failed = {"statement": "top tokens lose at most 1.8 times", "holds": False, "detail": "2.5."}
    document = make_theory(checks=[*make_theory()["checks"], failed])
    assert said(document)["Did not come out"] == "Top tokens lose at most 1.8 times: 2.5."
    assert tiles(document)["Statements"] == "2 of 3"
    assert "Did not come out" not in said(make_theory())


def test_repetitions_that_left_the_ball_are_told():
    document = make_theory()
    document["runs"][2]["invalid"] = 7
    assert "Seven of 100 repetitions of CF-SGD left the ball" in said(document)["Read with care"]


def test_the_iterate_that_is_measured_is_told():
    assert "drawn at random" in said(make_theory())["Simulated"]
    last = changed(make_theory(), "problem", "output", value="last")
    assert "the last iterate" in said(last)["Simulated"]
    notes = [
        Elements(render_theory(read_theory(each))).text.count("second half")
        for each in (make_theory(), last)
    ]
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
def test_any_document_of_the_schema_makes_a_page_and_pictures(document):
    read = read_theory(document)
    for picture in theory_pictures(read).values():
        for panel in picture.panels:
            check_known(panel.figure.to_plotly_json())
    page = Elements(render_theory(read))
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
    document["problem"]["output"] = HOSTILE
    for draw in (error, improvement):
        for trace in draw(read_theory(document), "user").data:
            assert "<script>" not in trace.name + trace.hovertemplate
    page = Elements(render_theory(read_theory(document)))
    assert not page.of("img")
    assert len(page.of("script")) == 3
    assert HOSTILE in page.text


def test_documents_are_left_as_they_were(tmp_path):
    document = make_theory()
    write_theory(document, tmp_path)
    assert document == make_theory() == json.loads(json.dumps(document))
