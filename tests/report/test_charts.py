"""Charts: what their specifications draw, in which colours."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import pytest

from freqsgd.report.charts import STYLES, Chart, legend_columns, picture, series_of
from freqsgd.report.comparison import comparison_page
from freqsgd.report.results import read_results
from tests.report.made_up import make_results, make_run, point


def charts_of(results: dict[str, Any]) -> dict[str, Chart]:
    return {chart.name: chart for chart in comparison_page(read_results(results)).charts}


def rows(chart: Chart, run: str) -> list[dict[str, Any]]:
    """What a chart has of a run."""
    return [row for row in chart.spec["data"]["values"] if row["run"] == run]


def own_rows(chart: Chart) -> list[dict[str, Any]]:
    """What layers have that draw other rows than the chart's."""
    layers = chart.spec["layer"]
    return [row for layer in layers for row in layer.get("data", {}).get("values", ())]


def styles_of(*runs: dict[str, Any]) -> list[Any]:
    read = read_results(make_results(*runs)).runs
    return [one.style for one in series_of({run.label: run.optimizer for run in read})]


def colours_of(chart: Chart) -> dict[str, str]:
    """The colour of each run in the layers of a chart."""
    scales = [
        channel["scale"]
        for layer in chart.spec["layer"]
        for name, channel in layer["encoding"].items()
        if name == "color"
    ]
    assert all(scale == scales[0] for scale in scales)
    return dict(zip(scales[0]["domain"], scales[0]["range"], strict=True))


def test_every_chart_draws_every_run_in_its_own_colour():
    results = make_results()
    names = {run.label: run.optimizer for run in read_results(results).runs}
    found = {one.label: one.style.light for one in series_of(names)}
    assert len(set(found.values())) == 4
    for chart in charts_of(results).values():
        assert {row["run"] for row in chart.spec["data"]["values"]} == set(found)
        assert colours_of(chart) == found


def test_an_optimizer_keeps_its_colour_whoever_it_is_compared_with():
    assert styles_of(make_run("adam"))[0] == styles_of()[3]


def test_runs_differ_in_dash_and_marker_too():
    every = [make_run(name) for name in STYLES]
    twice = [make_run("cfsgd", seed=0), make_run("cfsgd", seed=1)]
    for runs in (every, twice):
        found = styles_of(*runs)
        assert len({style.dash for style in found}) == len(runs)
        assert len({style.marker for style in found}) == len(runs)


def test_unknown_optimizers_get_colours_that_no_other_run_has():
    runs = [make_run("sgd"), {"optimizer": "lion"}, {"optimizer": "sophia"}]
    assert len({style.light for style in styles_of(*runs)}) == 3


def linear(colour: str) -> list[float]:
    parts = [part / 255 for part in bytes.fromhex(colour[1:])]
    return [((part + 0.055) / 1.055) ** 2.4 if part > 0.04045 else part / 12.92 for part in parts]


def times(matrix, vector) -> list[float]:
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def lightness_and_hue(light: list[float]) -> tuple[float, float, float]:
    """CIE L*a*b* of linear RGB."""
    to_xyz = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    clipped = [min(1.0, max(0.0, part)) for part in light]
    x, y, z = (
        max(part / white, 0.008856) ** (1 / 3)
        for part, white in zip(times(to_xyz, clipped), (0.9505, 1.0, 1.089), strict=True)
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


SIGHT = {  # what is left of linear RGB: Machado, Oliveira and Fernandes 2009, severity 1
    "full": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red": ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052)),
    "no green": ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969)),
    "no blue": ((1.256, -0.077, -0.179), (-0.078, 0.931, 0.148), (0.005, 0.691, 0.304)),
}

COLOURS = [(style.light, style.dark) for style in STYLES.values()]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("sight", SIGHT)
def test_colours_differ_for_the_colour_blind(sight, scheme):
    for one, other in itertools.combinations(COLOURS, 2):
        seen = [
            lightness_and_hue(times(SIGHT[sight], linear(pair[scheme]))) for pair in (one, other)
        ]
        assert math.dist(*seen) > 10, (one, other)


@pytest.mark.parametrize(
    ("scheme", "card"), [(0, "#ffffff"), (1, "#181c23")], ids=["light", "dark"]
)
def test_colours_stand_out_from_the_page(scheme, card):
    def luminance(colour: str) -> float:
        return sum(a * b for a, b in zip((0.2126, 0.7152, 0.0722), linear(colour), strict=True))

    for pair in COLOURS:
        low, high = sorted((luminance(pair[scheme]), luminance(card)))
        assert (high + 0.05) / (low + 0.05) >= 3, pair


def test_curves_hold_what_was_measured_by_epoch_and_by_second():
    run = make_run("cfsgd", epochs=[point(1, 0.7, 2.0), point(2, 0.8, 4.5)], best_epoch=2)
    found = rows(charts_of(make_results(run))["validation"], "CF-SGD")
    assert [(row["at"], row["value"], row["seconds"]) for row in found] == [
        (1, 0.7, 2.0),
        (2, 0.8, 4.5),
    ]


def test_the_best_epoch_has_the_largest_marker_and_long_runs_few():
    epochs = [point(at, 0.8 if at == 42 else 0.7, float(at)) for at in range(1, 61)]
    results = make_results(make_run("sgd", epochs=epochs, best_epoch=42))
    sizes = [row["size"] for row in rows(charts_of(results)["validation"], "SGD")]
    assert sizes.index(max(sizes)) == 41
    assert sum(size > 0 for size in sizes) <= 13


