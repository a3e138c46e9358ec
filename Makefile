# These targets install everything that Trunkline needs, from Python 3.11, make and the package registries.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check
# The tests start many processes. Compile their modules only once.
unexport PYTHONDONTWRITEBYTECODE
CORES := $(shell nproc 2>/dev/null || echo 2)
# Tests wait for two fifths of their time, mostly for Kafka, so run more test processes than there are cores.
JOBS ?= $(shell expr $(CORES) + 3)
CRASH_JOBS ?= $(shell expr $(CORES) + 2)

.PHONY: help setup ui ui-types ui-lint demo demo-zones up up-distributed services image interop test check lint prose unit chaos interop-long sabotage fuzz fuzz-api bench bench-peers screenshots docs format lock clean collected

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 16

setup: $(VENV)/.ready  ## install Trunkline into a virtual environment, .venv

$(VENV)/.ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Trunkline needs Python 3.11 or later. Install it, or name another interpreter: make PYTHON=/path/to/python" >&2; exit 1; }
	@echo "Installing Trunkline into $(VENV) (once, about half a minute) ..." >&2
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --quiet --require-hashes -r requirements.lock
	@$(PIP) install --quiet --no-deps -e .
	@$(BIN)/python -m compileall -q src
	@touch $@

$(VENV)/.ready-dev: $(VENV)/.ready requirements-dev.lock
	@echo "Installing the packages for tests and checks ..." >&2
	@$(PIP) install --quiet --require-hashes -r requirements-dev.lock
	@touch $@

ui: setup  ## build the web UI into the package; needs Node.js
	@$(BIN)/python ui/build.py

ui-types: $(VENV)/.ready-dev  ## generate the web UI's API types from the OpenAPI document
	@$(BIN)/python -m tests.ui.api_types

demo: setup  ## run a workflow across four small agents, and show what happens
	@$(BIN)/trunkline demo

demo-zones: setup  ## pass tasks from one zone to another, over HTTPS and over AWS AgentCore, and compare
	@$(BIN)/python -m examples.zones.demo

up: setup  ## run Trunkline in one process; prints its address
	@$(BIN)/python ui/build.py --if-possible
	@$(BIN)/trunkline up

up-distributed: setup  ## run each role as a process with PostgreSQL and Kafka, and run the demo on them
	@deploy/local/install.sh backends
	@$(BIN)/python -m deploy.local.up

# What the tests need in addition to Python. up and demo need nothing of it, up-distributed only Java, Maven and PostgreSQL.
services:  ## download Kafka; where apt-get is available, also install PostgreSQL, Java, Maven, Chromium and buildah
	@deploy/local/install.sh
	@$(PYTHON) -m deploy.local.jars
	@$(PYTHON) -m deploy.local.class_archive
	@$(PYTHON) -m deploy.local.buildah

# IMAGE_FLAGS=--publish pins the base image by its digest.
image: $(VENV)/.ready-dev  ## build the container image and its SBOM, with Docker or buildah
	@$(BIN)/python -m deploy.image $(IMAGE_FLAGS)

interop: $(VENV)/.ready-dev  ## install the agents of other frameworks and languages that the tests call
	@$(BIN)/python -m tests.interop.environments

# Types and web UI are checked while the other tests run, because a browser mostly waits; their output is printed at the
# end. The crash tests come last, because they need a machine that is not overloaded. Mostly they wait for leases and
# restarts, so they use two more test processes than there are cores.
TYPES := $(VENV)/types.txt
PAGES := $(VENV)/pages.txt
test: $(VENV)/.ready-dev  ## run all checks and tests
	@$(MAKE) --no-print-directory --jobs 5 lint services interop ui collected
	@echo "Checking the types and the web UI while the tests run ..." >&2
	@$(BIN)/python ui/build.py --run test
	@{ $(BIN)/pyright && $(BIN)/python ui/build.py --run lint; } >$(TYPES) 2>&1 & types=$$!; \
	  $(BIN)/pytest -n 1 tests/ui >$(PAGES) 2>&1 & pages=$$!; \
	  $(BIN)/pytest -n $(JOBS) --dist worksteal --ignore tests/ui --ignore tests/crash; tests=$$?; \
	  wait $$types; types=$$?; cat $(TYPES); \
	  wait $$pages; pages=$$?; cat $(PAGES); \
	  $(BIN)/pytest -n $(CRASH_JOBS) --dist worksteal tests/crash; crash=$$?; \
	  exit $$((tests ? tests : pages ? pages : crash ? crash : types))

# Compiles the modules of all tests once. Otherwise each of the test processes, which begin together, compiles them.
COLLECTED := $(VENV)/collected.txt
collected: $(VENV)/.ready-dev
	@$(BIN)/pytest --collect-only -qq >$(COLLECTED) 2>&1 || { cat $(COLLECTED); exit 1; }

check: lint ui-lint  ## check lint rules, format, types, import rules and prose
	$(BIN)/pyright

lint: $(VENV)/.ready-dev prose
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports

prose: $(VENV)/.ready-dev  ## lint the documentation, the help texts and the texts of the web UI
	$(BIN)/python -m prose.lint

ui-lint: $(VENV)/.ready-dev  ## lint the web UI with eslint, and check its format with prettier
	$(BIN)/python ui/build.py --run lint

unit: $(VENV)/.ready-dev  ## run the tests that do no I/O, in seconds
	$(BIN)/pytest tests/unit tests/golden
	$(BIN)/python ui/build.py --run test

