"""What a report tells of runs that see every example once."""

from __future__ import annotations

from typing import Any

import pytest

from freqsgd.errors import DataError
from freqsgd.report.charts import Chart, series_of
from freqsgd.report.one_pass import one_pass_page, read_one_pass
from freqsgd.report.page import Page
from tests.report.made_up import HOSTILE, plain
from tests.report.made_up_one_pass import make_one_pass, make_streamed, make_window
from tests.report.test_charts import colours_of, own_rows, rows
from tests.report.test_comparison import section
from tests.report.test_page import elements

MINUS = "\N{MINUS SIGN}"
LABELS = {
    "sgd": "SGD",
    "cfsgd": "CF-SGD",
    "adagrad": "Adagrad",
    "rowwise-adagrad": "Row-wise Adagrad",
}


def page_of(results: dict[str, Any]) -> Page:
    return one_pass_page(read_one_pass(results))


def charts(results: dict[str, Any]) -> dict[str, Chart]:
    return {chart.name: chart for chart in page_of(results).charts}


def told(results: dict[str, Any]) -> str:
    """All sentences of a page, those under "Read with care" too."""
    page = page_of(results)
    care = section(page, "Read with care")
    return plain("\n".join([*page.sentences, *(care.remarks if care else ())]))


def tiles(results: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {tile.title: (plain(tile.value), plain(tile.note)) for tile in page_of(results).tiles}


def ends(chart: Chart) -> list[float]:
    """The axis of y as it is at first."""
    return [each["value"] for each in chart.spec["params"] if each["name"] in ("low", "high")]


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
    chart = charts(results)[name]
    for run in results["runs"]:
        found = rows(chart, LABELS[run["optimizer"]])
        for row, window in zip(found, run["windows"], strict=True):
            assert (row["at"], row["value"], row["seconds"]) == (
                window["examples"],
                window[key],
                window["seconds"],
            )


def test_differences_are_of_the_same_examples_in_percent_of_adagrads():
    results = make_one_pass(*map(make_streamed, ("sgd", "adagrad", "cfsgd")))
    sgd, adagrad, cfsgd = results["runs"]
    del sgd["windows"][4], adagrad["windows"][7]
    cfsgd["windows"][2]["ne"] = None
    base = {window["examples"]: window["ne"] for window in adagrad["windows"]}
    chart = charts(results)["difference"]
    assert not rows(chart, "Adagrad")
    for run in (sgd, cfsgd):
        expected = {
            window["examples"]: 100 * (window["ne"] / base[window["examples"]] - 1)
            for window in run["windows"]
            if window["ne"] is not None and window["examples"] in base
        }
        found = rows(chart, LABELS[run["optimizer"]])
        assert [row["at"] for row in found] == list(expected)
        assert [row["value"] for row in found] == pytest.approx(list(expected.values()))
        assert len(expected) == 16


def test_the_axis_shows_the_settled_part_and_says_what_it_cuts_off():
    chart = charts(make_one_pass())["window-ne"]
    low, high = ends(chart)
    settled = [
        window["ne"]
        for run in make_one_pass()["runs"]
        for window in run["windows"]
        if window["examples"] > 0.2 * 1_800_000
    ]
    assert low < min(settled) < max(settled) < high
    assert max(row["value"] for row in rows(chart, "SGD")) > high
    assert f"What lies above {high:.5f} is not shown" in chart.note
    spans = chart.spec["usermeta"]["spans"]
    assert set(spans) == set(LABELS.values())
    assert all(low < span[0] <= span[1] < high for span in spans.values())


def test_the_best_possible_is_a_level_or_words_where_it_would_flatten_the_lines():
    near = charts(make_one_pass())["lifetime-ne"]
    assert {row["level"] for row in own_rows(near)} == {0.805}
    far = charts(make_one_pass(best_possible={"train_ne": 0.3}))["lifetime-ne"]
    assert not own_rows(far)
    assert "best possible level, 0.30000, is off the axis" in far.note
    none = charts(make_one_pass(best_possible=None))["lifetime-ne"]
    assert not own_rows(none)
    assert "best possible" not in none.note


def test_rates_are_drawn_by_optimizer_with_the_chosen_one_marked():
    results = make_one_pass(*map(make_streamed, ("cfsgd", "adagrad")))
    results["runs"][1]["search"][4] |= {"train_ne": None, "error": "the loss is nan"}
    chart = charts(results)["rates"]
    for run in results["runs"]:
        tried = [entry for entry in run["search"] if entry["error"] is None]
        found = rows(chart, LABELS[run["optimizer"]])
        assert [(row["lr"], row["ne"]) for row in found] == [
            (entry["lr"], entry["train_ne"]) for entry in tried
        ]
        assert max(found, key=lambda row: row["size"])["lr"] == run["lr"]
    assert chart.spec["encoding"]["x"]["scale"]["type"] == "log"
    assert "Adagrad diverged at 0.2." in chart.note


def test_a_short_last_window_is_left_out_and_that_is_said():
    results = make_one_pass(*(make_streamed(name, batch_size=64) for name in ("cfsgd", "adagrad")))
    whole = charts(results)
    for run in results["runs"]:
        last = run["windows"][-1]
        examples = last["examples"] + run["batch_size"]
        run["windows"].append({**last, "examples": examples, "ne": 9.0, "auc": 0.1})
    for name, chart in charts(results).items():
        if name in ("window-ne", "difference", "calibration", "auc"):
            assert rows(chart, "CF-SGD") == rows(whole[name], "CF-SGD")
            assert "The last window is left out, having fewer examples." in chart.note
            assert "left out" not in whole[name].note
    every = rows(charts(results)["lifetime-ne"], "CF-SGD")  # which is of all examples
    assert len(every) == len(rows(whole["lifetime-ne"], "CF-SGD")) + 1


def test_rates_at_the_end_of_the_grid_are_told_and_evaluation_plays_no_part():
    runs = [make_streamed("cfsgd", search_edge=True, lr=2.0), make_streamed("adagrad")]
    page = told(make_one_pass(*runs))
    everyone = "is the best of those tried, by NE while training; the evaluation examples play no"
    assert f"The learning rate of CF-SGD and Adagrad {everyone}" in page
    assert (
        "The best of CF-SGD is the largest, 2: a better one may lie beyond."
        in charts(make_one_pass(*runs))["rates"].note
    )
    runs[1]["search"] = []
    assert f"The learning rate of CF-SGD {everyone}" in told(make_one_pass(*runs))


@pytest.mark.parametrize(
    ("nes", "value", "note", "against"),
    [
        (
            {"cfsgd": 0.81, "adagrad": 0.9},
            "0.81000",
            "CF-SGD; then Adagrad with 0.90000",
            {"CF-SGD": f"{MINUS}10.000", "Adagrad": None},
        ),
        (
            {"cfsgd": 0.9018, "adagrad": 0.9, "sgd": 0.99},
            "0.90000",
            "Adagrad; then CF-SGD with 0.90180",
            {"CF-SGD": "+0.200", "Adagrad": None, "SGD": "+10.000"},
        ),
        (
            {"cfsgd": 0.9, "adagrad": 0.9},
            "0.90000",
            "CF-SGD; then Adagrad with 0.90000",
            {"CF-SGD": "+0.000"},
        ),
        (
            {"cfsgd": 0.8, "sgd": 0.84},
            "0.80000",
            "CF-SGD; then SGD with 0.84000",
            {"CF-SGD": None, "SGD": "+5.000"},
        ),
        (
            {"sgd": 0.84, "cfsgd": 0.8, "adagrad": None},
            "0.80000",
            "CF-SGD; then SGD with 0.84000",
            {"SGD": None, "CF-SGD": f"{MINUS}4.762", "Adagrad": None},
        ),
        ({"cfsgd": 0.8, "adagrad": None}, "0.80000", "CF-SGD", {}),
        ({"cfsgd": 0.8}, "0.80000", "CF-SGD", {}),
    ],
)
def test_who_is_best_and_by_how_much(nes, value, note, against):
    results = scored(**nes)
    assert tiles(results)["Lowest evaluation NE"] == (value, note)
    (table,) = section(page_of(results), "All runs").tables
    base = next((name for name in table.head if name.startswith("Against")), None)
    if not against:
        assert base is None
        return
    place = list(table.head).index(base)
    found = {row[0].text: row[place].text for row in table.rows}
    for name, percent in against.items():
        assert found[name] == (percent or "\N{EN DASH}")


def test_what_was_streamed():
    page = page_of(make_one_pass())
    assert page.sentences[0].startswith("NE is the mean loss")
    sizes = [[cell.text for cell in row] for row in section(page, "Data").tables[0].rows]
    for size in (["Days", "10"], ["Train", "1,800,000"], ["Test", "200,000"], ["Fields", "26"]):
        assert size in sizes
    (table,) = section(page, "All runs").tables
    assert plain(table.note) == "At its peak the whole process took 812 MB."
    assert "Each optimizer ran once at the rate shown" in told(make_one_pass())


def test_tiles_say_the_difference_the_state_and_the_speed():
    assert tiles(make_one_pass()) == {
        "Lowest evaluation NE": ("0.81110", "CF-SGD; then Adagrad with 0.81170"),
        "CF-SGD against Adagrad, evaluation NE": (
            f"{MINUS}0.074%",
            "0.81110 against 0.81170; below 0 is better",
        ),
        "Optimizer state of CF-SGD": ("4.00 MB", "17 times less: Adagrad keeps 68.0 MB"),
        "Examples/s of CF-SGD": ("1,111,111", "reading included"),
    }


def test_without_evaluation_runs_are_compared_by_how_they_trained():
    none = dict.fromkeys(("test_ne", "test_auc", "test_calibration", "test_rows"))
    runs = [make_streamed(name, **none) for name in ("cfsgd", "adagrad")]
    results = make_one_pass(*runs, splits={"train": 1_800_000, "test": None})
    words = tiles(results)
    mine, theirs = (run["train_ne"] for run in runs)
    assert words["Lowest NE while training"][0] == f"{mine:.5f}"
    apart = f"{MINUS}{100 * (1 - mine / theirs):.3f}%"
    assert words["CF-SGD against Adagrad, NE while training"][0] == apart


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
    assert "SGD diverged after 100,000 examples: the loss is nan at lr 40; its" in told(results)
    assert "0.10000" not in elements(results, tmp_path).text


def test_files_and_rows_left_out_are_on_the_page(tmp_path):
    run = make_streamed("cfsgd", dropped=1_234, skipped=["day-3/b.parquet: cut off at byte 12"])
    page = elements(make_one_pass(run), tmp_path)
    for words in ("Malformed rows left out: 1,234.", "day-3/b.parquet: cut off at byte 12"):
        assert words in page.text


def test_the_page_has_its_tables_and_every_chart_is_described(tmp_path):
    page = elements(make_one_pass(), tmp_path)
    shown = [entry for entry in page.of("div") if entry.get("class") == "chart"]
    names = ["difference", "lifetime-ne", "window-ne", "rates", "calibration", "auc", "state"]
    assert [entry["data-chart"] for entry in shown] == names
    assert all("CF-SGD" in entry["aria-label"] for entry in shown)
    assert len(page.of("details")) == len(names)
    for told in (
        "FM on clicks-small: SGD, CF-SGD, Adagrad and Row-wise Adagrad, in one pass",
        "Evaluation NE",
        "Against Adagrad, %",
        "NE while training",
        "Examples/s",
        "day-08",
        "Stopped byend",
        "Examples1,800,000",
    ):
        assert told in page.text
    assert "Epochs" not in page.text


def test_options_of_the_pass_have_names_of_their_own(tmp_path):
    options = {"rule": {"halflife": 1e6}, "pass": {"window": 5_000, "evaluation_days": 1}}
    text = elements(make_one_pass(make_streamed("cfsgd", options=options)), tmp_path).text
    assert "Halflife1,000,000" in text
    assert "Window5,000Evaluation days1" in text


def test_what_is_counted_is_told(tmp_path):
    options = {"rule": {"count": "batch", "dense_lr": 0.25}}
    text = elements(make_one_pass(make_streamed("cfsgd", options=options)), tmp_path).text
    assert "Countbatch" in text
    assert "Dense learning rate0.25" in text


def test_days_are_in_order_with_the_numbers_of_every_run(tmp_path):
    results = make_one_pass()
    results["runs"][0]["days"] = results["runs"][0]["days"][:3]
    (table,) = section(page_of(results), "NE by day").tables
    texts = [[cell.text for cell in row] for row in table.rows]
    assert [row[0].startswith("day-") for row in texts] == [True] * 9 + [False]
    for row, day in zip(texts, results["runs"][1]["days"], strict=False):
        assert f"{day['ne']:.5f}" in row
    assert ["\N{EN DASH}" in row for row in texts] == [False] * 3 + [True] * 6 + [False]


def test_lines_have_the_looks_of_their_runs():
    results = make_one_pass()
    names = {run.label: run.optimizer for run in read_one_pass(results).runs}
    looks = {one.label: one.style.light for one in series_of(names)}
    for chart in charts(results).values():
        assert colours_of(chart).items() <= looks.items()


def test_seconds_can_be_chosen_where_all_are_known():
    results = make_one_pass()
    meta = charts(results)["window-ne"].spec["usermeta"]
    assert meta["unit"] == "examples"
    assert meta["seconds"]["field"] == "seconds"
    results["runs"][2]["windows"][3]["seconds"] = None
    assert "seconds" not in charts(results)["window-ne"].spec["usermeta"]


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
    low, high = ends(charts(make_one_pass(run, best_possible=None))["auc"])
    assert low < run["windows"][0]["auc"] < high
    assert "difference" not in charts(make_one_pass(run))
