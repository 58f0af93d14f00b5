"""What a report tells of runs that see every example once."""

from __future__ import annotations

import statistics
from typing import Any

import pytest

pytest.importorskip("plotly", reason='needs plotly: pip install "freqsgd[cli]"')

from freqsgd.errors import DataError
from freqsgd.report.old import one_pass_figures as figures
from freqsgd.report.old.one_pass import read_one_pass
from freqsgd.report.old.one_pass_sections import one_pass_sections
from freqsgd.report.old.one_pass_words import MINUS, one_pass_tiles, one_pass_words
from freqsgd.report.old.style import styles
from tests.report.made_up import HOSTILE, plain
from tests.report.made_up_one_pass import make_one_pass, make_streamed, make_window
from tests.report.old.test_page import elements


def charts(results: dict[str, Any]) -> dict[str, Any]:
    return {
        chart.name: chart
        for section in one_pass_sections(read_one_pass(results))
        for chart in section.charts
    }


def words(results: dict[str, Any]) -> dict[str, str]:
    return {each.topic: plain(each.text) for each in one_pass_words(read_one_pass(results))}


def tiles(results: dict[str, Any]) -> dict[str, tuple[str, str]]:
    found = one_pass_tiles(read_one_pass(results))
    return {tile.title: (plain(tile.value), plain(tile.note)) for tile in found}


def scored(**nes: float | None) -> dict[str, Any]:
    """Results of runs with these evaluation NEs."""
    return make_one_pass(
        *(make_streamed(name.replace("_", "-"), test_ne=ne) for name, ne in nes.items())
    )


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("window-ne", "ne"),
        ("lifetime-ne", "lifetime_ne"),
        ("calibration", "calibration"),
        ("auc", "auc"),
    ],
)
def test_lines_hold_every_number_of_every_window(name, key):
    results = make_one_pass()
    traces = charts(results)[name].figure.data
    for place, (trace, run) in enumerate(zip(traces, results["runs"], strict=True)):
        assert trace.meta["run"] == place
        assert list(trace.x) == [window["examples"] for window in run["windows"]]
        assert list(trace.y) == [window[key] for window in run["windows"]]
        seconds = [[window["examples"], window["seconds"]] for window in run["windows"]]
        assert [list(pair) for pair in trace.customdata] == seconds


def test_differences_are_of_the_same_examples_in_percent_of_adagrads():
    results = make_one_pass(*map(make_streamed, ("sgd", "adagrad", "cfsgd")))
    sgd, adagrad, cfsgd = results["runs"]
    del sgd["windows"][4], adagrad["windows"][7]
    cfsgd["windows"][2]["ne"] = None
    base = {window["examples"]: window["ne"] for window in adagrad["windows"]}
    traces = charts(results)["difference"].figure.data
    assert [trace.meta["run"] for trace in traces] == [0, 2]
    for trace, run in zip(traces, (sgd, cfsgd), strict=True):
        expected = {
            window["examples"]: 100 * (window["ne"] / base[window["examples"]] - 1)
            for window in run["windows"]
            if window["ne"] is not None and window["examples"] in base
        }
        assert list(trace.x) == list(expected)
        assert list(trace.y) == pytest.approx(list(expected.values()))
        assert len(expected) == 16


def test_the_axis_shows_the_settled_part_and_says_what_it_cuts_off():
    chart = charts(make_one_pass())["window-ne"]
    low, high = chart.figure.layout.yaxis.range
    settled = [
        window["ne"]
        for run in make_one_pass()["runs"]
        for window in run["windows"]
        if window["examples"] > 0.2 * 1_800_000
    ]
    assert low < min(settled) < max(settled) < high
    assert max(chart.figure.data[0].y) > high
    assert f"What lies above {high:.5f} is not shown" in chart.note
    for trace in chart.figure.data:
        assert low < trace.meta["span"][0] <= trace.meta["span"][1] < high


