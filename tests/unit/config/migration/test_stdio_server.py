"""Conversion of a program in an entry into a proposed server: its settings, and refusals."""

from dataclasses import replace

import pytest

from mcpwrap.config.agent_files.transport import StdioTransport
from mcpwrap.config.migration.draft import EntryContext, MigrationError, PathInfo, ResolvedCommand
from mcpwrap.config.migration.path_grants import named_paths
from mcpwrap.config.migration.stdio_server import draft, expanded
from mcpwrap.config.model import Destination, Group, Local, SecretRef, Workspace

HOME = "/home/alice"
SHOP = f"{HOME}/shop"
NVM = f"{HOME}/.nvm/versions/node/v22.1.0"
AROUND = EntryContext(
    account="alice",
    home=HOME,
    variables={"DATA": f"{HOME}/data"},
    program=ResolvedCommand("/usr/bin/npx"),
    places={
        f"{HOME}/data": PathInfo(is_folder=True),
        f"{HOME}/data/sub": PathInfo(is_folder=True),
        f"{HOME}/notes.json": PathInfo(is_folder=False, top=HOME),
        f"{HOME}/new/notes.json": PathInfo(is_folder=False, is_there=False, top=f"{HOME}/new"),
        f"{HOME}/data/x.db": PathInfo(is_folder=False, top=f"{HOME}/data"),
        f"{HOME}/data/notes.json": PathInfo(is_folder=False, top=f"{HOME}/data"),
        f"{HOME}/data/settings.json": PathInfo(is_folder=False, top=f"{HOME}/data"),
        f"{HOME}/data/out.log": PathInfo(is_folder=False, top=f"{HOME}/data"),
        "/srv/team/notes.json": PathInfo(is_folder=False),  # in another account's folder
        "/srv/team/x.db": PathInfo(is_folder=False),
        f"{HOME}/key.json": PathInfo(is_folder=False, top=HOME),
        f"{SHOP}/src/server.js": PathInfo(is_folder=False, is_code=True, top=SHOP),
        HOME: PathInfo(is_folder=True),
        SHOP: PathInfo(is_folder=True),
        f"{HOME}/x.db": PathInfo(is_folder=False, top=HOME),
        f"{HOME}/store": PathInfo(is_folder=False, is_there=False, top=HOME),
        f"{HOME}/one.py": PathInfo(is_folder=False, is_code=True, top=HOME),
        f"{HOME}/new.db": PathInfo(is_folder=False, is_there=False, top=HOME),
        f"{HOME}/link": PathInfo(is_folder=True, leads_to="/data/alice"),
    },
)
IN_SHOP = replace(AROUND, base=SHOP)


def given(path: str, *, is_writable: bool) -> Workspace:
    return Workspace(path, is_writable=is_writable)


