# Every target works in a fresh clone: the virtual environment is made first, from requirements-dev.lock.

SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
export PATH := $(CURDIR)/$(BIN):$(PATH)
export LC_ALL := C.UTF-8
export ANSIBLE_COLLECTIONS_PATH := $(CURDIR)

.DEFAULT_GOAL := help
.PHONY: help demo test test-all sanity lint fmt bench docs collection-docs lock pulumi clean
.PHONY: lint-style lint-types lint-layers lint-docs lint-versions lint-ansible

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): requirements-dev.lock pyproject.toml tools/venv.sh tools/python.sh
	@PYTHON="$(PYTHON)" bash tools/venv.sh $(VENV)
	@touch $(READY)

demo: $(READY)  ## see it work: emulator, Pulumi program, Ansible playbook, drift, repair, destroy, costs
	@$(BIN)/python examples/demo/run.py

test: $(READY)  ## all tests, with the coverage floor (ARGS="..." goes to pytest)
	@$(BIN)/python -m pytest --numprocesses auto --maxprocesses 8 --dist worksteal --cov --cov-report term --durations 10 --durations-min 10 $(ARGS) \
	  || { status=$$?; test $$status -ne 5 || echo "make test: pytest collected no test, so nothing is shown to work" >&2; exit $$status; }

test-all: test  ## all tests, then every pair of form and dialect, and the collection under every ansible-core that it supports
	@$(BIN)/python -m pytest -m matrix --numprocesses auto --maxprocesses 8 --dist worksteal --ignore tests/ansible/test_sanity.py
	@$(BIN)/python -m pytest -m matrix --verbose -rsP tests/ansible/test_sanity.py

sanity: $(READY)  ## ansible-test over the collection: sanity and units, under the ansible-core of this environment
	@$(BIN)/python -m pytest tests/ansible/test_sanity.py

lint: $(READY)  ## style, types, layers, generated files, versions, playbooks; goes on after a failure
	@$(MAKE) --no-print-directory --keep-going lint-style lint-types lint-layers lint-docs lint-versions lint-ansible

lint-style: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

lint-types: $(READY)
	$(BIN)/mypy

lint-layers: $(READY)
	$(BIN)/lint-imports --no-logo

lint-docs: $(READY)
	$(BIN)/python docs/generate.py --check
	$(BIN)/python tools/classes.py --check
	$(BIN)/python -m tools.modules --check

lint-versions: $(READY)
	$(BIN)/python tools/versions.py

lint-ansible: $(READY)
	$(BIN)/ansible-lint

fmt: $(READY)  ## format, and mend what can be mended by itself
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

bench: $(READY)  ## measurements, as ratios within one run (ARGS=stack: that one alone)
	@$(BIN)/python -m tests.benchmarks $(ARGS)

docs: $(READY)  ## write docs/reference, classes, functions and Ansible modules from the tables of the code
	@$(BIN)/python docs/generate.py
	@$(BIN)/python tools/classes.py
	@$(BIN)/python -m tools.modules

collection-docs: $(READY)  ## build the collection's documentation as HTML, in build/collection-docs/html
	@bash tools/collection_docs.sh build/collection-docs $(BIN)

lock: $(READY)  ## write requirements-dev.lock from pyproject.toml (UPGRADE=1: newer versions)
	@UPGRADE="$(UPGRADE)" bash tools/lock.sh $(BIN)/uv

pulumi: $(READY)  ## build Pulumi's CLI with Go into the virtual environment: tests, benchmarks and the demo then use it too (JOBS=1: one core)
	@JOBS="$(JOBS)" bash tools/pulumi/build.sh $(BIN)

clean:  ## remove everything that was made
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .ansible .coverage .coverage.* .demo build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
