"""Entries that need the project that is open, and the `projects` that are proposed for them."""

from dataclasses import replace

import pytest

from mcpwrap.config.agent_files.transport import StdioTransport
from mcpwrap.config.migration import projects
from mcpwrap.config.migration.draft import (
    Draft,
    EntryContext,
    MigrationError,
    PathInfo,
    ProjectAccess,
    ResolvedCommand,
)
from mcpwrap.config.migration.stdio_server import draft, expanded
from mcpwrap.config.model import Local, Server, Workspace

HOME, SRC = "/home/alice", "/home/alice/src"
APP = f"{SRC}/app"
FOR_ALL = EntryContext(
    account="alice",
    home=HOME,
    program=ResolvedCommand("/usr/bin/npx"),
    places={
        path: PathInfo(is_folder=True)
        for path in (SRC, APP, f"{APP}/docs", f"{SRC}/lib", f"{HOME}/data")
    },
)
OF_APP = replace(FOR_ALL, base=APP, project=APP, variables={"workspaceFolder": APP})
NEEDED, RUNS_CODE = ProjectAccess(), ProjectAccess(runs_code=True)


def npx(*args: str) -> StdioTransport:
    return StdioTransport("npx", args)


@pytest.mark.parametrize(
    ("launch", "for_all", "of_app"),
    [
        (npx("x", "--repository", "."), NEEDED, NEEDED),
        (npx("x", "--repository=."), NEEDED, NEEDED),
        (npx("x", "./"), NEEDED, NEEDED),
        (npx("x", ".."), None, NEEDED),  # not the open folder
        (npx("x", "."), NEEDED, NEEDED),
        (npx("x", "${workspaceFolder}/src"), NEEDED, NEEDED),
        (npx("x", "${CLAUDE_PROJECT_DIR:-.}"), NEEDED, NEEDED),
        (StdioTransport("x", (), {"ROOT": "${CLAUDE_PROJECT_DIR}"}), NEEDED, NEEDED),
        (StdioTransport("x", cwd="${workspaceFolder}"), NEEDED, NEEDED),
        (StdioTransport("x", cwd="."), NEEDED, NEEDED),
        (StdioTransport("x", cwd=APP), None, NEEDED),
        (StdioTransport("x", (".",), cwd=f"{APP}/docs"), None, None),  # for a fixed folder
        (StdioTransport("x", (".",), cwd="${NOT_KNOWN}"), None, None),
        (npx("x"), None, NEEDED),
        (StdioTransport("uvx", ("serena", "--project-from-cwd")), NEEDED, NEEDED),
        # Known servers, by package, program or command.
        (npx("-y", "@playwright/mcp@latest"), NEEDED, NEEDED),
        (npx("-y", "--package=@eslint/mcp@1.2", "mcp"), RUNS_CODE, RUNS_CODE),
        (npx("shadcn@latest", "mcp"), RUNS_CODE, RUNS_CODE),
        (StdioTransport("pnpm", ("dlx", "nx-mcp")), RUNS_CODE, RUNS_CODE),
        (StdioTransport("php", ("artisan", "boost:mcp")), RUNS_CODE, RUNS_CODE),
        (StdioTransport("/opt/x/ng", ("mcp",)), RUNS_CODE, RUNS_CODE),
        (StdioTransport("uvx", ("mcp-server-git==1.0",)), NEEDED, NEEDED),
        (StdioTransport("uvx", ("semgrep-mcp[x]",)), NEEDED, NEEDED),
        (StdioTransport("python3", ("-m", "mcp_server_git")), NEEDED, NEEDED),
        (
            StdioTransport("uvx", ("--from", "git+https://github.com/oraios/serena", "x")),
            NEEDED,
            NEEDED,
        ),
        (StdioTransport("node", ("/opt/node_modules/@playwright/mcp/cli.js",)), NEEDED, NEEDED),
        (StdioTransport("node", ("/opt/node_modules/nx-mcp/x.js",)), RUNS_CODE, RUNS_CODE),
        (npx("docs", "prisma"), None, NEEDED),  # a subject, not the package
        # A known server for a folder that is named; a program's path is not such a folder.
        (npx("mcp-server-filesystem", f"{HOME}/data"), None, NEEDED),
        (npx("mcp-server-filesystem", "~/data"), None, NEEDED),
        (npx("chrome-devtools-mcp", "--executablePath=/usr/bin/chromium"), NEEDED, NEEDED),
        # Known servers that need no folder, also for one project.
        (npx("-y", "@upstash/context7-mcp@1"), None, None),
        (StdioTransport("uvx", ("mcp-server-fetch",)), None, None),
        (npx("mcp-server-time", "."), NEEDED, NEEDED),  # but for one that is named
    ],
)
def test_what_needs_the_open_project(
    launch: StdioTransport, for_all: ProjectAccess | None, of_app: ProjectAccess | None
) -> None:
    assert projects.access_for(launch, FOR_ALL) == for_all
    assert projects.access_for(launch, OF_APP) == of_app


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([SRC], (SRC,)),
        ([SRC, f"{SRC}/team", f"{HOME}/work"], (SRC, f"{HOME}/work")),
        ([SRC, f"{HOME}/.config", f"{HOME}/.ssh/x", f"{HOME}/bin"], (SRC,)),  # not harmless
        (["/tmp", "/etc/x", "/", HOME, "/home"], ()),
        ([f"{HOME}/p{n}" for n in range(4)], tuple(f"{HOME}/p{n}" for n in range(4))),
        ([f"{HOME}/p{n}" for n in range(5)], ()),  # too many to judge
        ([], ()),
    ],
)
def test_the_folders_to_list(found: list[str], expected: tuple[str, ...]) -> None:
    assert projects.proposed(found, FOR_ALL) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"projects": {APP: {}, "x": {}, HOME: {}, f"{SRC}/.x/y": {}, "/srv/p": {}}}, [APP]),
        ({"projects": [APP]}, []),
        ({}, []),
        (None, []),
    ],
)
def test_the_projects_that_an_agent_knows(data: object, expected: list[str]) -> None:
    known = projects.known_to_agent(data)
    assert [path for path in known if projects.is_usual(path, HOME)] == expected