def test_the_best_possible_is_a_level_or_words_where_it_would_flatten_the_lines():
    near = charts(make_one_pass())["lifetime-ne"]
    assert [shape.y0 for shape in near.figure.layout.shapes] == [0.805]
    far = charts(make_one_pass(best_possible={"train_ne": 0.3}))["lifetime-ne"]
    assert not far.figure.layout.shapes
    assert "best possible level, 0.30000, is off the axis" in far.note
    none = charts(make_one_pass(best_possible=None))["lifetime-ne"]
    assert not none.figure.layout.shapes
    assert "best possible" not in none.note


def test_rates_are_drawn_by_optimizer_with_the_chosen_one_marked():
    results = make_one_pass(*map(make_streamed, ("cfsgd", "adagrad")))
    results["runs"][1]["search"][4] |= {"train_ne": None, "error": "the loss is nan"}
    chart = charts(results)["rates"]
    for trace, run in zip(chart.figure.data, results["runs"], strict=True):
        tried = [entry for entry in run["search"] if entry["error"] is None]
        assert list(trace.x) == [entry["lr"] for entry in tried]
        assert list(trace.y) == [entry["train_ne"] for entry in tried]
        chosen = [lr for lr, size in zip(trace.x, trace.marker.size, strict=True) if size > 6]
        assert chosen == [run["lr"]]
    assert chart.figure.layout.xaxis.type == "log"
    assert "the loss is nan" in chart.data
    for told in (chart.note, words(results)["Learning rates"]):
        assert "Diverged: Adagrad at 0.2." in told


def test_lines_of_fewer_than_three_windows_are_not_drawn(tmp_path):
    over_the_run = {"window-ne", "lifetime-ne", "difference", "calibration", "auc"}
    results = make_one_pass(*map(make_streamed, ("cfsgd", "adagrad")))
    for run in results["runs"]:
        run["windows"] = run["windows"][:2]
    assert not over_the_run & charts(results).keys()
    text = elements(results, tmp_path).text
    assert "With 2 windows there are no lines" in text
    assert "a smaller --window gives more" in text
    results["runs"][0]["windows"] = make_streamed("cfsgd")["windows"][:3]
    assert over_the_run <= charts(results).keys()
    assert "no lines of NE" not in elements(results, tmp_path).text


def test_rates_at_the_end_of_the_grid_are_told_and_evaluation_plays_no_part():
    runs = [make_streamed("cfsgd", search_edge=True, lr=2.0), make_streamed("adagrad")]
    assert words(make_one_pass(*runs))["Learning rates"] == (
        "Each optimizer at the best of five rates: the one of lowest NE while training; the "
        "evaluation examples play no part. The best lies at the end of what was tried, so that a "
        "better one may lie beyond: CF-SGD (the largest, 2)."
    )
    runs[1]["search"] = []
    assert words(make_one_pass(*runs))["Learning rates"].startswith("CF-SGD at the best of five")


