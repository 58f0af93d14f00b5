"""Downloads, from a server on this machine that can break off."""

from __future__ import annotations

import hashlib
import io
import threading
import zipfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from freqsgd.errors import DataError
from freqsgd.tables import download as module
from freqsgd.tables.catalog import known_dataset
from freqsgd.tables.download import download, get

CONTENT = bytes(range(256)) * 4000


class Server(ThreadingHTTPServer):
    """Serves one file; counts requests and the bytes asked for."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = CONTENT
        self.ranges = True  # whether the server knows how to send a part
        self.cut_after = []  # of each coming answer, how many bytes it is cut off after
        self.asked = []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/file.bin"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        wanted = self.headers.get("Range")
        server.asked.append(wanted)
        if self.path != "/file.bin":
            self.send_error(404)
            return
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        if start and server.ranges:
            self.send_response(206)
            size = len(server.content)
            self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
        else:
            start = 0
            self.send_response(200)
        body = server.content[start:]
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        cut = server.cut_after.pop(0) if server.cut_after else len(body)
        self.wfile.write(body[:cut])

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(module, "_PAUSE", 0.0)
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def md5(content):
    return hashlib.md5(content).hexdigest()


def test_a_file_arrives_whole_with_progress(server, tmp_path):
    seen = []
    path = tmp_path / "file.bin"
    download(server.url, path, len(CONTENT), md5(CONTENT), lambda *progress: seen.append(progress))
    assert path.read_bytes() == CONTENT
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.bin"]
    assert seen[-1] == ("downloading", len(CONTENT), len(CONTENT))
    download(server.url, path, len(CONTENT), md5(CONTENT))
    assert len(server.asked) == 1  # it was there


def test_a_cut_connection_is_resumed_where_it_broke(server, tmp_path):
    server.cut_after = [300_000, 100_000]
    download(server.url, tmp_path / "file.bin", len(CONTENT), md5(CONTENT))
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert server.asked == [None, "bytes=300000-", "bytes=400000-"]


def test_a_download_that_gave_up_goes_on_when_it_is_started_again(server, tmp_path):
    server.cut_after = [100_000, 0, 0]
    with pytest.raises(DataError, match="the connection broke after 100,000 of 1,024,000 bytes"):
        download(server.url, tmp_path / "file.bin", len(CONTENT), md5(CONTENT))
    assert not (tmp_path / "file.bin").exists()
    server.asked.clear()
    download(server.url, tmp_path / "file.bin", len(CONTENT), md5(CONTENT))
    assert server.asked == ["bytes=100000-"]
    assert (tmp_path / "file.bin").read_bytes() == CONTENT


def test_a_server_that_cannot_resume_sends_all_of_it_again(server, tmp_path):
    server.cut_after, server.ranges = [300_000], False
    download(server.url, tmp_path / "file.bin", len(CONTENT), md5(CONTENT))
    assert (tmp_path / "file.bin").read_bytes() == CONTENT


@pytest.mark.parametrize(
    "served", [CONTENT[:-1] + b"x", CONTENT + b"more"], ids=["other", "longer"]
)
def test_a_wrong_checksum_leaves_nothing(server, tmp_path, served):
    server.content = served
    with pytest.raises(DataError, match="not the published file"):
        download(server.url, tmp_path / "file.bin", len(CONTENT), md5(CONTENT))
    assert list(tmp_path.iterdir()) == []


def test_a_missing_page_is_not_asked_for_again(server, tmp_path):
    with pytest.raises(DataError, match=r"/other cannot be downloaded \(Not Found\)"):
        download(server.url.replace("file.bin", "other"), tmp_path / "x", 10, md5(b""))
    assert len(server.asked) == 1


def archive_of(files):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


@pytest.fixture
def offered(server, monkeypatch):
    """Makes the server offer this archive in place of MovieLens-1M's."""

    def offer(content, url=server.url):
        server.content = content
        dataset = replace(
            known_dataset("movielens-1m"),
            archive=url,
            archive_bytes=len(content),
            archive_md5=md5(content),
        )
        monkeypatch.setattr(module, "known_dataset", lambda _: dataset)

    return offer


def test_get_unpacks_what_is_needed_into_the_cache(offered, server, cache):
    files = {"ml-1m/README": "terms", "ml-1m/ratings.dat": "1::2::3::4\n", "ml-1m/movies.dat": ""}
    offered(archive_of(files))
    path = get("movielens-1m")
    assert path == cache / "data" / "ml-1m" / "ratings.dat"
    assert path.read_text() == "1::2::3::4\n"
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["README", "ratings.dat"]
    assert [entry.name for entry in (cache / "data").iterdir()] == ["ml-1m"]
    assert get("movielens-1m") == path
    assert len(server.asked) == 1


@pytest.mark.parametrize("content", [b"no archive", archive_of({"other": "x"})])
def test_get_reports_an_archive_that_cannot_be_unpacked(offered, cache, content):
    offered(content)
    with pytest.raises(DataError, match="cannot be unpacked"):
        get("movielens-1m")
    assert not (cache / "data" / "ml-1m" / "ratings.dat").exists()


def test_without_a_server_get_says_which_file_to_put_where(offered, cache, monkeypatch):
    monkeypatch.setattr(module, "_PAUSE", 0.0)
    offered(b"anything", url="http://127.0.0.1:9/ml-1m.zip")
    with pytest.raises(DataError, match="cannot be downloaded") as caught:
        get("movielens-1m")
    assert f"put its file at {cache / 'data' / 'ml-1m' / 'ratings.dat'}" in str(caught.value)
    assert "https://grouplens.org/datasets/movielens/1m/" in str(caught.value)


def test_get_criteo_explains_where_it_comes_from(cache):
    with pytest.raises(DataError, match="licence") as caught:
        get("criteo")
    assert str(cache / "data" / "criteo" / "train.txt") in str(caught.value)


def test_get_of_what_is_generated_needs_nothing():
    assert get("synthetic") is None


def test_get_prefers_the_folder_that_was_named(tmp_path, monkeypatch):
    (tmp_path / "named" / "ml-1m").mkdir(parents=True)
    path = tmp_path / "named" / "ml-1m" / "ratings.dat"
    path.write_text("1::2::3::4\n")
    monkeypatch.setenv("FREQSGD_DATA", str(tmp_path / "named"))
    assert get("movielens-1m") == path
