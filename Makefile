# `make demo` and `make test` each set up their own virtual environment in $(VENV) and use it.
# Needed beforehand: Python 3.11 or newer, pip, make. Another interpreter: make test PYTHON=python3.13

VENV ?= .venv
PYTHON ?=
PYTEST_ARGS ?=

BIN := $(VENV)/bin
SOURCES := cormorant tests benchmarks scripts
# Quiet, and the same whatever the machine's own settings are.
export PIP_DISABLE_PIP_VERSION_CHECK := 1
unexport PYTHONPATH PYTHONHOME

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast test-slow lint types format bench docs clean

help:  ## list what can be made
	@sed -n 's/^\([a-z-]*\):.*##  */\1\t/p' $(MAKEFILE_LIST) | expand -t 14

$(BIN)/.ready-run: pyproject.toml scripts/venv.sh
	@sh scripts/venv.sh '$(VENV)' '$(PYTHON)' '.[local]'
	@touch $@

$(BIN)/.ready-dev: $(BIN)/.ready-run
	@sh scripts/venv.sh '$(VENV)' '$(PYTHON)' '.[local,dev]'
	@touch $@

demo: $(BIN)/.ready-run  ## ask a real bilingual corpus a few questions, and judge the answers
	@$(BIN)/cormorant demo

test: lint types  ## all checks and tests, a sample of the slow ones among them
	$(BIN)/python -m pytest -m 'not slow' $(PYTEST_ARGS)

test-fast: $(BIN)/.ready-dev  ## unit, property and docs tests alone
	$(BIN)/python -m pytest -m 'not slow' tests/unit tests/property tests/docs $(PYTEST_ARGS)

test-slow: $(BIN)/.ready-dev  ## the slow tests, all of them
	$(BIN)/python -m pytest -m slow $(PYTEST_ARGS)

lint: $(BIN)/.ready-dev  ## style, formatting and the import contracts
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/lint-imports

types: $(BIN)/.ready-dev  ## mypy, strict
	$(BIN)/mypy

format: $(BIN)/.ready-dev  ## let ruff rewrite what it can
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

bench: $(BIN)/.ready-dev  ## print the benchmarks' figures
	@for file in $$(grep -l '__main__' benchmarks/*.py); do echo "== $$file"; $(BIN)/python "$$file" || exit 1; done

docs: $(BIN)/.ready-dev  ## write the generated reference pages
	$(BIN)/python -m cormorant.cli.reference > docs/cli.md

clean:  ## remove the environment and all caches
	rm -rf '$(VENV)' build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
