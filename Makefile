# `make` or `make help` prints the list of targets, from the lines below that have two #s.

PYTHON := .venv/bin/python
WORKERS := 2
# Stories wait for systemd a third of their time.
STORY_WORKERS := 3
STORIES = $(PYTHON) -m pytest -q -n $(STORY_WORKERS) --dist loadgroup

help:  ## print this list
	@sed -n 's/^\([a-z-]*\):.*##  */\1\t/p' Makefile | expand -t 13

demo: .venv/done  ## build, boot, wrap seven real servers, and report each proof; RECORD=1 draws docs/demo.svg (root)
	@$(PYTHON) -m tests.system.tools.demo $(if $(RECORD),--record docs/demo.svg)

test: check unit stories  ## lint, types, layers, unit tests, and each promise once; what CI runs (root)

all: check typed covered unit-pythons everything
test-all:  ## everything, on each release (root); ROOM=egress, or several, runs only those rooms of stories
	@$(MAKE) --no-print-directory $(if $(ROOM),room,all)

check: .venv/done  ## lint, format, types, layers, names and rooms, the site's links, and a list of slow stories
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports --no-cache
	$(PYTHON) -m tests.project.names
	$(PYTHON) -m tests.project.language.wording
	$(PYTHON) -m tests.project.pages.how_to_pages
	$(PYTHON) -m tests.project.pages.default_policy --check
	$(PYTHON) -m tests.project.pages.site --quiet
	$(PYTHON) -m tests.system.tools.slow_stories

unit: .venv/done  ## tests that need no privilege
	$(PYTHON) -m pytest -q -n $(WORKERS)

typed: .venv/done
	for version in 3.12 3.13 3.14; do .venv/bin/mypy --python-version $$version || exit 1; done

unit-pythons: .venv/done  ## the same on Debian's other Pythons, in roots of them; VERSIONS=3.14 is one alone (root)
	@$(PYTHON) -m tests.system.tools.unit_pythons $(VERSIONS) -n $(WORKERS)

unit-on:  ## the same on a Python that no Debian has: ON=/path/to/python3.12
	$(ON) -m venv --clear build/unit-on
	PIP_CONSTRAINT=$(CURDIR)/tests/constraints.txt build/unit-on/bin/pip install -q -r tests/requirements.txt --editable .
	build/unit-on/bin/python -m pytest -q -n $(WORKERS)

covered: .venv/done
	$(PYTHON) -m pytest -q -n $(WORKERS) --hypothesis-profile=searching --cov --cov-report=term-missing:skip-covered

stories: .venv/done  ## each promise once, in a booted Debian, from the .deb (root)
	$(STORIES) --tier=fast tests/system

stories-forky: .venv/done  ## the stories of `make test` on Debian testing, and all of its emulated machine (root)
	MCPWRAP_TEST_SUITES=forky $(STORIES) --tier=fast tests/system --ignore=tests/system/vm
	MCPWRAP_TEST_SUITES=forky $(STORIES) --tier=all tests/system/vm

everything: .venv/done
	$(STORIES) --tier=all --write-durations tests/system

room: .venv/done
	$(STORIES) --tier=all --write-durations $(addprefix tests/system/,$(ROOM))

proofs: .venv/done  ## list each promise, its stories, and whether `make test` runs them
	@$(PYTHON) -m tests.system.tools.proofs

map: .venv/done  ## print figures of rooms, names and imports, and draw docs/rooms*.svg; TREE=DIR is another checkout
	@$(PYTHON) -m tests.project.map $(if $(TREE),--tree $(TREE))

facts: .venv/done  ## list the figures, sources and code in the prose of AGAINST=COMMIT that this tree lacks
	@$(PYTHON) -m tests.project.language.facts --against $(AGAINST)

error-changes: .venv/done  ## print fifty errors of AGAINST=COMMIT beside those of this tree, chosen by SEED=7
	@$(PYTHON) -m tests.project.pages.error_changes --against $(AGAINST) $(if $(SEED),--seed $(SEED))

errors-page: .venv/done  ## write docs/mcpwrap-errors.7.rst from the errors in mcpwrap/ and docs/errors/
	@$(PYTHON) -m tests.project.pages.error_pages

