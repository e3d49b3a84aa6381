# Mainspring. Needs Python 3.11 or newer and make, nothing else.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What the demo needs, and what the tests and checks need beyond it.
RUN_EXTRAS := scheduler,worker,local
DEV_EXTRAS := $(RUN_EXTRAS),postgres,registry,dev
PIP := $(BIN)/python -m pip --disable-pip-version-check
INSTALL := $(PIP) install --quiet --constraint constraints.txt
# Mostly they wait for brokers and processes, so four keep two cores busy; `make test TESTS=tests/core WORKERS=0` runs a part in
# this process alone.
WORKERS ?= 4
TESTS ?= tests
PYTEST_ARGS ?=
# Of the simulation: which seeds, how many virtual seconds of faults for each, how many processes.
SEEDS ?= 1-300
SECONDS ?= 2000
JOBS ?= 2
SIM_ARGS ?=
# Of the storm of workers in its long form; the jobs follow from it.
KILLS ?= 300
# Where the reports and the plots of the performance page are.
PLOTS := docs/performance

.PHONY: help demo test sim brokers check venv bench plots constraints clean

help: ## Show this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  \033[36m%-12s\033[0m %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(VENV)/.run ## A whole life: Kafka, schedulers, workers, jobs, kill -9, and the proof
	@$(BIN)/mainspring demo

test: $(VENV)/.dev ## All tests, on a real broker that they share
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(PYTEST_ARGS) $(TESTS)

sim: $(VENV)/.dev ## Simulate an installation through its faults: make sim SEEDS=1-300
	@$(BIN)/python -m tests.sim.run --seeds $(SEEDS) --seconds $(SECONDS) --jobs $(JOBS) $(SIM_ARGS)

chronos: $(VENV)/.dev ## 200 schedules through kills and pauses of every role, brokers too: 5,000 targets, none missed
	@$(BIN)/python -m pytest $(PYTEST_ARGS) tests/proof/chronos_long.py

chaos: $(VENV)/.dev ## An exact copy through kills of schedulers; 300 kills of workers (KILLS=…): no job lost, repeats counted
	@KILLS=$(KILLS) $(BIN)/python -m pytest $(PYTEST_ARGS) tests/proof/chaos_long.py

brokers: $(VENV)/.dev ## Three brokers killed, ended, paused and out of disk under load, two of them at once: nothing lost
	@$(BIN)/python -m pytest $(PYTEST_ARGS) tests/proof/brokers_long.py

check: $(VENV)/.dev ## Lint, format, types, import contracts, generated docs, compose file
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy src topics processors workers schemas tests
	$(BIN)/lint-imports --no-logo
	$(if $(wildcard tools/generate_docs.py),$(BIN)/python tools/generate_docs.py --check)
	$(BIN)/python -m pytest -q tests/house

venv: $(VENV)/.dev ## Set up .venv with everything that the tests and checks need

bench: $(VENV)/.run ## Measure throughput, latency, lateness, herd, schedules, restart and idle beside this machine's limit
	@for figure in throughput latency lateness herd schedules restart idle; do $(BIN)/mainspring bench $$figure || exit 1; done

# Each report replaces the former one only when it is whole.
plots: $(VENV)/.dev ## Measure at scale on a quiet machine, and draw the plots of docs/performance.md: most of an hour
	@run() { name=$(PLOTS)/$$1; shift; "$$@" >$$name.new && mv $$name.new $$name.json || { rm -f $$name.new; exit 1; }; }; \
	run throughput $(BIN)/mainspring bench throughput -o json; \
	run lateness $(BIN)/mainspring bench lateness -o json; \
	run herd $(BIN)/mainspring bench herd --jobs 1000000 -o json; \
	for jobs in 10000 100000 1000000; do \
	  run restart-$$jobs $(BIN)/mainspring bench restart --jobs $$jobs -o json; done; \
	for jobs in 200000 1000000 10000000; do \
	  $(BIN)/python benchmarks/pending.py --pending $$jobs --json $(PLOTS)/pending-$$jobs.json || exit 1; done; \
	$(BIN)/python -m benchmarks.page

constraints: $(VENV)/.dev ## Renew constraints.txt from what is installed, after an upgrade that passes the tests
	@{ head -n 1 constraints.txt; $(PIP) freeze --exclude-editable; } > constraints.new && mv constraints.new constraints.txt

clean: ## Remove .venv, caches and build results
	rm -rf $(VENV) build dist schemas/mainspring/schemas/_native.*.so .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp each, so that a warm start costs nothing.
$(VENV)/.run: pyproject.toml constraints.txt hatch_build.py $(wildcard schemas/native/*) | $(BIN)/python
	@echo "Installing Mainspring into $(VENV) …" >&2
	@$(INSTALL) --editable '.[$(RUN_EXTRAS)]'
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	@echo "Installing what the tests and checks need …" >&2
	@$(INSTALL) --editable '.[$(DEV_EXTRAS)]'
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Mainspring needs Python 3.11 or newer and $(PYTHON) is not; name another: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "$(PYTHON) cannot make virtual environments; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
