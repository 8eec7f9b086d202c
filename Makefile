# One command each; every target sets up what it needs. `make` lists them.

PYTHON ?= python3
VENV := .venv
DOJO := .venv-security
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null)

# A finished .venv names the Python and the folder it was made for. One that is half made, that has lost its
# interpreter, was moved, or is of another Python version does not say this, and is made again.
WANTED := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) $(CURDIR)
FOUND := $(shell $(BIN)/python -c pass 2>/dev/null && cat $(VENV)/.made 2>/dev/null)

# The lock is used as constraints. It carries no hashes: with hashes pip refuses the editable install.
LOCK := requirements.lock
ifneq ($(UV),)
  INSTALLER := uv
  CREATE = $(UV) venv --quiet --clear --seed --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" $(VENV)
  INSTALL = $(UV) pip install --quiet --python $(BIN)/python --constraint $(LOCK)
else
  INSTALLER := pip
  CREATE = $(PYTHON) -m venv --clear $(VENV) && $(PIP) install -qq --upgrade 'pip>=25.1'
  INSTALL = $(PIP) install -qq --constraint $(LOCK)
endif
PIP = $(BIN)/python -m pip --disable-pip-version-check

# A worker more than cores: a third of the tests' time goes by in waiting for other processes.
WORKERS = $(shell $(PYTHON) -c 'import os; print(min((os.cpu_count() or 1) + 1, 4))')

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test check bench bench-security live mutate simulate kills studio format docs lock clean

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.runtime ## Set up and run the main example: a backfill that is broken three ways and mended
	@$(BIN)/kintsugi demo backfill $(ARGS)

test: $(VENV)/.dev ## Set up and run the tests (ARGS="-k name" for some, ARGS="-n 0" in one process)
	@# What is timed is not timed beside other tests.
	@$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal $(or $(ARGS),--ignore tests/benchmarks); \
		ended=$$?; $(if $(ARGS),,$(BIN)/python -m pytest tests/benchmarks &&) exit $$ended

check: $(VENV)/.dev ## Set up and check format, lint, types and the direction of imports
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.dev ## Measure makespan, cost per step and growth of a long run (ARGS="--steps 300")
	@$(BIN)/python -m tests.benchmarks.makespan $(ARGS)

bench-security: $(DOJO)/.made ## Set up AgentDojo beside and let a model obey every injection (half an hour; ARGS="--each 10")
	@$(DOJO)/bin/python -m tests.security $(ARGS)

live: $(VENV)/.live ## Fetch a model (FROM=FILE, an address, pip), serve it, do the live tasks (ARGS="--runs 3 --plain")
	@$(BIN)/python -m tests.live --fetch "$(FROM)" $(or $(ARGS),--minutes 5)

mutate: $(VENV)/.runtime ## Mutate one constraint at every point of the three scenarios (about ten minutes)
	@for each in backfill config-report closing; do $(BIN)/kintsugi mutate $$each $(ARGS) || exit $$?; echo; done

simulate: $(VENV)/.dev ## Hold the invariants over random runs (ARGS="--runs 1000000", ARGS="--seed 17")
	@$(BIN)/python -m tests.simulation $(ARGS)

kills: $(VENV)/.dev ## Kill runs anywhere and resume them (ARGS="--schedules 1000 --database postgres", ARGS="--seed 17")
	@$(BIN)/python -m tests.simulation.kills $(ARGS)

studio: $(VENV)/.studio ## Set up and serve runtime and scenarios to LangGraph Studio, from this machine alone
	@LANGSMITH_TRACING=false LANGGRAPH_NO_VERSION_CHECK=true LANGGRAPH_CLI_NO_ANALYTICS=1 \
		$(BIN)/langgraph dev --n-jobs-per-worker 10 $(ARGS)

format: $(VENV)/.dev ## Format, and fix what lint can fix
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: $(VENV)/.runtime ## Write the reference pages (API, settings, trace records) anew from the code
	@$(BIN)/python -m agent.reference

lock: $(VENV)/.made ## Resolve requirements.lock again (ARGS=--upgrade for newer releases)
	@test -n "$(UV)" || $(PIP) install -qq uv
	$(or $(UV),$(BIN)/uv) pip compile --quiet --universal --python-version 3.11 --all-extras --group dev \
		--no-header --no-annotate --no-emit-index-url --no-emit-find-links \
		--output-file $(LOCK) $(ARGS) pyproject.toml

clean: ## Remove the environment and everything generated; runs kept in .kintsugi stay
	rm -rf $(VENV) $(DOJO) .langgraph_api .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -rf build dist .coverage htmlcov
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Not the lock's: AgentDojo needs versions that it excludes.
$(DOJO)/.made: $(VENV)/.runtime pyproject.toml
	@echo "Making $(DOJO) with AgentDojo and the clients it brings"
	@$(BIN)/python -m venv --clear $(DOJO)
	@$(DOJO)/bin/python -m pip install -qq --disable-pip-version-check --upgrade 'pip>=25.1'
	@$(DOJO)/bin/python -m pip install -qq --disable-pip-version-check --editable . --group bench-security
	@touch $@

ifneq ($(WANTED),$(FOUND))
.PHONY: $(VENV)/.made
endif
$(VENV)/.made:
	@case "$(WANTED)" in \
		"3.11 "* | "3.12 "* | "3.13 "*) ;; \
		" "*) echo "Kintsugi needs Python 3.11, 3.12 or 3.13, and '$(PYTHON)' does not run." \
			"Name one: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1 ;; \
		*) echo "Kintsugi needs Python 3.11, 3.12 or 3.13, and '$(PYTHON)' is $(firstword $(WANTED))." \
			"Name another: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1 ;; \
	esac
	@echo "Making $(VENV) with Python $(firstword $(WANTED)) and $(INSTALLER)"
	@$(CREATE)
	@echo '$(WANTED)' > $@

# Each stamp is written only when its step has succeeded, so that a broken step is done again.
$(VENV)/.runtime: $(VENV)/.made pyproject.toml $(LOCK)
	@echo "Installing Kintsugi with $(INSTALLER)"
	@$(INSTALL) --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime
	@echo "Installing the development tools with $(INSTALLER)"
	@$(INSTALL) --group dev
	@touch $@

$(VENV)/.live: $(VENV)/.dev
	@echo "Installing the engine of the model on this machine with $(INSTALLER)"
	@$(INSTALL) --editable '.[local]'
	@touch $@

$(VENV)/.studio: $(VENV)/.runtime
	@echo "Installing LangGraph Studio's server with $(INSTALLER)"
	@$(INSTALL) --editable '.[studio]'
	@touch $@