@pytest.mark.parametrize(
    ("nes", "first", "against"),
    [
        (
            {"cfsgd": 0.81, "adagrad": 0.9},
            "CF-SGD has the lowest, 0.81000; then Adagrad 0.90000.",
            "The evaluation NE against that of Adagrad: CF-SGD 10.000% lower.",
        ),
        (
            {"cfsgd": 0.9018, "adagrad": 0.9, "sgd": 0.99},
            "Adagrad has the lowest, 0.90000; then CF-SGD 0.90180 and SGD 0.99000.",
            "The evaluation NE against that of Adagrad: CF-SGD 0.200% higher and "
            "SGD 10.000% higher.",
        ),
        (
            {"cfsgd": 0.9, "adagrad": 0.9},
            "CF-SGD and Adagrad share the lowest, 0.90000.",
            "The evaluation NE against that of Adagrad: CF-SGD the same.",
        ),
        (
            {"cfsgd": 0.8999999, "adagrad": 0.9},
            "CF-SGD has the lowest, 0.90000; then Adagrad 0.90000.",
            "The evaluation NE against that of Adagrad: CF-SGD less than 0.001% lower.",
        ),
        (
            {"cfsgd": 0.8, "sgd": 0.84},
            "CF-SGD has the lowest, 0.80000; then SGD 0.84000.",
            "Adagrad is not among the runs, so differences are against CF-SGD. "
            "The evaluation NE against that of CF-SGD: SGD 5.000% higher.",
        ),
        (
            {"sgd": 0.84, "cfsgd": 0.8, "adagrad": None},
            "CF-SGD has the lowest, 0.80000; then SGD 0.84000.",
            "Adagrad has no NE, so differences are against SGD. "
            "The evaluation NE against that of SGD: CF-SGD 4.762% lower.",
        ),
        ({"cfsgd": 0.8, "adagrad": None}, "CF-SGD has the lowest, 0.80000, and no other", None),
        ({"cfsgd": 0.8}, "CF-SGD scores 0.80000.", None),
    ],
)
def test_who_is_best_and_by_how_much(nes, first, against):
    told = words(scored(**nes))
    assert told["Evaluation NE"].startswith(first)
    found = [text for topic, text in told.items() if topic.startswith("Against")]
    assert found == ([] if against is None else [against])


def test_windows_below_the_baseline_are_counted():
    results = make_one_pass(*map(make_streamed, ("cfsgd", "adagrad")))
    mine, theirs = ([window["ne"] for window in run["windows"]] for run in results["runs"])
    mine[:3] = [2 * ne for ne in theirs[:3]]
    for window, ne in zip(results["runs"][0]["windows"], mine, strict=True):
        window["ne"] = ne
    apart = [100 * (one - other) / other for one, other in zip(mine, theirs, strict=True)]
    assert words(results)["Over the run"] == (
        "NE below that of Adagrad on the same examples: CF-SGD in 15 of 18 windows "
        f"(median difference {MINUS}{-statistics.median(apart):.3f}%, "
        f"in the last quarter {MINUS}{-statistics.median(apart[13:]):.3f}%)."
    )


def test_what_was_streamed_and_what_it_took():
    told = words(make_one_pass())
    assert told["Streamed"] == (
        "Four optimizers trained FM (16 dimensions) in one pass over clicks-small: SGD, CF-SGD, "
        "Adagrad and Row-wise Adagrad. Of a stream of 10 days, 1,800,000 examples were learned "
        "once, in batches of 65,536, each batch scored before it was learned; 200,000 at the end "
        "were kept for evaluation. An example has 26 features; their tables have 1,000,026 rows."
    )
    assert told["Memory"] == (
        "Beside 68.0 MB of weights an optimizer keeps: SGD none, CF-SGD 4.00 MB, Adagrad 68.0 MB "
        "and Row-wise Adagrad 4.00 MB. At its peak the whole process took 812 MB."
    )
    assert "CF-SGD 1,111,111" in told["Speed"]
    train_ne = make_streamed("adagrad")["train_ne"]
    assert f"Adagrad {train_ne:.5f}" in told["While training"]
    assert told["Best possible"] == (
        "Clicks were drawn from known probabilities, whose own evaluation NE is 0.80100. "
        f"That of CF-SGD is {100 * (0.8111 / 0.801 - 1):.3f}% higher."
    )


def test_tiles_say_the_difference_the_state_and_the_speed():
    assert tiles(make_one_pass()) == {
        "Lowest evaluation NE": ("0.81110", "CF-SGD; then Adagrad with 0.81170"),
        "CF-SGD against Adagrad, evaluation NE": (
            f"{MINUS}0.074%",
            "0.81110 against 0.81170; below 0 is better",
        ),
        "Optimizer state of CF-SGD": ("4.00 MB", "17 times less: Adagrad keeps 68.0 MB"),
        "Examples/s of CF-SGD": ("1,111,111", "1,800,000 in all; reading included"),
    }


