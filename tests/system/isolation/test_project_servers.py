"""Real servers do in the project of their agent what they do when the agent starts them itself."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.system.bed import installed
from tests.system.bed.machine import Machine
from tests.system.guest.project_calls import PROJECT
from tests.system.isolation import project_servers
from tests.system.isolation.project_servers import DATE, HOME, NAME, PROJECTS, RAW, WRAPPED, Server
from tests.system.support.servers import NODE_MODULES
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

# Of one release: test_projects.py has what the kernel shows and refuses on both.
pytestmark = ON_ONE_RELEASE

REPO = {"repo_path": PROJECT}
TABLE = "CREATE TABLE t (a INTEGER, b TEXT)"
GRAPH = {"entities": [{"name": PROJECT, "entityType": "project", "observations": ["new"]}]}
SERVERS = {
    # Each call names the repository; that of `--repository` is the only one that it takes.
    "git": Server(
        command=("/opt/mcp/pypi/bin/mcp-server-git", "--repository", "."),
        env={"GIT_AUTHOR_DATE": DATE, "GIT_COMMITTER_DATE": DATE},
        calls=[
            ("git_status", REPO),
            ("git_diff_unstaged", REPO),
            ("git_add", {**REPO, "files": ["notes.txt"]}),
            ("git_commit", {**REPO, "message": "größer"}),
            ("git_create_branch", {**REPO, "branch_name": "side"}),
            ("git_checkout", {**REPO, "branch_name": "side"}),
            ("git_log", {**REPO, "max_count": 5}),
            ("git_show", {**REPO, "revision": "HEAD"}),
            ("git_branch", {**REPO, "branch_type": "local"}),
        ],
        shows=f"first of {NAME}",
        makes=".git/refs/heads/side",
    ),
    # The client's roots take the place of its argument.
    "filesystem": Server(
        command=("/usr/bin/node", f"{NODE_MODULES}/server-filesystem/dist/index.js", "."),
        calls=[
            ("list_allowed_directories", {}),
            ("write_file", {"path": f"{PROJECT}/docs/new.md", "content": "one\ntwo\n"}),
            (
                "edit_file",
                {
                    "path": f"{PROJECT}/notes.txt",
                    "edits": [{"oldText": "second", "newText": "2"}],
                },
            ),
            ("read_text_file", {"path": f"{PROJECT}/notes.txt"}),
            ("create_directory", {"path": f"{PROJECT}/sub/dir"}),
            (
                "move_file",
                {
                    "source": f"{PROJECT}/docs/new.md",
                    "destination": f"{PROJECT}/sub/dir/new.md",
                },
            ),
            ("list_directory_with_sizes", {"path": PROJECT}),
            ("directory_tree", {"path": PROJECT, "excludePatterns": [".git"]}),
            ("search_files", {"path": PROJECT, "pattern": "**/*.md"}),
        ],
        makes="sub/dir/new.md",
    ),
    "sqlite": Server(
        command=("/opt/mcp/sqlite/bin/mcp-server-sqlite", "--db-path", "data.db"),
        calls=[
            ("create_table", {"query": TABLE}),
            ("write_query", {"query": "INSERT INTO t VALUES (1, '${PROJECT}'), (2, 'größer')"}),
            ("read_query", {"query": "SELECT * FROM t LIMIT 9"}),
            ("list_tables", {}),
            ("describe_table", {"table_name": "t"}),
        ],
        makes="data.db",
    ),
    # Its file is in no project: both are in one graph.
    "memory": Server(
        command=("/usr/bin/node", f"{NODE_MODULES}/server-memory/dist/index.js"),
        env={"MEMORY_FILE_PATH": "/var/lib/mcpwrap/state/memory/memory.json"},
        own={"MEMORY_FILE_PATH": f"{HOME}/memory.json"},
        settings="state = true",
        calls=[
            ("create_entities", GRAPH),
            ("search_nodes", {"query": "new"}),
            ("read_graph", {}),
        ],
    ),
    # The agent is asked for its roots.
    "everything": Server(
        command=("/usr/bin/node", f"{NODE_MODULES}/server-everything/dist/index.js"),
        calls=[("get-roots-list", {}), ("echo", {"message": "hello"})],
        settings='pins = "off"',
        tells="Roots updated",
    ),
}
ROWS = [
    "git",
    "filesystem",
    pytest.param("sqlite", marks=only_in_test_all("filesystem makes files as well")),
    pytest.param("memory", marks=only_in_test_all("its file is in no project")),
    pytest.param("everything", marks=only_in_test_all("filesystem asks for the roots as well")),
]


@contextmanager
def with_servers(suite: str) -> Iterator[Machine]:
    """Boot a machine on which alice has two projects, and servers that may see them."""
    with installed.booted(suite) as machine:
        project_servers.with_entries(machine, SERVERS)
        yield machine


STAGE = with_servers


@pytest.mark.parametrize("name", ROWS)
def test_answers_and_files_are_those_of_the_server_itself(machine: Machine, name: str) -> None:
    project_servers.assert_same(machine, name, SERVERS[name])


def test_of_what_a_server_writes_the_names_that_run_code_alone_are_refused(
    machine: Machine,
) -> None:
    """The one difference: those are read-only, as in a workspace."""
    held = [".envrc", ".git/config", ".mcp.json", "pyproject.toml"]
    names = ["notes.txt", "docs/new.md", *held]
    server = Server(
        command=SERVERS["filesystem"].command,
        calls=[("write_file", {"path": f"{PROJECT}/{name}", "content": "x"}) for name in names],
        prepare="touch .envrc .mcp.json pyproject.toml",
    )
    refused = {}
    for way, found in project_servers.used(machine, "filesystem", server, PROJECTS[:1]).items():
        _, _, *steps = found[PROJECTS[0]]["steps"]
        failed = map(project_servers.is_error, steps)
        refused[way] = [name for name, is_so in zip(names, failed, strict=True) if is_so]
    assert refused == {RAW: [], WRAPPED: held}