default-policy: .venv/done  ## write the default policy's policy.json from its YAML, and play its cases
	@$(PYTHON) -m tests.project.pages.default_policy

docs: .venv/done  ## build README, how-tos, manual and design as a site in dist/site, and check its links
	@$(PYTHON) -m tests.project.pages.site

mutants: .venv/done  ## remove one mechanism at a time, and check that the fast tier fails (root)
	@$(PYTHON) -m tests.system.tools.mutants

soak: .venv/done  ## run sessions of all kinds under random faults, with a report in dist/; MINUTES=20 SEED=7 (root)
	@$(PYTHON) -m tests.system.tools.soak $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED)) $(if $(FAULTS),--faults '$(FAULTS)')

screenshots: .venv/done  ## write docs/screenshots, of the approval page and the site, with a browser in a booted machine (root)
	@$(PYTHON) -m tests.system.tools.screenshots
	@$(PYTHON) -m tests.system.tools.site_screenshots

messages: .venv/done  ## write tests/shared/ordinary_messages, from real clients and servers in a booted machine (root)
	@$(PYTHON) -m tests.system.tools.record_messages

bench: .venv/done  ## measure the cost of a session, a message and an idle wrapper, beside their targets (root)
	@$(PYTHON) -m benchmarks.run

bench-gate: .venv/done  ## measure only the gate's rows of `bench`; AGAINST=COMMIT measures that commit in turns with this tree (root)
	@$(PYTHON) -m benchmarks.gate $(if $(AGAINST),--against $(AGAINST))

bench-starts: .venv/done  ## time a session's start and `mcpwrap --help`, in turns with the package of AGAINST=COMMIT (root)
	@$(PYTHON) -m benchmarks.starts --against $(AGAINST)

bench-execution: .venv/done  ## time `run_python` beside uv, bwrap and systemd-run, and measure its memory (root)
	@$(PYTHON) -m benchmarks.execution

bench-growth: .venv/done  ## time `apply`, `plan`, `status` and `doctor` with 10, 100 and 500 servers; AGAINST=COMMIT too (root)
	@$(PYTHON) -m benchmarks.growth $(if $(AGAINST),--against $(AGAINST))

packages: .venv/done  ## build all packages in dist/packages, with SHA256SUMS and bills of materials; KEY=ID of gpg signs, FOR="deb13 deb12" builds only those (root)
	@$(PYTHON) -m tests.system.tools.packages $(if $(KEY),--key $(KEY)) $(FOR)

repository: .venv/done  ## write dist/repository for apt and dnf, to be served at URL=…, signed by KEY=ID of gpg (root)
	@$(PYTHON) -m tests.system.tools.repository --key '$(KEY)' --url '$(URL)' $(FOR)

deb: .venv/done  ## build dist/mcpwrap_*.deb for Debian 12 and 13 (root)
	@$(PYTHON) -m tests.system.bed.package

pins:  ## write tests/constraints.txt: the newest versions of pip's packages, but the shipped ones as they are (root)
	sed -n 's/^\([a-z0-9.-]*==[^ ]*\).*/\1/p' packaging/site.txt > tests/constraints.txt
	rm -rf .venv
	@$(MAKE) --no-print-directory .venv/done
	@$(PYTHON) -m tests.system.tools.pins

clean:  ## remove what was built here; the bed's roots stay in /var/cache/mcpwrap-test
	rm -rf .venv build dist .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache

.venv/done: tests/requirements.txt tests/constraints.txt tests/host-packages.sh pyproject.toml
	tests/host-packages.sh
	/usr/bin/python3 -m venv .venv
	# In the environment, so that pip's builds of packages find it too.
	PIP_CONSTRAINT=$(CURDIR)/tests/constraints.txt .venv/bin/pip install -q -r tests/requirements.txt --editable .
	touch $@

.PHONY: help demo test test-all all check unit typed unit-pythons unit-on covered stories stories-forky everything room proofs map facts error-changes errors-page docs mutants soak screenshots messages bench bench-gate bench-starts bench-execution bench-growth packages repository deb pins clean
.DEFAULT_GOAL := help
