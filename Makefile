# Everything Trunkline needs is installed by these targets: Python 3.11, make and the package registries are enough.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help setup setup-dev demo up test check bench docs format lock clean

help:  ## show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

setup: $(VENV)/.ready  ## make the virtual environment with the program in it

$(VENV)/.ready: requirements.lock pyproject.toml
	@$(PYTHON) --version >/dev/null 2>&1 || { echo "Python 3.11 or later is needed: install it, or say make PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

setup-dev: $(VENV)/.ready-dev

$(VENV)/.ready-dev: $(VENV)/.ready requirements-dev.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@
