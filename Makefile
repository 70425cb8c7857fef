# `make` or `make help` prints what there is. Each line below that has two #s is that list.

PYTHON := .venv/bin/python
SUITES := bookworm trixie
WORKERS := 2
# Stories wait for systemd a third of their time.
STORY_WORKERS := 3
STORIES = $(PYTHON) -m pytest -q -n $(STORY_WORKERS) --dist loadgroup

help:  ## print this list
	@sed -n 's/^\([a-z-]*\):.*##  */\1\t/p' Makefile | expand -t 13

demo: .venv/done  ## build, boot, wrap seven real servers, and report what was proven; RECORD=1 draws docs/demo.svg (root)
	@$(PYTHON) -m tests.system.tools.demo $(if $(RECORD),--record docs/demo.svg)

test: check unit stories  ## lint, types, layers, unit tests, and each promise once; what CI runs (root)

all: check covered everything
test-all:  ## everything, on each release (root); ROOM=egress, or several, runs those rooms of stories alone
	@$(MAKE) --no-print-directory $(if $(ROOM),room,all)

check: .venv/done  ## lint, format, types, layers, names and rooms, and which stories are slow
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports --no-cache
	$(PYTHON) -m tests.project.names
	$(PYTHON) -m tests.project.site --quiet
	$(PYTHON) -m tests.system.tools.slow_stories

unit: .venv/done  ## tests that need no privilege
	$(PYTHON) -m pytest -q -n $(WORKERS)

covered: .venv/done
	$(PYTHON) -m pytest -q -n $(WORKERS) --hypothesis-profile=searching --cov --cov-report=term-missing:skip-covered

stories: .venv/done  ## each promise once, in a booted Debian, from the .deb (root)
	$(STORIES) --tier=fast tests/system

everything: .venv/done
	$(STORIES) --tier=all --write-durations tests/system

room: .venv/done
	$(STORIES) --tier=all --write-durations $(addprefix tests/system/,$(ROOM))

proofs: .venv/done  ## each promise, its stories, and whether `make test` runs them
	@$(PYTHON) -m tests.system.tools.proofs

map: .venv/done  ## figures of rooms, names and imports, and docs/rooms*.svg; TREE=DIR is of another checkout
	@$(PYTHON) -m tests.project.map $(if $(TREE),--tree $(TREE))

errors-page: .venv/done  ## docs/mcpwrap-errors.7.rst, from the errors in mcpwrap/ and docs/errors/
	@$(PYTHON) -m tests.project.error_pages

docs: .venv/done  ## dist/site: README, how-tos, manual and design as a site, with its links checked
	@$(PYTHON) -m tests.project.site

mutants: .venv/done  ## whether the fast tier notices when a mechanism is taken away (root)
	@$(PYTHON) -m tests.system.tools.mutants

soak: .venv/done  ## sessions of all kinds under random faults, and a report in dist/; MINUTES=20 SEED=7 (root)
	@$(PYTHON) -m tests.system.tools.soak $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED)) $(if $(FAULTS),--faults '$(FAULTS)')

screenshots: .venv/done  ## docs/screenshots, of the approval page and the site, from a real browser in a booted machine (root)
	@$(PYTHON) -m tests.system.tools.screenshots
	@$(PYTHON) -m tests.system.tools.site_screenshots

messages: .venv/done  ## tests/shared/ordinary_messages, from real clients and servers in a booted machine (root)
	@$(PYTHON) -m tests.system.tools.record_messages

bench: .venv/done  ## what a session, a message and an idle wrapper cost, beside their targets (root)
	@$(PYTHON) -m benchmarks.run

bench-gate: .venv/done  ## the gate's rows of `bench` alone; AGAINST=COMMIT measures that one in turns with this tree (root)
	@$(PYTHON) -m benchmarks.gate $(if $(AGAINST),--against $(AGAINST))

bench-starts: .venv/done  ## what a session's start and `mcpwrap --help` take, in turns with the package of AGAINST=COMMIT (root)
	@$(PYTHON) -m benchmarks.starts --against $(AGAINST)

bench-growth: .venv/done  ## what `apply`, `plan`, `status` and `doctor` take with 10, 100 and 500 servers; AGAINST=COMMIT too (root)
	@$(PYTHON) -m benchmarks.growth $(if $(AGAINST),--against $(AGAINST))

deb: .venv/done  ## dist/mcpwrap_*.deb, for Debian 12 and 13 (root)
	@$(PYTHON) -m tests.system.bed.package $(SUITES)

pins:  ## tests/constraints.txt: the newest of what pip brings, and what is shipped as it is (root)
	sed -n 's/^\([a-z0-9.-]*==[^ ]*\).*/\1/p' packaging/site.txt > tests/constraints.txt
	rm -rf .venv
	@$(MAKE) --no-print-directory .venv/done
	@$(PYTHON) -m tests.system.tools.pins

clean:  ## remove what was built here; the bed's roots stay in /var/cache/mcpwrap-test
	rm -rf .venv build dist .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache

.venv/done: tests/requirements.txt tests/constraints.txt tests/host-packages.sh pyproject.toml
	tests/host-packages.sh
	/usr/bin/python3 -m venv .venv
	# By its environment, where what builds a package finds it too.
	PIP_CONSTRAINT=$(CURDIR)/tests/constraints.txt .venv/bin/pip install -q -r tests/requirements.txt --editable .
	touch $@

.PHONY: help demo test test-all all check unit covered stories everything room proofs map errors-page docs mutants soak screenshots messages bench bench-gate bench-starts bench-growth deb pins clean
.DEFAULT_GOAL := help
