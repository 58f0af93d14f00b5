from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

import freqsgd

pytestmark = pytest.mark.ci
ROOT = Path(__file__).parents[1]
BESIDE = {"LICENSE", "MANIFEST.in", "PKG-INFO", "README.md", "pyproject.toml", "setup.cfg"}


def run(*command: str | Path, **options) -> str:
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def tracked() -> list[str]:
    """Files that git knows of and that are there."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("packages are built of what git tracks, and there is no git or no clone")
    names = run("git", "ls-files", "-z", cwd=ROOT).split("\0")
    return [name for name in names if name and (ROOT / name).exists()]


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A folder with a wheel and a source distribution, made outside of the work tree."""
    pytest.importorskip("build")
    copy, folder = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("dist")
    for name in tracked():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, copy / name)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, cwd=copy)
    return folder


def clean_environment(folder: Path, package: Path) -> Path:
    """The binaries of a new environment that holds the package, and nothing else of its own.

    What the package needs is that of the running interpreter. Its ``.pth`` files are not read, so
    that a clone which is installed there for editing is not found.
    """
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    (own,) = folder.glob("lib/python*/site-packages")
    others = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    (own / "others.pth").write_text("\n".join(others), "utf-8")
    binaries = folder / "bin"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    offline = ["--no-deps", "--no-index", "--no-build-isolation", "--ignore-installed"]
    run(*pip, "--python", binaries / "python", "install", *offline, package)
    found = run(binaries / "python", "-c", "import freqsgd; print(freqsgd.__file__)", cwd=folder)
    assert Path(found.strip()) == own / "freqsgd" / "__init__.py"
    return binaries


def test_packages_hold_what_is_tracked_of_the_package_and_little_else(built):
    sources = {name.removeprefix("src/") for name in tracked() if name.startswith("src/freqsgd/")}
    assert {"freqsgd/py.typed", "freqsgd/report/templates/page.css"} <= sources
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        names = {name for name in file.namelist() if ".dist-info/" not in name}
    assert names == sources
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        members = [each.name.partition("/")[2] for each in file.getmembers() if each.isfile()]
    names = {name for name in members if not name.startswith("src/freqsgd.egg-info/")}
    assert names == BESIDE | {f"src/{name}" for name in sources}


def test_packages_install_where_nothing_is_and_run(built, tmp_path):
    """The wheel runs; what the source distribution installs is the same to the byte."""
    installed = []
    for kind in ("*.tar.gz", "*.whl"):
        (package,) = built.glob(kind)
        binaries = clean_environment(tmp_path / kind[-3:], package)
        (own,) = binaries.parent.glob("lib/python*/site-packages/freqsgd")
        files = [path for path in own.rglob("*") if path.suffix != ".pyc" and path.is_file()]
        installed.append({str(path.relative_to(own)): path.read_bytes() for path in files})
    assert installed[0] == installed[1]
    command = binaries / "freqsgd"
    assert run(command, "--version", cwd=tmp_path).strip() == freqsgd.__version__
    options = "--samples 5000 --dim 4 --epochs 2 --optimizers sgd,cfsgd --out demo"
    run(command, "compare", *options.split(), cwd=tmp_path)
    results = json.loads((tmp_path / "demo" / "results.json").read_text("utf-8"))
    assert [each["optimizer"] for each in results["runs"]] == ["sgd", "cfsgd"]
    assert (tmp_path / "demo" / "report.html").stat().st_size > 100_000
