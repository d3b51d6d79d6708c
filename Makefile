# make quickstart   install only murp into .venv, train MuRP on the bundled graph, predict and draw
# make site         build the documentation into site/; make site-serve: show it while you write
# make test         also install the developers' tools, then lint, type-check and run every test, the numeric tests again
#                   with several sets of processor instructions
# make bench        measure on the CPU into results/ (MURP_DATA names the folder with WN18RR); make bench-gpu: on a GPU
# make figures      write the numbers in README.md and the pages under docs/ from results/
# make audit        check every pinned package: withdrawn, outdated, known vulnerabilities (needs the network)

PYTHON ?= python3
BIN := .venv/bin
RUN := runs/quickstart
# Some containers switch Python's bytecode cache off: then every test process would compile everything again.
unexport PYTHONDONTWRITEBYTECODE

# PyTorch's builds for CPUs are several times smaller than those for NVIDIA's GPUs. `make quickstart TORCH_INDEX=URL`
# takes PyTorch from another package index, such as the one with CPU builds on PyTorch's installation page.
TORCH_INDEX ?=
# Python compiles a module when it is first imported, which is faster and smaller than compiling everything now.
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt

.PHONY: quickstart site site-serve test lint types imports unit instructions gpu bench bench-gpu figures audit clean

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "murp needs Python 3.11 or later: make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	@echo "Installing murp into .venv. README.md says how long this takes, and how much disk space."
ifneq ($(TORCH_INDEX),)
	$(INSTALL) --no-deps --index-url $(TORCH_INDEX) torch
endif
	$(INSTALL) -e .
	find .venv -name __pycache__ -prune -exec rm -rf {} +  # pip's bytecode, which is made again if pip is used
	@echo "The environment .venv takes $$(du -sm .venv | cut -f1) MiB."
	touch $@

# What the tests, the benchmarks and the site need beside murp itself.
.venv/tools: .venv/installed
	@echo "Installing the developers' tools into .venv."
	$(INSTALL) -e '.[dev,tensorboard]'
	touch $@

# An interrupted run is continued.
$(RUN)/finished: | .venv/installed
	if test -d $(RUN); then $(BIN)/murp train --resume $(RUN); \
	else $(BIN)/murp train --data wordnet-mini --model murp --dim 40 --epochs 60 --out $(RUN); fi
	touch $@

quickstart: $(RUN)/finished
	@echo; $(BIN)/murp evaluate $(RUN)
	@echo; $(BIN)/murp predict $(RUN) --head asia.n.01 --relation has_part -k 10
	@echo; $(BIN)/murp plot $(RUN) disk --head asia.n.01 --relation has_part --out $(RUN)/asia.png --force
	@echo
	@echo "Next: ask it something else     $(BIN)/murp predict $(RUN) --head chair.n.01 --relation has_part"
	@echo "      see it in the browser     $(BIN)/murp explore $(RUN)"
	@echo "      train on your own facts   $(BIN)/murp train --data my-facts.tsv --out runs/mine"
	@echo "      see every option          $(BIN)/murp train --help"

# Two jobs at a time, in this order: the type check, half a minute on one core, runs beside the tests.
test: .venv/tools
	$(MAKE) --no-print-directory --jobs=2 lint types imports unit instructions gpu

lint: .venv/tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/tools
	$(BIN)/mypy

imports: .venv/tools
	$(BIN)/lint-imports

# Three processes more than cores: tests wait for a fifth of their time, for a page, a child process or a connection.
unit: .venv/tools
	$(BIN)/pytest -n $$($(BIN)/python -c 'import os; print(len(os.sched_getaffinity(0)) + 3 if hasattr(os, "sched_getaffinity") else "auto")') --dist worksteal

# The numeric tests once more with other sets of instructions, as on other processors. Always after unit, since both use
# all cores.
instructions: .venv/tools | unit
	$(BIN)/python reliability/instructions.py

# What needs a GPU, if PyTorch sees one; all other tests do without it on every machine.
gpu: .venv/tools | instructions
	if $(BIN)/python -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; then $(BIN)/pytest -m gpu -n 4; fi

bench: .venv/tools
	$(BIN)/python benchmarks/cpu_step.py --out results/cpu_step.json
	$(BIN)/python benchmarks/cpu_evaluation.py --out results/cpu_evaluation.json
	$(BIN)/python benchmarks/cpu_neighbours.py --out results/cpu_neighbours.json
	$(BIN)/python benchmarks/cpu_many_entities.py --out results/cpu_many_entities.json
	$(BIN)/python benchmarks/start_up.py --out results/cpu_start_up.json
	$(BIN)/python benchmarks/cpu_reading.py --out results/cpu_reading.json
	$(BIN)/python benchmarks/plots.py --out results/cpu_plots.json
	$(BIN)/python benchmarks/cpu_earlier.py --out results/cpu_earlier.json
	$(BIN)/python benchmarks/any_model.py --out results/cpu_any_model.json

bench-gpu: .venv/tools
	$(BIN)/python benchmarks/gpu.py --out results
	$(BIN)/python benchmarks/any_model.py --device cuda --out results/gpu_any_model.json
	$(BIN)/python benchmarks/time_to_quality.py --device cuda --seeds 3 --out results/gpu_time_to_quality.json
	$(BIN)/python benchmarks/time_to_quality.py --device cuda --seeds 3 --data FB15k-237 --only matrices \
		--out results/gpu_time_to_quality_fb15k-237.json
	$(BIN)/python benchmarks/protocols.py --device cuda --data WN18RR --out results/protocols_wn18rr.json
	$(BIN)/python benchmarks/protocols.py --device cuda --data FB15k-237 --out results/protocols_fb15k-237.json

# The README's table of recipes is made from what recipe_results.py writes, so that one is first.
figures: .venv/tools
	$(BIN)/python tools/recipe_results.py
	$(BIN)/python tools/figures.py
	$(BIN)/python tools/benchmarks_page.py
	$(BIN)/python tools/protocols_page.py
	$(BIN)/python tools/reliability_page.py
	$(BIN)/python tools/field_page.py
	$(BIN)/python tools/scale_plan.py
	$(BIN)/python tools/guides.py
	$(BIN)/murp paper report

# A warning is an error: a dead link, or a page that is not in the navigation. NO_MKDOCS_2_WARNING silences the theme's
# advertisement of its successor.
site: .venv/tools
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=src $(BIN)/python -m mkdocs build --strict

site-serve: .venv/tools
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=src $(BIN)/python -m mkdocs serve

# The audit tools have their own environment: their dependencies are not audited.
audit: .venv/tools
	test -x .venv-audit/bin/pip-audit || \
		{ $(PYTHON) -m venv .venv-audit && .venv-audit/bin/pip install --quiet --upgrade pip pip-audit; }
	$(BIN)/python tools/audit.py .venv-audit/bin --out results/reliability_audit.json

clean:
	rm -rf .venv .venv-audit site