# In parts of less than 40 minutes. PART=NAME runs one of them; an interrupted run continues where it stopped.
chaos: $(VENV)/.ready-dev services  ## kill processes a thousand times during ten thousand runs, in both modes; takes hours
	$(BIN)/python -m tests.crash.full_size $(if $(PART),--only $(PART))

interop-long: $(VENV)/.ready-dev interop  ## run workflows over eight frameworks and eight dialects 500 times, and kill the bridge 50 times
	TRUNKLINE_INTEROP_RUNS=500 TRUNKLINE_INTEROP_KILLS=50 $(BIN)/pytest --timeout 0 -s tests/interop/test_eight_frameworks.py tests/interop/test_eight_dialects.py

sabotage: $(VENV)/.ready-dev services  ## remove each safety rule in a copy of the tree; its tests must fail
	$(BIN)/python -m tests.sabotage --jobs $(CORES)

FUZZ := .services/fuzz
$(FUZZ)/.ready: requirements.lock tests/fuzz/requirements.txt
	@echo "Installing the fuzzer into $(FUZZ) (once) ..." >&2
	@$(PYTHON) -m venv $(FUZZ)
	@$(FUZZ)/bin/pip --disable-pip-version-check install --quiet --require-hashes -r requirements.lock
	@$(FUZZ)/bin/pip --disable-pip-version-check install --quiet --no-deps -e .
	@$(FUZZ)/bin/pip --disable-pip-version-check install --quiet -r tests/fuzz/requirements.txt
	@touch $@

RUNS ?= 1000000
fuzz: $(FUZZ)/.ready  ## feed a million mutated answers, streams, cards and requests to each parser; takes minutes for each
	for target in answers streams cards zones; do $(FUZZ)/bin/python -m tests.fuzz $$target $(RUNS) || exit 1; done

fuzz-api: $(VENV)/.ready-dev  ## send a hundred generated requests to each REST operation
	TRUNKLINE_API_EXAMPLES=100 $(BIN)/pytest tests/public/test_openapi_live.py

bench: $(VENV)/.ready-dev services  ## measure performance against the same work written by hand
	$(BIN)/python -m bench

PEERS := .services/peers
$(PEERS)/.ready: bench/peers/requirements.txt bench/peers/package-lock.json
	@echo "Installing the systems to compare with into $(PEERS) (once) ..." >&2
	@$(PYTHON) -m venv $(PEERS)
	@$(PEERS)/bin/pip --disable-pip-version-check install --quiet -r bench/peers/requirements.txt
	@cp bench/peers/package.json bench/peers/package-lock.json $(PEERS)
	@if command -v npm >/dev/null; then npm --prefix $(PEERS) ci --silent; \
	  else echo "npm was not found, so Restate's server is not installed and not measured." >&2; fi
	@touch $@

bench-peers: $(VENV)/.ready-dev services $(PEERS)/.ready  ## do the same job with DBOS, LangGraph, Restate, Temporal and Prefect, and compare
	$(BIN)/python -m bench.peers $(PEERS)/bin/python

screenshots: $(VENV)/.ready-dev services ui  ## take the screenshots of the web UI for the documentation again
	$(BIN)/python -m tests.ui.screenshots

docs: $(VENV)/.ready-dev  ## generate the reference pages, OpenAPI and the help of the commands, and build the site in site/
	$(BIN)/python -m tests.public.write
	$(BIN)/sphinx-build -q -W --keep-going -d .services/site docs site
	@echo "The documentation is at site/index.html" >&2

format: $(VENV)/.ready-dev  ## format the code
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/python ui/build.py --run format

lock:  ## resolve the dependencies again and write the lock files
	$(PYTHON) -m venv $(VENV)-lock && $(VENV)-lock/bin/pip install --quiet pip-tools
	$(VENV)-lock/bin/pip-compile --upgrade --generate-hashes --strip-extras --no-emit-index-url --no-emit-find-links --no-header --extra aws --extra grpc --extra kafka --extra otel --extra postgres --extra s3 -o requirements.lock pyproject.toml
	$(VENV)-lock/bin/pip-compile --upgrade --generate-hashes --strip-extras --allow-unsafe --no-emit-index-url --no-emit-find-links --no-header -o requirements-dev.lock requirements-dev.in
	cd deploy/sbom && ../../$(VENV)-lock/bin/pip-compile --upgrade --generate-hashes --strip-extras --no-emit-index-url --no-emit-find-links --no-header -o requirements.lock requirements.in
	cd tests/interop/servers && for set in v0.3 v1 go; do \
	  ../../../$(VENV)-lock/bin/pip-compile --upgrade --generate-hashes --strip-extras --no-emit-index-url --no-emit-find-links --no-header -o requirements-$$set.lock requirements-$$set.in; done
	for example in python-flask python-fastapi; do (cd examples/agents/$$example && \
	  ../../../$(VENV)-lock/bin/pip-compile --upgrade --generate-hashes --strip-extras --no-emit-index-url --no-emit-find-links --no-header -o requirements.lock requirements.in); done
	for folder in prose ui ui/types tests/interop/servers examples/agents/node-express bench/peers; do \
	  npm --prefix $$folder update --package-lock-only --omit-lockfile-registry-resolved; done
	rm -rf $(VENV)-lock

clean:  ## delete everything that make has created
	rm -rf $(VENV) site prose/node_modules ui/node_modules src/trunkline/api/static .services .pytest_cache .ruff_cache .hypothesis .import_linter_cache
