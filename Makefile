# `make` or `make help` prints what there is. Each line below that has two #s is that list.

PYTHON := .venv/bin/python
SUITES := bookworm trixie

help:  ## print this list
	@sed -n 's/^\([a-z]*\):.*##  */\1\t/p' Makefile | expand -t 13

demo: .venv/done  ## build, boot, wrap three real servers, and report what was proven (root)
	@$(PYTHON) -m tests.system.demo

test: check unit system  ## everything: lint, types, layers, unit tests, package and system tests (root)

check: .venv/done  ## lint, format, types and layers
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports --no-cache

unit: .venv/done  ## tests that need no privilege, with their coverage
	$(PYTHON) -m pytest -q -n 2 --cov --cov-report=term-missing:skip-covered

system: .venv/done  ## tests in booted Debian machines, from the .deb (root)
	$(PYTHON) -m pytest -q -n 2 --dist loadfile tests/system

screenshots: .venv/done  ## docs/screenshots, from a real browser in a booted machine (root)
	@$(PYTHON) -m tests.system.screenshots

bench: .venv/done  ## what a session, a message and an idle wrapper cost, beside their targets (root)
	@$(PYTHON) -m benchmarks.run

deb: .venv/done  ## dist/mcpwrap_*.deb, for Debian 12 and 13 (root)
	@$(PYTHON) -m tests.system.bed.package $(SUITES)

clean:  ## remove what was built here; the bed's roots stay in /var/cache/mcpwrap-test
	rm -rf .venv build dist .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache

.venv/done: tests/requirements.txt tests/host-packages.sh pyproject.toml
	tests/host-packages.sh
	/usr/bin/python3 -m venv .venv
	.venv/bin/pip install -q -r tests/requirements.txt
	.venv/bin/pip install -q --editable .
	touch $@

.PHONY: help demo test check unit system screenshots bench deb clean
.DEFAULT_GOAL := help
