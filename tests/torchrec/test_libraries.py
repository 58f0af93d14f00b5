"""TorchRec that is missing or unfit is reported with what fits."""

from __future__ import annotations

import importlib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from freqsgd.errors import DataError
from freqsgd.torchrec.limits import INSTALL, require_torchrec
from tests.test_import import loaded_by

FIT = {"torch": "2.13.0+cpu", "fbgemm-gpu-cpu": "1.8.0", "torchrec": "1.8.0"}


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Pretend that these versions are installed, and that loading them fails with an error."""

    def pretend(versions: dict[str, str], error: Exception | None = None) -> None:
        def version(name: str) -> str:
            if name not in versions:
                raise metadata.PackageNotFoundError(name)
            return versions[name]

        def load(name: str) -> None:
            if error is not None:
                raise error

        monkeypatch.setattr(metadata, "version", version)
        monkeypatch.setattr(importlib, "import_module", load)

    return pretend


def refusal() -> str:
    with pytest.raises(DataError) as refused:
        require_torchrec()
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize("fbgemm", ["fbgemm-gpu-cpu", "fbgemm-gpu"])
def test_versions_that_fit_are_let_through(install: Any, fbgemm: str) -> None:
    install({"torch": "2.13.0", fbgemm: "1.8.0", "torchrec": "1.8.0"})
    require_torchrec()


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"torchrec": None}, "found torch 2.13.0+cpu, fbgemm-gpu-cpu 1.8.0, no torchrec: "),
        ({"fbgemm-gpu-cpu": None}, "found torch 2.13.0+cpu, no fbgemm-gpu-cpu, torchrec 1.8.0: "),
        ({"torch": "2.9.1"}, "found torch 2.9.1, fbgemm-gpu-cpu 1.8.0, torchrec 1.8.0: "),
        ({"torchrec": "1.4.0"}, "found torch 2.13.0+cpu, fbgemm-gpu-cpu 1.8.0, torchrec 1.4.0: "),
    ],
)
def test_other_versions_are_refused_with_those_that_fit(
    install: Any, changed: dict[str, str | None], found: str
) -> None:
    install({name: version for name, version in (FIT | changed).items() if version is not None})
    said = refusal()
    assert said.startswith(
        "TorchRec needs torch 2.13.0, fbgemm-gpu-cpu 1.8.0, torchrec 1.8.0; " + found
    )
    assert all(line in said for line in INSTALL)


@pytest.mark.parametrize(
    "error",
    [
        ImportError("undefined symbol: _ZN3c106"),
        OSError("fbgemm_gpu_py.so: cannot open\nmore"),
        RuntimeError("operator fbgemm::x does not exist"),
    ],
)
def test_what_does_not_load_is_refused_with_the_reason(install: Any, error: Exception) -> None:
    install(FIT, error)
    assert f"which do not load ({str(error).splitlines()[0]})" in refusal()


def test_importing_the_package_does_not_load_torchrec() -> None:
    assert not {"torchrec", "fbgemm_gpu"} & loaded_by("import freqsgd.torchrec")


def test_the_readme_has_the_same_lines() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    assert all(line in readme for line in INSTALL)
