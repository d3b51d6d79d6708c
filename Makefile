# make quickstart   set up, train MuRP on the bundled graph, show what came out
# make test         set up, then lint, type-check and run every test

PYTHON ?= python3
BIN := .venv/bin
RUN := runs/quickstart

.PHONY: quickstart test lint types imports unit clean

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "murp needs Python 3.11 or later: make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,tensorboard]'
	touch $@

# A run that was interrupted is continued.
$(RUN)/finished: | .venv/installed
	if test -d $(RUN); then $(BIN)/murp train --resume $(RUN); \
	else $(BIN)/murp train --data wordnet-mini --model murp --dim 40 --epochs 60 --out $(RUN); fi
	touch $@

quickstart: $(RUN)/finished
	@echo; $(BIN)/murp evaluate $(RUN)
	@echo; $(BIN)/murp predict $(RUN) --head asia.n.01 --relation has_part -k 10
	@echo; $(BIN)/murp plot $(RUN) disk --head asia.n.01 --relation has_part --out $(RUN)/asia.png
	@echo
	@echo "Next: ask it something else     $(BIN)/murp predict $(RUN) --head chair.n.01 --relation has_part"
	@echo "      train on your own facts   $(BIN)/murp train --data my-facts.tsv --out runs/mine"
	@echo "      see every option          $(BIN)/murp train --help"

test: lint types imports unit

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/installed
	$(BIN)/mypy

imports: .venv/installed
	$(BIN)/lint-imports

unit: .venv/installed
	$(BIN)/pytest -n auto

clean:
	rm -rf .venv
