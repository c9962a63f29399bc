# `make demo` and `make test` need Python 3.11 or later and make, nothing else; everything goes into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test slow seeds lint page mnist clean

demo: $(VENV)/.installed
	$(BIN)/popcd demo

test: $(VENV)/.tested
	$(BIN)/pytest -n 2 --cov --cov-report=term

slow: $(VENV)/.tested
	$(BIN)/pytest -m slow -rP

seeds: $(VENV)/.tested
	$(BIN)/pytest -n 2 -m statistical --seeds 0-99

lint: $(VENV)/.linted
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

page: $(VENV)/.installed
	$(BIN)/popcd report results --out docs/reproduction.md

mnist: $(VENV)/.installed
	$(BIN)/popcd train --data mnist --hidden 500 --estimator pcd --centered --batch-size 500 --learning-rate 0.05 \
	  --schedule linear --iterations 20000 --out runs/mnist
	$(BIN)/popcd evaluate runs/mnist --data mnist
	$(BIN)/popcd sample runs/mnist -n 100 --image 28x28 --out runs/mnist/samples.npz

clean:
	rm -rf $(VENV)

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "popcd needs Python 3.11 or later; name one with make PYTHON=/path/to/python3.x" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.installed: $(VENV)/.created pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.tested: $(VENV)/.installed
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@

$(VENV)/.linted: $(VENV)/.tested
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[lint]'
	touch $@