def test_without_evaluation_runs_are_compared_by_how_they_trained():
    none = dict.fromkeys(("test_ne", "test_auc", "test_calibration", "test_rows"))
    runs = [make_streamed(name, **none) for name in ("cfsgd", "adagrad")]
    results = make_one_pass(*runs, splits={"train": 1_800_000, "test": None})
    told = words(results)
    mine, theirs = (run["train_ne"] for run in runs)
    assert told["NE while training"].startswith(f"CF-SGD has the lowest, {mine:.5f}; then")
    assert f"CF-SGD {100 * (1 - mine / theirs):.3f}% lower" in told["Against Adagrad"]
    assert "evaluation" not in told["Streamed"]


def test_a_run_cut_short_has_no_ne_to_compare(tmp_path):
    short = make_streamed(
        "sgd",
        stopped="diverged",
        error="the loss is nan at lr 40",
        train_ne=0.1,
        test_ne=None,
        examples=100_000,
        windows=[make_window("sgd", 1)],
    )
    results = make_one_pass(short, make_streamed("cfsgd"), make_streamed("adagrad"))
    told = words(results)
    assert told["Read with care"].startswith(
        "SGD diverged after 100,000 examples: the loss is nan at lr 40."
    )
    assert "0.10000" not in elements(results, tmp_path).text


def test_files_and_rows_left_out_are_on_the_page(tmp_path):
    run = make_streamed("cfsgd", dropped=1_234, skipped=["day-3/b.parquet: cut off at byte 12"])
    page = elements(make_one_pass(run), tmp_path)
    for told in ("Malformed rows left out: 1,234.", "day-3/b.parquet: cut off at byte 12"):
        assert told in page.text


def test_the_page_has_its_tables_and_every_chart_is_described(tmp_path):
    page = elements(make_one_pass(), tmp_path)
    shown = [entry for entry in page.of("div") if entry.get("class") == "chart"]
    names = ["window-ne", "lifetime-ne", "difference", "rates", "calibration", "auc", "state"]
    assert [entry["data-figure"] for entry in shown] == names
    assert all("CF-SGD" in entry["aria-label"] for entry in shown)
    assert len(page.of("details")) == len(names)
    for told in (
        "SGD, CF-SGD, Adagrad and Row-wise Adagrad on clicks-small, in one pass",
        "Evaluation NE",
        "Against Adagrad, %",
        "NE while training",
        "Examples/s",
        "day-08",
        "Ended byall examples seen",
        "Examples1,800,000",
    ):
        assert told in page.text
    assert "Epochs" not in page.text


def test_options_of_the_pass_have_names_of_their_own(tmp_path):
    options = {"rule": {"halflife": 1e6}, "pass": {"window": 5_000, "evaluation_days": 1}}
    text = elements(make_one_pass(make_streamed("cfsgd", options=options)), tmp_path).text
    assert "Samples in which counts halve1e+06" in text
    assert "Examples of a window5000Days for evaluation1" in text


def test_what_is_counted_is_told_where_it_is_not_occurrences(tmp_path):
    for count, told in (("occurrence", False), ("batch", True)):
        options = {"rule": {"count": count, "dense_lr": 0.25 if told else None}}
        text = elements(make_one_pass(make_streamed("cfsgd", options=options)), tmp_path).text
        assert ("What is countedbatches that hold a token" in text) == told
        assert ("Rate of bias and network0.25" in text) == told


def test_days_are_in_order_with_the_numbers_of_every_run(tmp_path):
    results = make_one_pass()
    results["runs"][0]["days"] = results["runs"][0]["days"][:3]
    (table,) = [
        part.html for part in one_pass_sections(read_one_pass(results)) if part.title == "NE by day"
    ]
    rows = table.split("<tr>")[2:]
    assert ["day-" in row for row in rows] == [True] * 9 + [False]
    for row, day in zip(rows, results["runs"][1]["days"], strict=False):
        assert f"<td>{day['ne']:.5f}</td>" in row
    assert ["\N{EN DASH}" in row for row in rows] == [False] * 3 + [True] * 6 + [False]


