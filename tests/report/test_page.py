from __future__ import annotations

import math
from html.parser import HTMLParser

import pytest

pytest.importorskip("vl_convert", reason='needs vl-convert: pip install "freqsgd[cli]"')

from freqsgd.errors import DataError
from freqsgd.report import write_report
from tests.report.made_up import HOSTILE, make_results, make_run, plain, point


class Elements(HTMLParser):
    """Which elements a page has, with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.found and self.found[-1][0] not in ("script", "style"):
            self.words.append(data.strip())

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]

    @property
    def text(self) -> str:
        return plain("".join(self.words))


def written(results, folder) -> str:
    path = folder / "report.html"
    write_report(results, path)
    return path.read_text(encoding="utf-8")


def elements(results, folder) -> Elements:
    return Elements(written(results, folder))


def test_the_page_refers_to_no_other_file(tmp_path):
    page = elements(make_results(), tmp_path)
    for _, attributes in page.found:
        assert not {"src", "href", "srcset", "data"} & set(attributes)
    assert "default-src 'none'" in str(page.of("meta"))


def test_every_chart_is_described_and_has_its_data(tmp_path):
    page = elements(make_results(), tmp_path)
    charts = [entry for entry in page.of("div") if entry.get("class") == "chart"]
    assert [entry["data-chart"] for entry in charts] == [
        "validation",
        "training-loss",
        "state",
        "frequency",
    ]
    assert all(entry["role"] == "img" and "CF-SGD" in entry["aria-label"] for entry in charts)
    assert len(page.of("details")) == len(charts)


def test_words_table_command_and_machine_are_on_the_page(tmp_path):
    text = elements(make_results(), tmp_path).text
    for words in (
        "FM on movielens-1m: SGD, CF-SGD, Adagrad and Adam",
        "4.2 times fewer epochs",
        "Best validation AUC",
        "Seconds until then",
        "Tail AUC",
        "State, MB",
        "Samples/s",
        "freqsgd compare --dataset movielens-1m --model fm --seed 0 --out results",
        "Made-up CPU · cores: 2 · threads: 2 · torch 2.9 · Python 3.11",
        "made 2024-05-01 12:00 UTC",
        "one counter per row",
        "Rows1,000,209Fields2Tokens9,748Positive rate57%",
    ):
        assert words in text


def test_strings_from_outside_stay_text(tmp_path):
    hostile = make_results(
        make_run("sgd", optimizer=HOSTILE, stopped=HOSTILE, options={HOSTILE: HOSTILE}),
        make_run("cfsgd", stopped="diverged", error=HOSTILE, state_rule=HOSTILE),
        dataset={"name": HOSTILE, "source": HOSTILE},
        model={"name": HOSTILE},
        command=HOSTILE,
        created=HOSTILE,
        machine={"cpu": HOSTILE, "torch": HOSTILE},
    )
    page = elements(hostile, tmp_path)
    assert not page.of("img")
    assert len(page.of("script")) == 3
    assert HOSTILE in page.text
    assert not any("onerror" in attributes for _, attributes in page.found)


def test_options_within_options_are_listed_once(tmp_path):
    rule = {"lr": 77.5, "max_lr": 60.25, "linear_lr_scale": 0.3, "linear_decay_scale": 3.5}
    options = {"rule": rule, "settings": {"patience": 2, "max_rows": None, "novelty": 8}}
    text = elements(make_results(make_run("cfsgd", options=options)), tmp_path).text
    assert (
        "Max learning rate60.25Linear learning rate scale0.3Linear decay scale3.5"
        "Patience2Novelty8" in text
    )
    assert "77.5" not in text
    assert "max_rows" not in text


def test_columns_that_no_run_fills_are_left_out(tmp_path):
    untested = {"test_auc": None, "test_loss": None, "test_auc_by_frequency": None}
    page = elements(
        make_results(make_run("sgd", **untested), make_run("adam", **untested)), tmp_path
    )
    assert "Test AUC" not in page.text
    assert "Tail AUC" not in page.text
    assert "Best validation AUC" in page.text


def test_the_best_of_a_column_is_marked_also_when_it_is_shared(tmp_path):
    runs = [make_run(name, test_auc=auc) for name, auc in (("sgd", 0.80001), ("adam", 0.80004))]
    page = elements(make_results(*runs, make_run("cfsgd", test_auc=0.7)), tmp_path)
    marked = [cell["data-value"] for cell in page.of("td") if cell.get("class") == "best"]
    assert {"0.80001", "0.80004"} <= set(marked)
    assert "0.7" not in marked


@pytest.mark.parametrize(
    "results",
    [
        {"schema": 1, "runs": [{"optimizer": "sgd"}]},
        make_results(make_run("cfsgd")),
        make_results(
            make_run("sgd", epochs=[], best_epoch=None, stopped="diverged"), make_run("adam")
        ),
        make_results(make_run("sgd", epochs=[point(1, math.nan)], test_auc=math.nan)),
        make_results(*(make_run("cfsgd", seed=seed) for seed in range(12))),
        make_results(dataset=None, model=None, splits=None, machine=None, command=None),
        make_results(model={"name": "skipgram", "dim": 300, "hidden": [7]}),
    ],
    ids=["least", "one", "diverged", "nan", "many", "nameless", "text"],
)
def test_any_results_of_the_schema_make_a_page(results, tmp_path):
    page = elements(results, tmp_path)
    assert len(page.of("h1")) == 1
    assert page.of("table")


def test_a_report_that_fails_leaves_the_old_one(tmp_path):
    before = written(make_results(), tmp_path)
    files = sorted(tmp_path.iterdir())
    with pytest.raises(DataError):
        write_report({"schema": 2}, tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == before
    assert sorted(tmp_path.iterdir()) == files


def test_every_chart_is_a_picture_beside_the_report(tmp_path):
    page = elements(make_results(), tmp_path)
    charts = [entry["data-chart"] for entry in page.of("div") if entry.get("class") == "chart"]
    pictures = {path.name: path.read_bytes() for path in tmp_path.glob("*.png")}
    assert pictures.keys() == {f"report-{name}.png" for name in charts}
    assert len(pictures) == 4
    assert all(content.startswith(b"\x89PNG") for content in pictures.values())


def test_pictures_of_others_in_the_folder_stay(tmp_path):
    theirs = tmp_path / "report-for-my-boss.png"
    theirs.write_text("mine")
    written(make_results(), tmp_path)
    assert theirs.read_text() == "mine"


def test_a_missing_folder_is_an_error_that_names_it(tmp_path):
    with pytest.raises(DataError, match=r"nowhere.*folder"):
        write_report(make_results(), tmp_path / "nowhere" / "report.html")


def test_results_are_left_as_they_were(tmp_path):
    results = make_results()
    written(results, tmp_path)
    assert results == make_results()


def test_a_page_opens_with_tiles_few_sentences_and_a_chart(tmp_path):
    page = written(make_results(), tmp_path)
    tiles, sentences, chart, table = (
        page.index(part) for part in ('class="tiles"', 'class="summary', 'class="chart"', "<table")
    )
    assert tiles < sentences < chart < table
    assert page[sentences:chart].count("<li>") == 1


def test_a_page_has_at_most_two_megabytes(tmp_path):
    assert len(written(make_results(), tmp_path)) < 2_000_000