@pytest.mark.parametrize(
    ("args", "env", "expected"),
    [
        ((f"{HOME}/data",), {}, (given(f"{HOME}/data", is_writable=True),)),
        ((f"--root={HOME}/data",), {}, (given(f"{HOME}/data", is_writable=True),)),
        (("~/data",), {}, (given(f"{HOME}/data", is_writable=True),)),
        ((f"{HOME}/data", f"{HOME}/data/sub"), {}, (given(f"{HOME}/data", is_writable=True),)),
        ((f"{HOME}/notes.json",), {}, (given(f"{HOME}/notes.json", is_writable=True),)),
        ((f"{HOME}/new/notes.json",), {}, (given(f"{HOME}/new", is_writable=True),)),
        ((f"{HOME}/data/x.db",), {}, (given(f"{HOME}/data", is_writable=True),)),  # its journal
        ((f"{SHOP}/src/server.js",), {}, (given(SHOP, is_writable=False),)),
        ((), {"NOTES": f"{HOME}/data/notes.json"}, (given(f"{HOME}/data", is_writable=True),)),
        (("--file", "~/data/notes.json"), {}, (given(f"{HOME}/data", is_writable=True),)),
        (("--file=~/data/notes.json",), {}, (given(f"{HOME}/data", is_writable=True),)),
        (  # a file to work on: others are beside it
            (f"{HOME}/data/notes.json",), {},
            (given(f"{HOME}/data/notes.json", is_writable=True),),
        ),
        *(
            (args, env, (given(f"{HOME}/data/{name}", is_writable=True),))
            for args, env, name in (
                (("--file", "~/data/settings.json"), {}, "settings.json"),
                (("--log-file", "~/data/notes.json"), {}, "notes.json"),
                (("--config", "~/data/notes.json"), {}, "notes.json"),
                (("--token-file", f"{HOME}/data/notes.json"), {}, "notes.json"),
                ((), {"APP_CONFIG": f"{HOME}/data/notes.json"}, "notes.json"),
                ((), {"OUT": f"{HOME}/data/out.log"}, "out.log"),
            )
        ),
        ((), {"NOTES": "/srv/team/notes.json"}, (given("/srv/team/notes.json", is_writable=True),)),
        (("--db", "/srv/team/x.db"), {}, (given("/srv/team/x.db", is_writable=True),)),
        ((), {"API_KEY": f"{HOME}/key.json"}, (given(f"{HOME}/key.json", is_writable=False),)),
        ((), {"DIR": "${DATA}"}, (given(f"{HOME}/data", is_writable=True),)),
        (("/srv/other",), {}, ()),  # nothing of alice's
        (("x.db",), {}, ()),  # relative, without a base
    ],
)  # fmt: skip
def test_what_it_sees_of_its_person(
    args: tuple[str, ...], env: dict[str, str], expected: tuple[Workspace, ...]
) -> None:
    assert draft("s", StdioTransport("npx", args, env), AROUND).server.workspace == expected


def test_code_of_an_interpreter_that_is_ones_own() -> None:
    program = ResolvedCommand(
        f"{NVM}/bin/npx", (NVM, f"{NVM}/lib/node_modules/npm"), (f"{NVM}/bin",)
    )
    server = draft("s", StdioTransport("npx", ("-y", "x")), replace(AROUND, program=program)).server
    assert server.runs == Local(
        command=f"{NVM}/bin/npx",
        args=("-y", "x"),
        env={"PATH": (f"{NVM}/bin:/usr/local/bin:/usr/bin:/bin",)},
    )
    assert server.workspace == (given(NVM, is_writable=False),)
    own = draft(
        "s", StdioTransport("npx", (), {"PATH": "/x"}), replace(AROUND, program=program)
    ).server
    assert isinstance(own.runs, Local)
    assert own.runs.env == {"PATH": ("/x",)}


def test_where_it_is_started() -> None:
    """Only where a relative path would lead elsewhere."""
    server = draft("s", StdioTransport("node", ("./src/server.js",)), IN_SHOP).server
    assert isinstance(server.runs, Local)
    assert (server.runs.cwd, server.workspace) == (SHOP, (given(SHOP, is_writable=True),))
    server = draft("s", StdioTransport("node", ("/srv/x.js",)), IN_SHOP).server
    assert isinstance(server.runs, Local)
    assert (server.runs.cwd, server.workspace) == ("", ())
    server = draft("s", StdioTransport("npx", ("-y", "x")), IN_SHOP).server
    assert isinstance(server.runs, Local)
    assert (server.runs.cwd, server.workspace) == ("", ())
    server = draft("s", StdioTransport("npx", (), cwd=f"{HOME}/data"), AROUND).server
    assert isinstance(server.runs, Local)
    assert server.runs.cwd == f"{HOME}/data"
    assert server.workspace == (given(f"{HOME}/data", is_writable=True),)


@pytest.mark.parametrize(
    ("command", "egress", "has_cache"),
    [
        ("npx", (Group("npm"),), True),
        ("/opt/x/bunx", (Group("npm"),), True),
        ("uvx", (Group("pypi"),), True),
        ("node", (), False),
    ],
)
def test_what_it_reaches(command: str, egress: tuple[Group, ...], *, has_cache: bool) -> None:
    server = draft("s", StdioTransport(command), AROUND).server
    assert (server.egress, server.cache) == (egress, has_cache)
    more = (Destination("api.example.com", 443, with_subdomains=False),)
    found = draft("s", StdioTransport(command), AROUND, more)
    assert found.server.egress == (*egress, *more)
    assert not found.notes


