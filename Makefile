.DEFAULT_GOAL := test
.PHONY: venv test test-all lint demo clean

PYTHON ?= python3
BIN := .venv/bin
TESTS := $(BIN)/pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

venv: .venv/.ready

.venv/.ready: requirements.lock pyproject.toml
	@echo "making .venv from requirements.lock"
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --quiet --disable-pip-version-check --requirement requirements.lock
	@$(BIN)/pip install --quiet --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@touch $@

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	$(TESTS) -m "not long"

test-all: lint
	$(TESTS)

demo: venv
	$(BIN)/sfora-ray pack run configs/glyphs/demo.yaml

clean:
	@rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find sfora_ray jobs tests -name __pycache__ -type d -prune -exec rm -rf {} +
