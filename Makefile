# Everything a newcomer needs: `make audit` and `make test` set up .venv by themselves.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
ONLY ?=

.PHONY: audit test test-all bench lint clean

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Glasshouse needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv .venv
	PIP_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $(STAMP)

# Until the audit is built: a synthetic county, its 34 published tables, do they agree, the records rebuilt from the
# tables alone, how sure that is, who could be identified, and what must be true of households.
audit: $(STAMP)
	$(BIN)/glasshouse synthesize --persons 20000 --seed 1 --out out/audit/county --overwrite
	$(BIN)/glasshouse tabulate out/audit/county/hdf.parquet --scenario sf1-person --out out/audit/tables.csv.gz --overwrite
	$(BIN)/glasshouse check out/audit/tables.csv.gz --scenario sf1-person
	$(BIN)/glasshouse check out/audit/tables.csv.gz --scenario sf1-person --json > out/audit/summary.json
	chmod 600 out/audit/summary.json
	$(BIN)/glasshouse reconstruct out/audit/tables.csv.gz --scenario sf1-person --out out/audit/rebuilt --overwrite
	$(BIN)/glasshouse vary out/audit/tables.csv.gz --scenario sf1-person --out out/audit/solvar --overwrite
	$(BIN)/glasshouse reidentify out/audit/rebuilt --vary out/audit/solvar --truth out/audit/county/cef.parquet \
	  --published out/audit/county/hdf.parquet --attacker out/audit/county/commercial.parquet \
	  --attacker out/audit/county/attacker-perfect.parquet --leave-one-out 100 --out out/audit/risk --overwrite
	$(BIN)/glasshouse tabulate out/audit/county/households.parquet --scenario dhc-household --out out/audit/households.csv.gz --overwrite
	$(BIN)/glasshouse verify out/audit/households.csv.gz --scenario dhc-household --pick median:20 \
	  --truth out/audit/county/households.parquet --out out/audit/claims --overwrite

test: lint
	$(BIN)/python -m pytest -n auto -m 'not slow'

test-all: lint
	$(BIN)/python -m pytest -n auto --cov --cov-report=term:skip-covered --cov-fail-under=90

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(STAMP)
	$(BIN)/python -m benchmarks $(ONLY)

clean:
	rm -rf .venv out .mypy_cache .ruff_cache .pytest_cache .coverage
