# Needs Python 3.11 or newer and make, nothing else.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: setup demo test test-browser lint picture clean

setup: .venv/all ## the srno command with every extra, in .venv
	@echo "ready: $(BIN)/srno --help"

demo: .venv/core ## upscale the bundled example by 4
	@mkdir -p demo
	$(BIN)/srno upscale src/srno/examples/cat.png -s 4 -o demo/cat_4x.png --overwrite -v

test: lint ## ruff, pyright and the tests; those in a real browser are skipped where there is no chromium
	$(BIN)/python -m pytest -q

test-browser: .venv/all ## only the web page, in a real browser
	$(BIN)/python -m pytest -q -m browser

lint: .venv/all
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright

picture: .venv/core ## the before/after picture of the README
	$(BIN)/python benchmarks/before_after.py

clean:
	rm -rf .venv demo dist build .pytest_cache .ruff_cache .hypothesis

.venv/core: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) -e .
	@touch $@

.venv/all: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) -e '.[dev]'
	@touch $@ .venv/core

.venv/bin/python:
	$(PYTHON) -m venv .venv
