# Everything a newcomer needs: `make audit` and `make test` set up .venv by themselves.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
ONLY ?=
# Python keeps what it compiles, also where the environment says not to: workers, and hundreds of commands, read it.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: audit test test-all bench lint lowest clean

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Glasshouse needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv .venv
	PIP_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $(STAMP)

# A synthetic county, its published tables, every attack on them, every protection: out/audit/report.html.
audit: $(STAMP)
	$(BIN)/glasshouse audit --out out/audit --overwrite

test: lint
	$(BIN)/python -m pytest -n auto -m 'not slow'

test-all: lint
	GLASSHOUSE_TESTS=all $(BIN)/python -m pytest -n auto --cov --cov-report=term:skip-covered --cov-fail-under=90

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy --num-workers 2

# The lowest versions that pyproject.toml allows, and the pinned ones, each in a new environment; needs a network for pip.
lowest:
	$(PYTHON) -m tests.lowest

bench: $(STAMP)
	$(BIN)/python -m benchmarks $(ONLY)

clean:
	rm -rf .venv out .mypy_cache .ruff_cache .pytest_cache .coverage
