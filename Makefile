# make quickstart   install murp alone into .venv, train MuRP on the bundled graph, ask it, draw: 2 to 4 minutes in all
# make site         build the documentation into site/; make site-serve: show it while you write
# make test         install the developers' tools too, then lint, type-check and run every test, the numeric ones again
#                   under several choices of instructions
# make bench        measure on the CPU into results/ (MURP_DATA names the folder with WN18RR); make bench-gpu: on a GPU
# make figures      write the figures of README.md and of the pages under docs/ from results/
# make audit        ask about every pinned package: withdrawn, behind, known vulnerabilities (needs the network)

PYTHON ?= python3
BIN := .venv/bin
RUN := runs/quickstart
# Some containers forbid Python to keep what it has compiled: every process of the tests would compile everything again.
unexport PYTHONDONTWRITEBYTECODE

# PyTorch for CPUs takes 0.7 GB, that for NVIDIA's GPUs several. `make quickstart TORCH_INDEX=URL` takes PyTorch from
# another package index, such as the one with builds for CPUs that PyTorch's installation page names.
TORCH_INDEX ?=
# Python compiles what it imports when it first does: less to wait for, and less to keep, than all of it now.
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt

.PHONY: quickstart site site-serve test lint types imports unit instructions bench bench-gpu figures audit clean

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "murp needs Python 3.11 or later: make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	@echo "Installing murp into .venv: about 1.3 GB, one to three minutes."
ifneq ($(TORCH_INDEX),)
	$(INSTALL) --no-deps --index-url $(TORCH_INDEX) torch
endif
	$(INSTALL) -e .
	@echo "The environment .venv takes $$(du -sh .venv | cut -f1)."
	touch $@

# What the tests, the benchmarks and the site need beside murp itself.
.venv/tools: .venv/installed
	@echo "Installing the developers' tools into .venv: about 1.4 GB more."
	$(INSTALL) -e '.[dev,tensorboard]'
	touch $@

# A run that was interrupted is continued.
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

# Two at a time, begun in this order: the types, which take one core half a minute, are checked beside the tests.
test: .venv/tools
	$(MAKE) --no-print-directory --jobs=2 lint types imports unit instructions

lint: .venv/tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/tools
	$(BIN)/mypy

imports: .venv/tools
	$(BIN)/lint-imports

# Two processes more than there are cores: a fifth of the time of a test is waiting, for a page, a child, a connection.
unit: .venv/tools
	$(BIN)/pytest -n $$($(BIN)/python -c 'import os; print(len(os.sched_getaffinity(0)) + 2 if hasattr(os, "sched_getaffinity") else "auto")') --dist worksteal

# The numeric tests once more under other choices of instructions: as if on other processors. After unit under make -j
# too, since both use all cores.
instructions: .venv/tools | unit
	$(BIN)/python reliability/instructions.py

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

figures: .venv/tools
	$(BIN)/python tools/figures.py
	$(BIN)/python tools/benchmarks_page.py
	$(BIN)/python tools/protocols_page.py
	$(BIN)/python tools/reliability_page.py
	$(BIN)/python tools/field_page.py
	$(BIN)/python tools/recipe_results.py
	$(BIN)/python tools/scale_plan.py
	$(BIN)/python tools/guides.py
	$(BIN)/murp paper report

# Without warnings: a dead link, or a page that the navigation does not name, stops it. NO_MKDOCS_2_WARNING silences
# the theme's advertisement of its successor.
site: .venv/tools
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=src $(BIN)/python -m mkdocs build --strict

site-serve: .venv/tools
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=src $(BIN)/python -m mkdocs serve

# The tools have a folder of their own: what they need is no part of what is audited.
audit: .venv/tools
	test -x .venv-audit/bin/pip-audit || \
		{ $(PYTHON) -m venv .venv-audit && .venv-audit/bin/pip install --quiet --upgrade pip pip-audit; }
	$(BIN)/python tools/audit.py .venv-audit/bin --out results/reliability_audit.json

clean:
	rm -rf .venv .venv-audit site
