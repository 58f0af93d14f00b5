from __future__ import annotations

import itertools
import math

import pytest

pytest.importorskip("plotly", reason='needs plotly: pip install "freqsgd[cli]"')

from freqsgd.report.old import figures
from freqsgd.report.old.frequency import by_frequency
from freqsgd.report.old.kinds import BY_TOKEN, kind_of
from freqsgd.report.old.memory_figure import state_memory
from freqsgd.report.old.results import read_results
from freqsgd.report.old.style import STYLES, styles
from tests.report.made_up import make_results, make_run, point


def curves_of(results):
    read = read_results(results)
    return figures.curves(read, kind_of(read).by, kind_of(read).by)


def all_figures(results):
    read = read_results(results)
    return [curves_of(results), state_memory(read), by_frequency(read, BY_TOKEN, {})]


def test_every_figure_draws_every_run_in_its_own_colour():
    results = make_results()
    colours = [style.light for style in styles(read_results(results).runs)]
    assert len(set(colours)) == 4
    for figure in all_figures(results):
        assert [trace.meta["run"] for trace in figure.data] == [0, 1, 2, 3]
        assert [trace.marker.color for trace in figure.data] == colours


def test_an_optimizer_keeps_its_colour_whoever_it_is_compared_with():
    alone = styles(read_results(make_results(make_run("adam"))).runs)[0]
    assert alone == styles(read_results(make_results()).runs)[3]


def test_runs_differ_in_dash_and_marker_too():
    every = [make_run(name) for name in STYLES]
    twice = [make_run("cfsgd", seed=0), make_run("cfsgd", seed=1)]
    for runs in (every, twice):
        found = styles(read_results(make_results(*runs)).runs)
        assert (
            len({style.dash for style in found})
            == len({style.marker for style in found})
            == len(runs)
        )


def test_unknown_optimizers_get_colours_that_no_other_run_has():
    runs = [make_run("sgd"), {"optimizer": "lion"}, {"optimizer": "sophia"}]
    assert len({style.light for style in styles(read_results(make_results(*runs)).runs)}) == 3


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
    (trace,) = curves_of(make_results(run)).data
    assert list(trace.x) == [1, 2]
    assert list(trace.y) == [0.7, 0.8]
    assert [list(pair) for pair in trace.customdata] == [[1, 2.0], [2, 4.5]]


def test_the_best_epoch_has_the_largest_marker_and_long_runs_few():
    epochs = [point(at, 0.8 if at == 42 else 0.7, float(at)) for at in range(1, 61)]
    (trace,) = curves_of(make_results(make_run("sgd", epochs=epochs, best_epoch=42))).data
    sizes = list(trace.marker.size)
    assert sizes.index(max(sizes)) == 41
    assert sum(size > 0 for size in sizes) <= figures.MARKED_EPOCHS + 1


def test_epochs_that_were_not_measured_are_left_out():
    epochs = [point(1, 0.7, 1.0), point(2, math.nan, 2.0)]
    (trace,) = curves_of(make_results(make_run("sgd", epochs=epochs))).data
    assert list(trace.x) == [1]


def test_the_best_possible_auc_is_a_line():
    figure = curves_of(make_results(best_possible={"val_auc": 0.83}))
    assert figure.layout.shapes[0].y0 == figure.layout.shapes[0].y1 == 0.83
    assert "0.8300" in figure.layout.annotations[0].text
    assert not curves_of(make_results()).layout.shapes


@pytest.mark.parametrize(
    ("paces", "axis"), [((1.0, 2.0), "linear"), ((1.0, 40.0), "log"), ((None, None), None)]
)
def test_seconds_are_logarithmic_when_runs_differ_much(paces, axis):
    runs = [
        make_run(name, epochs=[point(1, 0.7, pace)])
        for name, pace in zip(("sgd", "adam"), paces, strict=True)
    ]
    assert curves_of(make_results(*runs)).layout.meta["seconds_axis"] == axis


def memory_of(*states: float | None):
    runs = [
        make_run(name, state_bytes=state, parameter_bytes=1_000_000)
        for name, state in zip(STYLES, states, strict=False)
    ]
    return state_memory(read_results(make_results(*runs)))


def test_memory_has_a_logarithmic_axis_when_states_differ_much():
    assert memory_of(1_000, 2_000_000).layout.xaxis.type == "log"
    assert memory_of(900_000, 2_000_000).layout.xaxis.type == "linear"


def test_no_state_is_named_and_leaves_the_other_bars_in_range():
    figure = memory_of(0, 4_000, 2_000_000)
    assert figure.layout.yaxis.ticktext[0].endswith("<br>none")
    low, high = figure.layout.xaxis.range
    assert low < math.log10(4_000) < math.log10(2_000_000) < high


def test_memory_is_drawn_when_no_run_keeps_state_and_not_when_none_is_known():
    assert memory_of(0, 0) is not None
    assert memory_of(None, None) is None


def test_the_frequency_axis_holds_all_bars_and_does_not_start_at_zero():
    figure = by_frequency(read_results(make_results()), BY_TOKEN, {})
    low, high = figure.layout.yaxis.range
    values = [value for trace in figure.data for value in trace.y]
    assert 0 < low < min(values) < max(values) < high


def test_figures_without_data_are_left_out():
    empty = read_results(make_results({"optimizer": "sgd"}))
    assert figures.curves(empty, kind_of(empty).by, kind_of(empty).by) is None
    assert state_memory(empty) is None
    assert by_frequency(empty, BY_TOKEN, {}) is None


def test_names_are_not_read_as_markup_by_plotly():
    for figure in all_figures(make_results(make_run("sgd", optimizer="<b>x</b>"))):
        assert "<b>x</b>" not in figure.to_json()
        assert figure.data[0].name == "&lt;b&gt;x&lt;/b&gt;"