def drafted(launch: StdioTransport, context: EntryContext, *lists: str) -> Draft:
    access = projects.access_for(launch, context)
    assert access
    variables = {"workspaceFolder": context.project or ".", **context.variables}
    known = replace(context, access=replace(access, lists=lists), variables=variables)
    return draft("s", expanded(launch, known), known)


def given(path: str) -> Workspace:
    return Workspace(path, is_writable=True)


@pytest.mark.parametrize(
    ("launch", "context", "args", "workspace"),
    [
        (npx("x", "."), FOR_ALL, ("x", "."), ()),
        (npx("x", "."), OF_APP, ("x", "."), ()),
        (npx("x", "--root=${workspaceFolder}/a"), FOR_ALL, ("x", "--root=${PROJECT}/a"), ()),
        (npx("x", "--root=${workspaceFolder}/a"), OF_APP, ("x", "--root=${PROJECT}/a"), ()),
        # The project is shown anyway, another folder is not.
        (npx("x", f"{APP}/docs", f"{HOME}/data"), OF_APP, None, (given(f"{HOME}/data"),)),
        (npx("x", f"{SRC}/lib"), OF_APP, None, (given(f"{SRC}/lib"),)),
        # The name of a folder is not to be a part of code.
        (
            StdioTransport("sh", ("-c", "cd ${workspaceFolder} && x")),
            OF_APP,
            ("-c", "cd . && x"),
            (),
        ),
        (
            StdioTransport("node", ("-e", "f('${workspaceFolder}')")),
            FOR_ALL,
            ("-e", "f('.')"),
            (),
        ),
    ],
)
def test_what_is_proposed_for_it(
    launch: StdioTransport,
    context: EntryContext,
    args: tuple[str, ...] | None,
    workspace: tuple[Workspace, ...],
) -> None:
    found = drafted(launch, context, SRC)
    assert isinstance(found.server.runs, Local)
    assert found.server.runs.args == (args or launch.args)
    assert (found.server.runs.cwd, found.server.workspace) == ("", workspace)
    assert found.server.projects == (given(SRC),)
    note = f"it may write the project in {SRC} in which its agent starts it, and sees no other"
    assert found.notes[-1] == note


