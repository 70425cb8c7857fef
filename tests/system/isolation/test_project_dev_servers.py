"""Servers of development tools do in the project what they do when the agent starts them itself."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from tests.system.bed import installed
from tests.system.bed.machine import Machine
from tests.system.guest.project_calls import PROJECT
from tests.system.isolation import project_servers
from tests.system.isolation.project_servers import NAME, PROJECTS, RAW, WRAPPED, Server
from tests.system.support.tiers import on_release, only_in_test_all

pytestmark = [
    on_release("trixie"),  # whose Node is new enough
    only_in_test_all("test_project_servers.py has two; these need a root of their own"),
]

AT = "/opt/project"
NODE = "/usr/bin/node"
MODULES = f"{AT}/node_modules"
SERENA = (
    f"{AT}/bin/serena", "start-mcp-server", "--project-from-cwd", "--context", "ide",
    "--agent-interface", "tools", "--enable-web-dashboard", "false", "--log-level", "ERROR",
)  # fmt: skip
PRICE = "def price(n: int) -> int:\n    return n"
MAKE_PYTHON = f"""mkdir .serena
printf 'project_name: %s\\nlanguages: [python_jedi]\\n' $name > .serena/project.yml
printf '{PRICE}\\n\\n\\ndef total_of_%s() -> int:\\n    return price(1)\\n' $name > shop.py"""
RULES = "export default [{ rules: { eqeqeq: 'error', 'no-unused-vars': 'error' } }];"
MAKE_LINTED = f"""echo "{RULES}" > eslint.config.mjs
echo "let $name = 1; if (b == 2) {{}}" > bad.js"""
MAKE_WORKSPACE = f"""ln -s {MODULES} node_modules; echo '{{}}' > nx.json; mkdir -p apps/$name
echo '{{"name": "all", "private": true, "workspaces": ["apps/*"]}}' > package.json
printf '{{"name": "of-%s", "version": "1.0.0", "scripts": {{"build": "true"}}}}' $name \\
    > apps/$name/package.json"""
MAKE_ANGULAR = """printf '{"version": 1, "projects": {"of-%s": {"projectType": "library", \\
    "root": "", "sourceRoot": "src", "prefix": "x"}}}' $name > angular.json"""
MAKE_NEXT = """mkdir -p node_modules/next/dist/docs; echo '{}' > package.json
echo '{"name": "next", "version": "16.1.0"}' > node_modules/next/package.json"""
NX = Server(
    command=(NODE, f"{MODULES}/nx-mcp/main.js", "--no-minimal", "--disableTelemetry"),
    env={"NX_DAEMON": "false"},
    calls=[("nx_workspace_path", {}), ("nx_generators", {}), ("nx_workspace", {})],
    prepare=MAKE_WORKSPACE,
    shows=f"<of-{NAME}>targets:[build]",
    makes=".nx/workspace-data/project-graph.json",
    volatile=(".nx/",),
)
SERVERS = {
    # A language server: it starts another process, and keeps what it learns in `.serena`.
    "serena": Server(
        command=SERENA,
        env={"PATH": f"{AT}/bin:/usr/bin:/bin", "SERENA_USAGE_REPORTING": "false"},
        calls=[
            ("get_symbols_overview", {"relative_path": "shop.py"}),
            ("find_symbol", {"name_path_pattern": "price", "include_body": True}),
            ("find_referencing_symbols", {"name_path": "price", "relative_path": "shop.py"}),
            (
                "replace_symbol_body",
                {"name_path": "price", "relative_path": "shop.py", "body": f"{PRICE} + 1"},
            ),
            ("write_memory", {"memory_name": "prices", "content": "größer"}),
            ("list_memories", {}),
        ],
        prepare=MAKE_PYTHON,
        shows=f"total_of_{NAME}",
        makes=".serena/memories/prices.md",
        volatile=(".serena/cache/",),
    ),
    "eslint": Server(
        command=(NODE, f"{MODULES}/@eslint/mcp/src/mcp-cli.js"),
        calls=[("lint-files", {"filePaths": [f"{PROJECT}/bad.js"]})],
        prepare=MAKE_LINTED,
    ),
    # It runs the project's own copy of nx, which runs code of the project.
    "nx": replace(NX, env={"NX_DAEMON": "false", "NX_ISOLATE_PLUGINS": "false"}),
    "nx-workers": NX,
    # It asks for the roots, and searches them.
    "angular": Server(
        command=(NODE, f"{MODULES}/@angular/cli/bin/ng.js", "mcp"),
        env={"NG_CLI_ANALYTICS": "false"},
        calls=[("list_projects", {}), ("get_best_practices", {})],
        prepare=MAKE_ANGULAR,
    ),
    "next": Server(
        command=(NODE, f"{MODULES}/next-devtools-mcp/dist/index.js"),
        env={"NEXT_TELEMETRY_DISABLED": "1"},
        calls=[("nextjs_docs", {"topic": "cache"})],
        prepare=MAKE_NEXT,
    ),
}


@contextmanager
def with_servers(suite: str) -> Iterator[Machine]:
    """Boot a machine on which alice has two projects, and servers that may see them."""
    with installed.project_servers_machine(suite) as machine:
        project_servers.with_entries(machine, SERVERS)
        yield machine


STAGE = with_servers


@pytest.mark.parametrize("name", [name for name in SERVERS if name != "nx-workers"])
def test_answers_and_files_are_those_of_the_server_itself(machine: Machine, name: str) -> None:
    project_servers.assert_same(machine, name, SERVERS[name])


def test_a_server_whose_processes_use_unix_sockets_tells_that_they_failed(machine: Machine) -> None:
    """A server has none of its own: by default, nx reads a workspace in processes with one each."""
    found = project_servers.used(machine, "nx-workers", NX, PROJECTS[:1])
    read, told = (json.dumps(found[way][PROJECTS[0]]["steps"][-1]) for way in (RAW, WRAPPED))
    assert "<of-one>targets:[build]" in read
    assert "Failed to load 3 default Nx plugin(s)" in told
    assert "before the connection was established" in told