@pytest.mark.parametrize(
    ("path", "why"),
    [
        (".ssh", "your keys or logins are there"),
        (".ssh/id_ed25519", "keys or logins"),
        (".local/share", "keys or logins"),  # somewhere in it
        (".config", "keys or logins"),
        (".bashrc", "files there are run under your account"),
        (".claude", "are run under your account"),
        (".config/systemd/user", "are run under your account"),
    ],
)
def test_what_no_entry_gets_by_naming_it(path: str, why: str) -> None:
    whole = f"{HOME}/{path}"
    around = replace(AROUND, places={whole: PathInfo(is_folder=True)})
    for launch in (StdioTransport("npx", (whole,)), StdioTransport("npx", (), {"DIR": whole})):
        with pytest.raises(MigrationError, match=why):
            draft("s", launch, around)


def test_code_is_read_where_nothing_may_be_written() -> None:
    program = ResolvedCommand(f"{HOME}/.local/bin/uvx", (f"{HOME}/.local/bin",))
    found = draft("s", StdioTransport("uvx"), replace(AROUND, program=program))
    assert found.server.workspace == (given(f"{HOME}/.local/bin", is_writable=False),)
    with pytest.raises(MigrationError, match="keys or logins"):
        draft(
            "s",
            StdioTransport("uvx"),
            replace(AROUND, program=ResolvedCommand("/x", (f"{HOME}/.gnupg",))),
        )


def test_secrets_leave_it() -> None:
    env = {"API_KEY": "abc", "ASKED": "${input:x}", "LEVEL": "info"}
    found = draft("s", StdioTransport("npx", (), env), AROUND)
    assert isinstance(found.server.runs, Local)
    assert found.server.runs.env == {
        "API_KEY": (SecretRef("API_KEY"),),
        "ASKED": (SecretRef("ASKED"),),
        "LEVEL": ("info",),
    }
    assert (found.value_by_key, found.missing) == ({"API_KEY": "abc"}, ("ASKED",))
    assert found.server.agents == ("alice",)


@pytest.mark.parametrize(
    ("launch", "around", "why"),
    [
        (
            StdioTransport("docker", ("run", "x")),
            AROUND,
            "a daemon would start its container as root",
        ),
        (StdioTransport("nothere"), replace(AROUND, program=None), "'nothere' is not found"),
        (StdioTransport("npx", ("--token", "abc")), AROUND, "its argument 2 holds a secret"),
        (
            StdioTransport("npx", (HOME,)),
            AROUND,
            f"it would get the whole of {HOME}: '{HOME}' includes",
        ),
        (StdioTransport("npx", ("~",)), AROUND, "; name a folder in it"),
        (
            StdioTransport("npx", (f"{HOME}/x.db",)),
            AROUND,
            f"it; keep it in a folder of its own, such as '{HOME}/x/x.db', and write that path",
        ),
        (
            StdioTransport("npx", (f"{HOME}/new.db",)),
            AROUND,
            f"such as '{HOME}/new/new.db'",
        ),  # not there yet
        (
            StdioTransport("npx", (), {"NOTES": f"{HOME}/notes.json"}),
            AROUND,
            f"such as '{HOME}/notes/notes.json'",
        ),
        (StdioTransport("npx", (f"{HOME}/store",)), AROUND, f"such as '{HOME}/store.d/store'"),
        (
            StdioTransport("npx", (f"{HOME}/one.py",)),
            AROUND,
            "a program needs the files beside its code",
        ),
        (
            StdioTransport("npx", (f"{HOME}/link",)),
            AROUND,
            "behind a link: write '/data/alice' instead",
        ),
        (StdioTransport("env", ("npx", "x")), AROUND, "write that as `command`"),
        (
            StdioTransport("flatpak", ("run", "x")),
            AROUND,
            "needs privileges, which a server never gets",
        ),
        (StdioTransport("/snap/bin/npx", ("x",)), AROUND, "needs privileges"),
    ],
)
def test_what_is_refused(launch: StdioTransport, around: EntryContext, why: str) -> None:
    with pytest.raises(MigrationError) as refusal:
        draft("s", launch, around)
    assert why in str(refusal.value)
    assert "abc" not in str(refusal.value)