def test_a_variable_names_the_project_of_its_entry() -> None:
    launch = StdioTransport("npx", ("x",), {"ROOT": "${workspaceFolder}/a"})
    for context, value in ((OF_APP, f"{APP}/a"), (FOR_ALL, "./a")):
        runs = drafted(launch, context, SRC).server.runs
        assert isinstance(runs, Local)
        assert runs.env == {"ROOT": (value,)}


def test_code_of_the_project_is_said() -> None:
    found = drafted(npx("shadcn"), FOR_ALL, SRC, f"{HOME}/work")
    assert found.server.projects == (given(SRC), given(f"{HOME}/work"))
    assert found.notes[-1] == "it runs code of that project: dependencies, scripts, settings"


def test_where_no_project_is_known_root_is_told_what_to_add() -> None:
    found = drafted(npx("x", "--root", "${workspaceFolder}"), FOR_ALL)
    assert isinstance(found.server.runs, Local)
    assert (found.server.runs.args, found.server.projects) == (("x", "--root", "."), ())
    assert found.notes[-1] == (
        "it is started in an empty folder: it needs the project that is open, so root adds the"
        " folder above your projects to /etc/mcpwrap/conf.d/NAME.toml, as"
        f' `projects = ["{SRC}:rw"]`'
    )


@pytest.mark.parametrize(
    ("context", "lists", "args", "cwd", "expected"),
    [
        (FOR_ALL, (SRC,), (".", SRC), "", ()),
        (OF_APP, (SRC,), (".", SRC), APP, ()),
        (OF_APP, (SRC, f"{HOME}/work"), ("${PROJECT}", SRC), "", (given(f"{HOME}/work"),)),
    ],
)
def test_a_list_of_which_a_workspace_shows_all(
    context: EntryContext,
    lists: tuple[str, ...],
    args: tuple[str, ...],
    cwd: str,
    expected: tuple[Workspace, ...],
) -> None:
    """The entry names the folder above the projects too: there is nothing to choose from."""
    server = drafted(StdioTransport("node", ("${workspaceFolder}", SRC)), context, *lists).server
    assert isinstance(server.runs, Local)
    assert (server.runs.args, server.runs.cwd, server.projects) == (args, cwd, expected)
    assert given(SRC) in server.workspace


def test_a_program_below_the_open_folder_is_not_found() -> None:
    with pytest.raises(MigrationError, match=r"'./x' is not found in PATH"):
        drafted(StdioTransport("${workspaceFolder}/x"), replace(FOR_ALL, program=None), SRC)


def server(*lists: str) -> Server:
    return Server(name="s", runs=Local(command="/x"), projects=tuple(map(given, lists)))


@pytest.mark.parametrize(
    ("there", "wanted", "expected"),
    [
        ((SRC,), (SRC,), []),
        ((SRC,), (f"{SRC}/team",), []),
        ((f"{SRC}/team",), (SRC,), [SRC]),
        ((), (SRC,), [SRC]),
        ((SRC,), (), []),
    ],
)
def test_lists_that_an_existing_server_lacks(
    there: tuple[str, ...], wanted: tuple[str, ...], expected: list[str]
) -> None:
    assert projects.unseen(server(*there), server(*wanted)) == expected


def test_equal_entries_of_several_projects_are_one_server() -> None:
    one = drafted(npx("x", "."), OF_APP, f"{SRC}/team")
    other = drafted(npx("x", "."), FOR_ALL)
    both = projects.merged(projects.merged(other, one), drafted(npx("x", "."), FOR_ALL, SRC))
    assert both.server.projects == (given(SRC),)
    assert not any("empty folder" in note for note in both.notes)
    assert projects.merged(other, other) == other
