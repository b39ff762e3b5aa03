# Needs Python 3.11 or newer and make, nothing else.
PYTHON ?= python3
BIN := .venv/bin
COUNT ?= 10000
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-browser fuzz lint docs picture clean

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' $(MAKEFILE_LIST) | expand -t 24

setup: .venv/all ## install the srno command with every extra into .venv
	@echo "ready: $(BIN)/srno --help"

demo: .venv/core ## enlarge a bundled picture by 4
	@mkdir -p demo
	$(BIN)/srno upscale src/srno/examples/cat.png -s 4 -o demo/cat_4x.png --overwrite -v

test: lint docs ## run ruff, pyright, the docs build and the tests; browser tests are skipped without chromium
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n logical --maxprocesses 8 --dist loadfile

test-browser: .venv/all ## run only the tests of the web page in a real browser
	$(BIN)/python -m pytest -q -m browser

fuzz: .venv/all ## damage files and requests at random, COUNT of each kind (10000), and count what must not happen
	PYTHONPATH=tests $(BIN)/python -m fuzz --count $(COUNT)

lint: .venv/all ## run ruff and pyright
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright
	$(BIN)/pyright -p tests

docs: .venv/all ## build the documentation into build/site, strictly
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

picture: .venv/core ## draw the before/after picture of the README
	$(BIN)/python benchmarks/before_after.py

clean: ## remove what was built and the environment
	rm -rf .venv demo dist build .pytest_cache .ruff_cache .hypothesis

.venv/core: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) -e .
	@touch $@

.venv/all: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) -e '.[dev]'
	@touch $@ .venv/core

.venv/bin/python:
	$(PYTHON) -m venv .venv
