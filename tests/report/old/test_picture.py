from __future__ import annotations

import itertools
import math
import subprocess
import sys

import pytest

pytest.importorskip("plotly", reason='needs plotly: pip install "freqsgd[cli]"')
pytest.importorskip("matplotlib", reason='needs matplotlib: pip install "freqsgd[cli]"')

from matplotlib.colors import to_rgb
from matplotlib.image import imread

from freqsgd.errors import DataError
from freqsgd.report.old.figures import figure, level_line
from freqsgd.report.old.inspection import read_inspection
from freqsgd.report.old.inspection_sections import inspection_pictures
from freqsgd.report.old.kinds import kind_of
from freqsgd.report.old.picture import Panel, Picture, paint, write_picture
from freqsgd.report.old.results import read_results
from freqsgd.report.old.sections import sections
from freqsgd.report.old.theory import read_theory
from freqsgd.report.old.theory_sections import theory_pictures
from tests.report.made_up import make_results, make_run, make_study, make_tuned
from tests.report.made_up_diagnosis import make_diagnosed
from tests.report.made_up_inspection import make_field, make_inspection
from tests.report.made_up_text import make_text_results
from tests.report.made_up_theory import make_theory


def scatter(**changes):
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": "a",
        "meta": {"run": 0},
        "x": [1, 10, 100],
        "y": [1e-3, None, 1e-1],
        "line": {"color": "#d55e00"},
        "marker": {"color": "#d55e00"},
        **changes,
    }


def bar(**changes):
    return {
        "type": "bar",
        "name": "a",
        "x": ["head", "tail"],
        "y": [0.8, 0.7],
        "marker": {"color": "#0072b2"},
        **changes,
    }


def plain(*traces, **layout):
    return figure(list(traces), **{"xaxis": {}, "yaxis": {}, **layout})


def alone(figure, title="Title"):
    return Picture(title, [Panel("", figure)])


def painted(*traces, **layout):
    return paint(alone(plain(*traces, **layout), "")).axes[0]


def charts_of(results):
    read = read_results(results)
    return [chart for part in sections(read, kind_of(read)) for chart in part.charts]


REPORTS = {
    "comparison": make_results(),
    "tuned": make_tuned(make_study("cfsgd"), make_study("rowwise-adagrad")),
    "text": make_text_results(),
    "diagnosis": make_diagnosed(),
    "generated": make_results(make_run("sgd"), best_possible={"val_auc": 0.83}),
}


@pytest.mark.parametrize("results", REPORTS.values(), ids=REPORTS)
def test_every_chart_of_every_report_can_be_painted(results):
    charts = charts_of(results)
    assert charts
    for chart in charts:
        axes = paint(alone(chart.figure, chart.title)).axes[0]
        drawn = len(axes.lines) + len(axes.collections) + len(axes.patches)
        assert drawn >= len(chart.figure.data)


def test_lines_and_points_are_where_the_figure_has_them():
    axes = painted(scatter())
    line = axes.lines[0]
    assert list(line.get_xdata()) == [1, 10, 100]
    assert line.get_ydata()[0] == 1e-3
    assert math.isnan(line.get_ydata()[1])
    points = axes.collections[0].get_offsets()
    assert points.shape == (3, 2)
    assert to_rgb(line.get_color()) == to_rgb("#d55e00")


def test_axes_have_their_scale_range_title_and_ticks():
    axes = painted(
        scatter(),
        xaxis={"type": "log", "range": [-1, 3], "title": {"text": "how <b>often</b>"}},
        yaxis={"range": [2, 0], "tickvals": [0, 1], "ticktext": ["none<br>&lt;", "$one$"]},
    )
    assert axes.get_xscale() == "log"
    assert axes.get_xlim() == pytest.approx((0.1, 1000))
    assert axes.get_xlabel() == "how often"
    assert axes.get_ylim() == (2, 0)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["none\n<", "$one$"]


def test_numbers_on_axes_are_written_as_on_the_page():
    axes = painted(scatter(), xaxis={"tickformat": "~s", "ticksuffix": "B"})
    written = axes.xaxis.get_major_formatter()
    assert [written(value) for value in (0, 20_000, 1.5e6)] == ["0B", "20kB", "1.5MB"]


def test_intervals_reach_from_low_to_high():
    error = {"type": "data", "symmetric": False, "array": [4, 0, 1], "arrayminus": [0.5, 0, 2]}
    axes = painted(scatter(y=[1, 2, 3], error_y=error))
    ends = [path.vertices[:, 1].tolist() for path in axes.collections[-1].get_paths()]
    assert ends == [[0.5, 5], [2, 2], [1, 4]]


def test_groups_of_bars_stand_beside_each_other_around_their_category():
    axes = painted(bar(), bar(name="b"), barmode="group", bargap=0.2, bargroupgap=0)
    edges = sorted((patch.get_x(), patch.get_x() + patch.get_width()) for patch in axes.patches)
    expected = [(-0.4, 0), (0, 0.4), (0.6, 1), (1, 1.4)]
    assert [end for pair in edges for end in pair] == pytest.approx(
        [end for pair in expected for end in pair]
    )
    assert [label.get_text() for label in axes.get_xticklabels()] == ["head", "tail"]