def test_lines_have_the_looks_of_their_runs():
    results = make_one_pass()
    read = read_one_pass(results)
    looks = styles(read.results.runs)
    for chart in charts(results).values():
        for trace in chart.figure.data:
            assert trace.marker.color == looks[trace.meta["run"]].light


def test_every_figure_is_painted():
    pytest.importorskip("matplotlib", reason='needs matplotlib: pip install "freqsgd[cli]"')
    from freqsgd.report.old.picture import Panel, Picture, paint

    panels = [Panel(name, chart.figure) for name, chart in charts(make_one_pass()).items()]
    canvas = paint(Picture("", panels))
    for axes, panel in zip(canvas.axes, panels, strict=False):
        assert list(axes.get_ylim()) == pytest.approx(list(panel.figure.layout.yaxis.range))


def test_seconds_can_be_chosen_where_all_are_known():
    results = make_one_pass()
    meta = charts(results)["window-ne"].figure.layout.meta
    assert (meta["unit"], meta["seconds_axis"]) == ("examples", "linear")
    results["runs"][2]["windows"][3]["seconds"] = None
    assert charts(results)["window-ne"].figure.layout.meta["seconds_axis"] is None


def test_strings_from_outside_stay_text(tmp_path):
    failed = {"lr": 1.0, "train_ne": None, "test_ne": None, "error": HOSTILE}
    hostile = make_streamed(
        "adagrad",
        optimizer=HOSTILE,
        skipped=[HOSTILE],
        days=[{"day": HOSTILE, "examples": 1, "ne": 0.9}],
        search=[*make_streamed("adagrad")["search"], failed],
    )
    page = elements(
        make_one_pass(
            hostile, make_streamed("cfsgd"), dataset={"name": HOSTILE, "days": [HOSTILE]}
        ),
        tmp_path,
    )
    assert not page.of("img")
    assert len(page.of("script")) == 3
    assert HOSTILE in page.text
    assert not any("onerror" in attributes for _, attributes in page.found)


@pytest.mark.parametrize(
    "run",
    [
        {"optimizer": "cfsgd"},
        {"optimizer": "cfsgd", "lr": None, "windows": None, "days": [], "search": None},
        {"optimizer": "cfsgd", "windows": [{"examples": 5}], "search": [{"lr": 1.0}]},
        {"optimizer": "cfsgd", "windows": [make_window("cfsgd", 1)], "test_ne": float("nan")},
        {"optimizer": "cfsgd", "search": [{"lr": 1.0, "train_ne": 0.9}] * 2, "search_edge": True},
    ],
)
def test_whatever_is_missing_there_is_a_page(run, tmp_path):
    for results in (
        {"schema": 1, "one_pass": True, "runs": [run]},
        make_one_pass(run, make_streamed("adagrad"), best_possible=None, splits=None),
    ):
        assert elements(results, tmp_path).of("table")


@pytest.mark.parametrize(
    ("key", "value"),
    [("days", [{}]), ("search", 3), ("windows", [{}]), ("skipped", 1), ("search", [{}])],
)
def test_a_damaged_run_is_refused_with_its_place(key, value):
    with pytest.raises(DataError, match=rf"at `\$\.runs\[0\]\.{key}"):
        read_one_pass(make_one_pass(make_streamed("cfsgd", **{key: value})))


def test_what_hardly_differs_still_has_an_axis():
    run = make_streamed("cfsgd", windows=[make_window("cfsgd", 1)] * 3)
    low, high = charts(make_one_pass(run, best_possible=None))["auc"].figure.layout.yaxis.range
    assert low < run["windows"][0]["auc"] < high
    assert figures.differences(read_one_pass(make_one_pass(run))) is None
