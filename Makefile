# Every target works in a fresh clone: the virtual environment is made first, from requirements-dev.lock.

SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
export PATH := $(CURDIR)/$(BIN):$(PATH)
export LC_ALL := C.UTF-8
export ANSIBLE_COLLECTIONS_PATH := $(CURDIR)
# Without bytecode files each of the thousand processes that the tests start would compile every module again.
unexport PYTHONDONTWRITEBYTECODE

PYTEST := $(BIN)/python -m tests.support.cost
WORKERS := auto
PARALLEL = --numprocesses $(WORKERS) --maxprocesses 8 --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-matrix coverage prove transcripts mutation sanity lint fmt bench generate generate-check collection-docs lock clean docs-site
.PHONY: lint-style lint-words lint-types lint-layers generate-check lint-measures lint-ansible

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): requirements-dev.lock pyproject.toml tools/venv.sh tools/python.sh
	@PYTHON="$(PYTHON)" bash tools/venv.sh $(VENV)
	@touch $(READY)

demo: $(READY)  ## run the demo: emulator, Pulumi program, Ansible playbook, drift, repair, destroy, costs
	@$(BIN)/python examples/demo/run.py

test: $(READY)  ## run the tests of the development loop: no slow ones, no coverage (ARGS="..." goes to pytest)
	@$(PYTEST) $(PARALLEL) $(ARGS)

# A part of the tests does not reach the floor; `make coverage` holds it for all parts together.
SHARDED := $(if $(SHARD),--shard $(SHARD))

# One more worker than cores: its tests wait for the programs that they start.
test-all: WORKERS := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
test-all: $(READY)  ## run all tests, also the slow ones (sanity, packaging, molecule, examples, cores), with the coverage floor (SHARD=2/4: a part)
	@$(PYTEST) -m "not (matrix and slow)" --hypothesis-profile thorough $(PARALLEL) --cov --cov-report term $(SHARDED) $(if $(SHARD),--cov-fail-under=0) $(ARGS)

test-matrix: $(READY)  ## run everything of the collection under every other supported ansible-core that has a Python on this machine
	@$(PYTEST) -m "matrix and slow" --verbose -rsP $(ARGS)

coverage: $(READY)  ## combine what the parts of a run have covered (.coverage.*), and hold the floor
	@$(BIN)/coverage combine && $(BIN)/coverage report

prove: $(READY)  ## run the long proofs: damaged answers, what the account does, kills at every request, random faults (ARGS="crash --jobs 4")
	@$(BIN)/python -m tests.prove $(ARGS)

transcripts: $(READY)  ## play 500 scripted commands, compare what a user and the service see of each (ARGS=--write records)
	@$(BIN)/python -m tests.transcripts $(ARGS)

mutation: $(READY)  ## mutate the code of one area (ARGS=keys; the areas are in tests/mutants/areas.toml) and name what no test notices
	@nice -n 10 $(BIN)/python -m tests.mutants.automatic $(ARGS)

sanity: $(READY)  ## run ansible-test over the collection: sanity and units, under the ansible-core of this environment
	@$(PYTEST) -m "not matrix" tests/ansible/test_sanity.py

lint: $(READY)  ## check style, types, layers, generated files, measures, playbooks; continues after a failure
	@$(MAKE) --no-print-directory --keep-going lint-style lint-words lint-types lint-layers generate-check lint-measures lint-ansible

lint-style: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

lint-words: $(READY)
	$(BIN)/python tools/words.py
	git ls-files | xargs $(BIN)/codespell

lint-types: $(READY)
	$(BIN)/mypy
	$(BIN)/mypy examples/three-tier/pulumi/__main__.py
	$(BIN)/mypy examples/policies/__main__.py
	$(BIN)/mypy examples/dns-elsewhere/__main__.py

lint-layers: $(READY)
	$(BIN)/lint-imports --no-logo

generate-check: $(READY)  ## fail if a generated file is out of date
	$(BIN)/python -m generate --check

lint-measures: $(READY)
	$(BIN)/python -m tools.measures --check

lint-ansible: $(READY)
	$(BIN)/ansible-lint

fmt: $(READY)  ## format and auto-fix
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

bench: $(READY)  ## measure, as ratios within one run (ARGS=stack: one of them)
	@$(BIN)/python -m tests.benchmarks $(ARGS)

generate: $(READY)  ## write the generated files: docs/reference, Pulumi classes and functions, Ansible modules
	@$(BIN)/python -m generate

collection-docs: $(READY)  ## build the collection's documentation as HTML, in build/collection-docs/html
	@bash tools/collection_docs.sh build/collection-docs $(BIN)

docs-site: $(READY)  ## build the documentation site, in build/site/html
	@$(BIN)/python -m generate.site

lock: $(READY)  ## write requirements-dev.lock from pyproject.toml (UPGRADE=1: newer versions)
	@UPGRADE="$(UPGRADE)" bash tools/lock.sh $(BIN)/uv

clean:  ## remove everything that was made
	@rm -rf $(VENV) venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .ansible .coverage .coverage.* .demo build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
