# Mentee: `make run` is all a newcomer needs; `make help` lists the rest.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

VENV := .venv
PYTHON := $(VENV)/bin/python
PYTEST := $(PYTHON) -m pytest
CODE := app bots learner migrations tests

.PHONY: help run install install-dev browser test test-fast nightly dialogues lint format doctor demo clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  \033[1m%-12s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: install ## Install what is needed and start everything (Ctrl-C stops it)
	@exec $(VENV)/bin/mentee run

install: ## Create .venv and install the embedded form from the locks
	@bash requirements/install.sh gateway cpu

install-dev: ## The same, with tests and linters
	@bash requirements/install.sh gateway cpu dev

browser: ## Make sure that a Chromium for the browser tests is there, or say why not
	@bash requirements/browser.sh

doctor: install ## Check every configured part and say what to do
	@$(VENV)/bin/mentee doctor

demo: install ## Show that it learns: four cells on held-out prompts
	@$(VENV)/bin/mentee demo

test: install-dev browser ## Every test but the nightly ones
	@$(PYTEST) -n 4 -m "not slow and not browser and not nightly" tests
	@$(PYTEST) -n 2 -m "browser and not nightly" tests
	@$(PYTEST) -n 2 --dist loadgroup -m "slow and not nightly" tests

test-fast: install-dev ## The rules alone: no model, no browser, no database (under a minute)
	@$(PYTEST) -m "not slow and not nightly" tests/unit

nightly: install-dev browser ## Everything, the long ones included, and twenty times as many generated inputs
	@MENTEE_TEST_SCALE=20 $(PYTEST) --timeout=3600 -n 2 -m "not slow and not browser and not nightly" tests
	@$(PYTEST) -n 2 -m "browser and not nightly" tests
	@$(PYTEST) --timeout=3600 -n 2 --dist loadgroup -m "slow and not nightly" tests
	@$(PYTEST) --timeout=3600 -m nightly tests

dialogues: install-dev ## Draw every dialogue in both languages, as either platform shows it, into build/dialogues.html
	@mkdir -p build
	@$(PYTHON) -m tests.dialogues build/dialogues.html

lint: install-dev ## ruff, strict types, layers, migrations = models; prints the house's figures
	@$(VENV)/bin/ruff check $(wildcard $(CODE))
	@$(VENV)/bin/ruff format --check $(wildcard $(CODE))
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports --no-logo
	@$(PYTEST) -q --no-header tests/integration/test_schema.py -k models_and_migrations_agree
	@$(PYTHON) -m tests.support.budget

format: install-dev ## Let ruff arrange the code
	@$(VENV)/bin/ruff format $(wildcard $(CODE))
	@$(VENV)/bin/ruff check --fix $(wildcard $(CODE))

clean: ## Remove caches; what people wrote (var/) stays
	@rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build *.egg-info