def test_words_in_bars_are_shown_only_where_they_fit():
    texts = {"texttemplate": "CF-SGD %{y:+.3f}", "textangle": -90, "textposition": "inside"}
    axes = painted(bar(y=[0.8, 0.001], **texts), bargap=0.2, bargroupgap=0)
    assert [(text.get_text(), text.get_visible()) for text in axes.texts] == [
        ("CF-SGD +0.800", True),
        ("CF-SGD +0.001", False),
    ]


def test_level_lines_and_their_words_are_drawn_in_data_and_in_paper():
    note = {
        "text": "level",
        "xref": "paper",
        "x": 1,
        "y": -2,
        "xanchor": "right",
        "yanchor": "bottom",
        "showarrow": False,
    }
    axes = painted(
        scatter(),
        yaxis={"type": "log", "range": [-3, 0]},
        shapes=[level_line(0.01)],
        annotations=[note],
    )
    level, text = axes.lines[-1], axes.texts[0]
    assert list(level.get_ydata()) == [0.01, 0.01]
    assert text.xy == (1, 0.01)
    assert text.get_text() == "level"


def test_the_legend_names_each_run_once_and_takes_names_as_text():
    panels = [Panel("", plain(scatter(name="_$a$ &lt;"), scatter(name="b"))) for _ in range(3)]
    legend = paint(Picture("", panels)).legends[0]
    assert [text.get_text() for text in legend.get_texts()] == ["_$a$ <", "b"]
    assert not any(text.get_parse_math() for text in legend.get_texts())


@pytest.mark.parametrize(
    ("figure", "name"),
    [
        (plain({"type": "pie"}), "type = 'pie'"),
        (plain(scatter(fill="tozeroy")), r"data\[0\].fill"),
        (plain(scatter(line={"shape": "spline", "color": "red"})), "line.shape = 'spline'"),
        (plain(scatter(marker={"color": "red", "line": {"width": 2}})), "marker.line.width = 2"),
        (plain(scatter(), xaxis={"tickprefix": "x"}), "layout.xaxis.tickprefix"),
        (plain(scatter(), xaxis={"tickformat": ".1%"}), "tickformat = '.1%'"),
        (plain(scatter(), barmode="stack"), "barmode = 'stack'"),
        (plain(scatter(), shapes=[{"type": "rect"}]), r"shapes\[0\].type = 'rect'"),
        (plain(scatter(), annotations=[{"showarrow": True}]), "showarrow = True"),
        (plain(scatter(), legend={"x": 1}), "layout.legend"),
    ],
)
def test_what_would_be_left_out_is_refused(figure, name, tmp_path):
    with pytest.raises(NotImplementedError, match=name):
        write_picture(alone(figure), tmp_path / "a.png")
    assert list(tmp_path.iterdir()) == []


def test_the_file_is_a_picture_in_the_colours_of_its_runs(tmp_path):
    path = tmp_path / "a.png"
    figure = plain(scatter(y=[1, 2, 3]), scatter(marker={"color": "#0072b2"}))
    write_picture(alone(figure), path)
    pixels = imread(path)
    assert pixels.shape[:2] > (500, 1000)
    for colour in ("#d55e00", "#0072b2"):
        assert (abs(pixels[:, :, :3] - to_rgb(colour)).max(axis=2) < 0.01).any()


def test_the_same_figure_gives_the_same_bytes(tmp_path):
    for name in ("a.png", "b.png"):
        write_picture(alone(plain(scatter())), tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_pictures_of_many_panels_have_one_axes_each():
    many = make_inspection(*(make_field(f"field {place}") for place in range(11)))
    axes = paint(inspection_pictures(read_inspection(many))["ranks"]).axes
    assert [each.get_title(loc="left") for each in axes[:11]] == [
        f"field {place}" for place in range(11)
    ]
    assert not any(each.axison for each in axes[11:])


def test_titles_of_panels_end_where_the_next_panel_begins():
    long = make_inspection(*(make_field(300 * "x" + str(place)) for place in range(12)))
    canvas = paint(inspection_pictures(read_inspection(long))["ranks"])
    boxes = [axes._left_title.get_window_extent() for axes in canvas.axes[:5]]
    for one, other in itertools.pairwise(boxes):
        assert one.x1 < other.x0


@pytest.mark.parametrize("tail", ["polynomial", "uniform"])
def test_simulations_are_painted_beside_each_other(tail, tmp_path):
    picture = theory_pictures(read_theory(make_theory(tail, 2.0)))["improvement"]
    write_picture(picture, tmp_path / "a.png")
    assert imread(tmp_path / "a.png").shape[1] == 2 * 5.2 * 180


def test_a_field_of_one_token_is_painted():
    field = make_field("a", 1, ranks=[[1, 5]], fit={})
    axes = paint(inspection_pictures(read_inspection(make_inspection(field)))["ranks"]).axes[0]
    assert axes.collections[0].get_offsets().tolist() == [[1, 5]]


def test_a_missing_folder_is_an_error_that_names_it(tmp_path):
    with pytest.raises(DataError, match=r"nowhere.*folder"):
        write_picture(alone(plain(scatter())), tmp_path / "nowhere" / "a.png")


def test_pictures_leave_matplotlibs_global_state_alone():
    code = """
import sys, matplotlib
before = matplotlib.rcParams.copy()
from tests.report.old.test_picture import alone, paint, plain, scatter
paint(alone(plain(scatter())))
assert matplotlib.rcParams.copy() == before
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