def test_what_the_agent_fills_in() -> None:
    launch = StdioTransport("${DATA}/run", ("${DATA}", "x"), cwd="sub")
    assert expanded(launch, replace(AROUND, base=SHOP)) == StdioTransport(
        f"{HOME}/data/run", (f"{HOME}/data", "x"), cwd=f"{SHOP}/sub"
    )
    for unknown in (
        StdioTransport("npx", ("${input:x}",)),
        StdioTransport("${X}"),
        StdioTransport("npx", cwd="${X}"),
    ):
        with pytest.raises(MigrationError, match="only the agent can resolve"):
            expanded(unknown, AROUND)


def test_the_home_that_a_server_would_take_for_its_own() -> None:
    launch = StdioTransport(
        "~/bin/x", ("~/data", "--root=~/data", "~", "a=~/b", "~x"), {"D": "~/d"}
    )
    assert expanded(launch, AROUND) == StdioTransport(
        f"{HOME}/bin/x",
        (f"{HOME}/data", f"--root={HOME}/data", HOME, "a=~/b", "~x"),
        {"D": f"{HOME}/d"},
    )


@pytest.mark.parametrize(
    ("launch", "around", "notes"),
    [
        (
            StdioTransport("node", ("https://a.example/x", "postgresql://db.example:5432/d")),
            AROUND,
            ["it names a.example, and does not", "it names db.example:5432, and does not"],
        ),
        (
            StdioTransport("node", (), {"URL": "http://localhost:8080/"}),
            AROUND,
            ["names localhost:8080"],
        ),
        (
            StdioTransport("node", (), {"DB": "postgres://u:9/x@db.example/"}),
            AROUND,
            [],
        ),  # of a password
        (
            StdioTransport("node", (), {"DB": "postgres://u:9@db.example/"}),
            AROUND,
            ["names db.example,"],
        ),
        (
            StdioTransport("node", (), {"NOTES": f"{HOME}/data/notes.json"}),
            AROUND,
            [f"it may write all of {HOME}/data, which it needs to save {HOME}/data/notes.json"],
        ),
        (
            StdioTransport("node", ("--file", f"{HOME}/new/notes.json")),
            AROUND,
            [f"it may write all of {HOME}/new, which it needs to save {HOME}/new/notes.json"],
        ),
        (StdioTransport("node", (f"{HOME}/data", f"{HOME}/notes.json")), AROUND, []),
        (StdioTransport("sh", ("-c", "cd x && y")), AROUND, ["it is a line for a shell"]),
        (StdioTransport("sh", ("x.sh",)), AROUND, ["write the absolute path of 'x.sh'"]),
        (StdioTransport("sh", ("x.sh",)), IN_SHOP, []),
        (StdioTransport("sh", (f"{SHOP}/x.sh", "--config=x.py")), AROUND, []),
    ],
)
def test_what_may_not_work_is_told(
    launch: StdioTransport, around: EntryContext, notes: list[str]
) -> None:
    first, *found = draft("s", launch, around).notes
    assert "no network" in first
    assert len(found) == len(notes)
    assert all(said in one for said, one in zip(notes, found, strict=True))
    listed = (Destination("a.example", 443, with_subdomains=False),)
    assert not any("a.example" in note for note in draft("s", launch, around, listed).notes)


def test_the_paths_that_it_names() -> None:
    launch = StdioTransport(
        "node", ("./a.js", "--db=/x/y", "plain", "/z"), {"D": "~/d", "E": "no"}, SHOP
    )
    assert list(named_paths(launch, IN_SHOP)) == [SHOP, f"{SHOP}/a.js", "/x/y", "/z", f"{HOME}/d"]