def test_epochs_that_were_not_measured_are_left_out():
    epochs = [point(1, 0.7, 1.0), point(2, math.nan, 2.0)]
    found = rows(charts_of(make_results(make_run("sgd", epochs=epochs)))["validation"], "SGD")
    assert [row["at"] for row in found] == [1]


def test_the_best_possible_auc_is_a_line_with_its_name():
    chart = charts_of(make_results(best_possible={"val_auc": 0.83}))["validation"]
    assert {"level": 0.83, "words": "best possible: 0.8300"} in own_rows(chart)
    assert not own_rows(charts_of(make_results())["validation"])


@pytest.mark.parametrize(
    ("paces", "kind"), [((1.0, 2.0), None), ((1.0, 40.0), "log"), ((None, None), "absent")]
)
def test_seconds_are_logarithmic_when_runs_differ_much(paces, kind):
    runs = [
        make_run(name, epochs=[point(1, 0.7, pace)])
        for name, pace in zip(("sgd", "adam"), paces, strict=True)
    ]
    meta = charts_of(make_results(*runs))["validation"].spec.get("usermeta", {})
    if kind == "absent":
        assert "seconds" not in meta
    else:
        assert meta["seconds"]["scale"].get("type") == kind


def memory_of(*states: float | None) -> Chart | None:
    runs = [
        make_run(name, state_bytes=state, parameter_bytes=1_000_000)
        for name, state in zip(STYLES, states, strict=False)
    ]
    return charts_of(make_results(*runs)).get("state")


def test_bars_of_memory_start_at_zero_are_named_and_leave_room_for_the_names():
    chart = memory_of(0, 4_000, 2_000_000)
    words = [
        row["words"].replace("\N{NO-BREAK SPACE}", " ") for row in chart.spec["data"]["values"]
    ]
    assert words == ["none", "4.00 kB", "2.00 MB"]
    low, high = chart.spec["encoding"]["x"]["scale"]["domain"]
    assert low == 0
    assert high > 2_000_000
    assert {row["level"] for row in own_rows(chart)} == {1_000_000}


def test_memory_is_drawn_when_no_run_keeps_state_and_not_when_none_is_known():
    assert memory_of(0, 0) is not None
    assert memory_of(None, None) is None


def test_scores_by_frequency_are_those_of_the_runs():
    chart = charts_of(make_results())["frequency"]
    for run, label in zip(
        make_results()["runs"], ("SGD", "CF-SGD", "Adagrad", "Adam"), strict=True
    ):
        found = {row["class"]: row["value"] for row in rows(chart, label)}
        assert found == run["test_auc_by_frequency"]
        assert all(row["at"] == row["value"] for row in rows(chart, label))


def test_charts_without_data_are_left_out():
    assert charts_of(make_results({"optimizer": "sgd"})) == {}


def test_names_stand_in_data_and_never_in_expressions():
    name = "x'] || hacked() || ['"
    for chart in charts_of(
        make_results(make_run("sgd", optimizer=name), make_run("adam"))
    ).values():
        assert name in json.dumps(chart.spec["data"])
        expressions = [
            value
            for found in every_object(chart.spec)
            for key, value in found.items()
            if key in ("expr", "filter", "calculate", "test", "labelExpr", "signal")
        ]
        assert expressions
        assert not any("hacked" in json.dumps(value) for value in expressions)


def every_object(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, list):
        return [found for each in value for found in every_object(each)]
    if not isinstance(value, dict):
        return []
    return [value, *(found for each in value.values() for found in every_object(each))]


def test_pictures_hold_one_or_many_charts_and_are_the_same_bytes_each_time():
    pytest.importorskip("vl_convert", reason='needs vl-convert: pip install "freqsgd[cli]"')
    charts = list(charts_of(make_results(make_run("sgd", optimizer="<b>&lion"))).values())
    one, many = picture(charts[:1]), picture(charts)
    assert one.startswith(b"\x89PNG")
    assert many.startswith(b"\x89PNG")
    assert picture(charts[:1]) == one


def test_a_picture_of_many_charts_has_each_run_in_its_colour(monkeypatch):
    pytest.importorskip("vl_convert", reason='needs vl-convert: pip install "freqsgd[cli]"')
    drawn = []
    monkeypatch.setattr("vl_convert.vegalite_to_png", lambda spec, scale: drawn.append(spec))
    one = charts_of(make_results(make_run("sgd"), make_run("adam")))["validation"]
    other = charts_of(make_results())["validation"]
    picture([one, other])
    colours = [colours_of(Chart("", "", panel, "")) for panel in drawn[0]["concat"]]
    assert colours[0] == colours[1]
    assert colours_of(one).items() <= colours[0].items()
    assert colours_of(other) == dict(colours[0])


def test_the_legend_of_a_picture_has_whole_markers_in_one_line(monkeypatch):
    converter = pytest.importorskip("vl_convert", reason="needs vl-convert")
    drawn = []
    monkeypatch.setattr("vl_convert.vegalite_to_png", lambda spec, scale: drawn.append(spec))
    runs = map(make_run, ("sgd", "cfsgd", "cfadam", "adagrad", "adam"))
    picture([charts_of(make_results(*runs))["validation"]])
    vega = converter.vegalite_to_vega(drawn[0])
    (legend,) = vega["legends"]
    assert {"stroke", "fill"} & legend.keys()
    assert "shape" in legend
    assert "strokeDash" not in legend
    assert vega["config"]["legend"]["columns"] == 5


def test_lines_of_a_legend_are_about_as_full():
    names = ["SGD", "CF-SGD", "CFAdam", "Adagrad", "Adam"]
    assert [legend_columns(names, width) for width in (600, 400, 200, 10)] == [5, 3, 2, 1]
    assert legend_columns(["a name that takes the whole width of it"] * 3, 300) == 1
