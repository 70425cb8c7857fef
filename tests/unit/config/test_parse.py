"""Valid configurations, and their parsed values."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.config.file_types.config_file import (
    ProgramSettings,
    ProgramTable,
    RemoteSettings,
    RemoteTable,
    SessionLimitsTable,
)
from mcpwrap.config.file_types.fields import keys_of
from mcpwrap.config.model import (
    AllowedRequest,
    ApprovalSettings,
    Config,
    ConfigError,
    Destination,
    Direct,
    Group,
    Limits,
    Local,
    RemoteServer,
    SecretRef,
    Server,
    Template,
    Workspace,
)
from mcpwrap.config.parse import parse
from tests.unit.config.places import (
    BARE,
    ENV,
    HEADERS,
    LIMITS,
    LOCAL,
    OURS,
    REMOTE,
    REMOTE_OURS,
    STEERING,
    Place,
    source,
)

RUNS = Local(command="/x")
OPENED = "egress = ['*.x.example']\nintercept = true"
X = Destination("x.example", 443, with_subdomains=False)
EXAMPLE = """
[mcp_servers.github]
url = "https://api.githubcopilot.com/mcp/"
bearer_token_env_var = "GITHUB_TOKEN"

[mcp_servers.local-tool]
command = "/usr/local/bin/my-tool"
args = ["--mode", "mcp", "--verbose"]
cwd = "/home/alice/project"
env = { API_KEY = "${MY_TOOL_API_KEY}", TOOL_CONFIG = "/workspace/.tool-config.json" }
inherits = ["TZ"]

[mcp_servers.local-tool.mcpwrap]
agents = ["alice"]
egress = ["api.example.com", "*.example.org"]
direct = ["10.0.0.5:5432"]
workspace = ["/home/alice/project:rw"]
state = true
secret_files = ["MY_TOOL_API_KEY"]
relay = "gate"
idle_exit = "15m"
limits = { memory = "1G", tasks = 256, cpu = "150%", sessions = 16 }
"""


def test_the_example_of_the_design_is_understood() -> None:
    github = Server(
        name="github",
        egress=(Destination("api.githubcopilot.com", 443, with_subdomains=False),),
        transparent=False,
        runs=RemoteServer(
            url="https://api.githubcopilot.com/mcp/", bearer_token_env_var="GITHUB_TOKEN"
        ),
    )
    local_tool = Server(
        name="local-tool",
        runs=Local(
            command="/usr/local/bin/my-tool",
            args=("--mode", "mcp", "--verbose"),
            cwd="/home/alice/project",
            env={
                "API_KEY": (SecretRef("MY_TOOL_API_KEY"),),
                "TOOL_CONFIG": ("/workspace/.tool-config.json",),
            },
            inherits=("TZ",),
        ),
        agents=("alice",),
        egress=(
            Destination("api.example.com", 443, with_subdomains=False),
            Destination("example.org", 443, with_subdomains=True),
        ),
        direct=(Direct("10.0.0.5", 5432),),
        workspace=(Workspace("/home/alice/project", is_writable=True),),
        state=True,
        secret_files=("MY_TOOL_API_KEY",),
        idle_exit_s=900,
        limits=Limits(memory_bytes=1024**3, tasks=256, cpu_percent=150, sessions=16),
    )
    config = parse([source(EXAMPLE)])
    assert config.servers == {"github": github, "local-tool": local_tool}
    assert config.file_by_server == dict.fromkeys(config.servers, "f.toml")


def runs(**env: tuple[str | SecretRef, ...]) -> Server:
    return Server(name="a", runs=Local(command="/x", env=env))


def remote(
    *,
    url: str = "https://x.example/",
    bearer_token_env_var: str = "",
    headers: dict[str, Template] | None = None,
    **ours: Any,
) -> Server:
    """Return a server with a URL; by default that of the shortest text."""
    runs = RemoteServer(url=url, bearer_token_env_var=bearer_token_env_var, headers=headers or {})
    usual: dict[str, Any] = {"egress": (X,), "transparent": False}
    return Server(name="a", runs=runs, **(usual | ours))


RIGHT: list[tuple[Place, str, Server]] = [
    (LOCAL, "", Server(name="a", runs=RUNS)),  # the defaults are the narrowest
    (BARE, "url = 'https://h.example:8443/x?y'", remote(
        url="https://h.example:8443/x?y",
        egress=(Destination("h.example", 8443, with_subdomains=False),))),
    (BARE, "url = 'https://xn--bcher-kva.example'", remote(
        url="https://xn--bcher-kva.example",
        egress=(Destination("xn--bcher-kva.example", 443, with_subdomains=False),))),
    (REMOTE, "headers = {}", remote()),
    (REMOTE, "bearer_token_env_var = 'T'", remote(bearer_token_env_var="T")),
    (HEADERS, "X-Api-Key = '${KEY}'\n\"X_a.b~\" = 'v1 ${A}/${B}'", remote(
        headers={
            "X-Api-Key": (SecretRef("KEY"),),
            "X_a.b~": ("v1 ", SecretRef("A"), "/", SecretRef("B"))})),
    (HEADERS, "authorization = 'Basic ${A}'", remote(
        headers={"authorization": ("Basic ", SecretRef("A"))})),
    (REMOTE_OURS, "egress = ['x.example', 'y.example:8443', '@npm', 'x.example:443']", remote(
        egress=(X, Destination("y.example", 8443, with_subdomains=False), Group("npm")))),
    (REMOTE_OURS, "expose = 'http'", remote(expose="http")),  # they have listeners anyway
    (REMOTE_OURS, "relay = 'gate'\ntransparent = false\nstate = false", remote()),
    (REMOTE_OURS, "intercept = true\nrequests = ['POST x.example/']", remote(
        intercept=True, requests=(AllowedRequest(("POST",), "x.example", "/"),))),
    (OURS, "expose = 'http'", Server(name="a", runs=RUNS, expose="http")),
    (LOCAL, "args = ['', 'é', '$HOME', '${']", Server(
        name="a", runs=Local(command="/x", args=("", "é", "$HOME", "${")))),
    (LOCAL, "cwd = '/a b'", Server(name="a", runs=Local(command="/x", cwd="/a b"))),
    (LOCAL, "inherits = ['TZ', 'LC_ALL', 'TERM']", Server(
        name="a", runs=Local(command="/x", inherits=("TZ", "LC_ALL", "TERM")))),
    (LOCAL, f"inherits_any = {list(STEERING)}", Server(
        name="a", runs=Local(command="/x", inherits_any=STEERING))),
    (LOCAL, "inherits_any = ['x', 'TZ']", Server(  # TZ with any value
        name="a", runs=Local(command="/x", inherits_any=("x", "TZ")))),
    (LOCAL, "env = {}", Server(name="a", runs=RUNS)),
    (ENV, "A = ''", runs(A=())),
    (ENV, "A = 'a ${B}c$D'", runs(A=("a ", SecretRef("B"), "c$D"))),
    (ENV, "A = '${B}${B}'", runs(A=(SecretRef("B"), SecretRef("B")))),
    (ENV, "LD_PRELOAD = '/lib/x.so'", runs(LD_PRELOAD=("/lib/x.so",))),  # the operator may
    (OURS, "agents = ['alice', '@dev', '_ci', 'a.b-c']", Server(
        name="a", runs=RUNS, agents=("alice", "@dev", "_ci", "a.b-c"))),
    (OURS, "egress = []", Server(name="a", runs=RUNS)),
    (OURS, "egress = ['*.xn--bcher-kva.example:8443']", Server(
        name="a", runs=RUNS, egress=(Destination("xn--bcher-kva.example", 8443, True),))),  # noqa: FBT003
    (OURS, "egress = ['@pypi', 'x.example', '@npm']\ntransparent = false\ncache = true", Server(
        name="a",
        runs=RUNS,
        egress=(Group("pypi"), X, Group("npm")),
        transparent=False,
        cache=True)),
    (OURS, "transparent = true\nintercept = false\ncache = false", Server(name="a", runs=RUNS)),
    (OURS, "egress = ['x.example']\nintercept = true", Server(
        name="a", runs=RUNS, egress=(X,), intercept=True)),
    (OURS, "egress = ['@npm']\nintercept = true", Server(
        name="a", runs=RUNS, egress=(Group("npm"),), intercept=True)),
    (OURS, f"{OPENED}\nrequests = ['GET a.b.x.example/*', 'GET,PUT c.x.example/']", Server(
        name="a",
        runs=RUNS,
        egress=(Destination("x.example", 443, with_subdomains=True),),
        intercept=True,
        requests=(
            AllowedRequest(("GET",), "a.b.x.example", "/*"),
            AllowedRequest(("GET", "PUT"), "c.x.example", "/")))),
    (OURS, "direct = ['[FD00:0::5]:1', '127.0.0.1:65535']", Server(
        name="a", runs=RUNS, direct=(Direct("fd00::5", 1), Direct("127.0.0.1", 65535)))),
    (OURS, "workspace = ['/a:b:ro']", Server(
        name="a", runs=RUNS, workspace=(Workspace("/a:b", is_writable=False),))),
    (OURS, "projects = ['/a/b:rw', '/a/c:ro']", Server(
        name="a", runs=RUNS, projects=(
            Workspace("/a/b", is_writable=True), Workspace("/a/c", is_writable=False)))),
    (OURS, "projects = ['/a/b:rw']\nworkspace = ['/a/b/c/.git:rw']", Server(
        name="a", runs=RUNS,
        projects=(Workspace("/a/b", is_writable=True),),
        workspace=(Workspace("/a/b/c/.git", is_writable=True),))),
    (OURS, "projects = ['/a/b:rw']\nexpose = 'http'\nhttp.web.project = '/a/b/c'", Server(
        name="a", runs=RUNS, expose="http", projects=(Workspace("/a/b", is_writable=True),),
        http={"web": "/a/b/c"})),
    (OURS, "protect = false", Server(name="a", runs=RUNS, protect=False)),
    (OURS, "protect = true", Server(name="a", runs=RUNS)),
    (OURS, "protect_instructions = false", Server(
        name="a", runs=RUNS, protect_instructions=False)),
    (OURS, "protect_instructions = true", Server(name="a", runs=RUNS)),
    (OURS, "umask = '0027'", Server(name="a", runs=RUNS, umask=0o027)),
    (OURS, "umask = '000'", Server(name="a", runs=RUNS, umask=0)),
    (OURS, "relay = 'direct'", Server(name="a", runs=RUNS, relay="direct")),
    (OURS, "relay = 'gate'", Server(name="a", runs=RUNS)),
    (OURS, "pins = 'first-use'", Server(name="a", runs=RUNS)),
    (OURS, "pins = 'strict'", Server(name="a", runs=RUNS, pins="strict")),
    (OURS, "pins = 'off'\nrelay = 'direct'",
     Server(name="a", runs=RUNS, pins="off", relay="direct")),
    (OURS, "audit = 'hash'", Server(name="a", runs=RUNS)),
    (OURS, "audit = 'sealed'", Server(name="a", runs=RUNS, audit="sealed")),
    (OURS, "idle_exit = 'never'", Server(name="a", runs=RUNS, idle_exit_s=0)),
    (OURS, "idle_exit = '90s'", Server(name="a", runs=RUNS, idle_exit_s=90)),
    (OURS, "allow_degraded = true", Server(name="a", runs=RUNS, allow_degraded=True)),
    (OURS, "secret_files = []", Server(name="a", runs=RUNS)),
    (ENV, "A = '-${B}'\n[mcp_servers.a.mcpwrap]\nsecret_files = ['B']", Server(
        name="a",
        runs=Local(command="/x", env={"A": ("-", SecretRef("B"))}),
        secret_files=("B",))),
    (OURS, "shared = true", Server(name="a", runs=RUNS, shared=True)),
    (OURS, "state = false", Server(name="a", runs=RUNS)),
    (LIMITS, "memory = '16M'", Server(name="a", runs=RUNS, limits=Limits(memory_bytes=2**24))),
    (
        OURS,
        "state = true\ncache = true\nlimits = { state = '16M', cache = '1T' }",
        Server(
            name="a",
            runs=RUNS,
            state=True,
            cache=True,
            limits=Limits(state_bytes=2**24, cache_bytes=2**40),
        ),
    ),
    (LIMITS, "memory = '1T'", Server(name="a", runs=RUNS, limits=Limits(memory_bytes=2**40))),
    (LIMITS, "tasks = 32768", Server(name="a", runs=RUNS, limits=Limits(tasks=32768))),
    (LIMITS, "cpu = '1%'", Server(name="a", runs=RUNS, limits=Limits(cpu_percent=1))),
    (LIMITS, "sessions = 1", Server(name="a", runs=RUNS, limits=Limits(sessions=1))),
]  # fmt: skip


@pytest.mark.parametrize(("place", "line", "server"), RIGHT)
def test_what_is_right_is_understood(place: Place, line: str, server: Server) -> None:
    assert parse([source(place.with_line(line))]).servers == {"a": server}


@pytest.mark.parametrize(
    ("place", "line", "secrets"),
    [
        (LOCAL, "", set()),
        (ENV, "A = 'KEY $KEY'", set()),
        (ENV, "A = '${KEY}'", {"KEY"}),
        (ENV, "A = '${KEY}-${OTHER}'\nB = '${KEY}'\nC = ''", {"KEY", "OTHER"}),
        (REMOTE, "", set()),
        (REMOTE, "bearer_token_env_var = 'KEY'", {"KEY"}),
        (HEADERS, "A = 'x'\nB = '${KEY}-${OTHER}'", {"KEY", "OTHER"}),
        (REMOTE, "bearer_token_env_var = 'KEY'\nheaders = { A = '${B}' }", {"KEY", "B"}),
    ],
)
def test_a_server_declares_the_secrets_that_it_refers_to(
    place: Place, line: str, secrets: set[str]
) -> None:
    assert parse([source(place.with_line(line))]).servers["a"].secrets() == secrets


@pytest.mark.parametrize(
    ("place", "line", "speaks_http"),
    [(LOCAL, "", False), (OURS, "expose = 'http'", True), (REMOTE, "", True)],
)
def test_agents_of_a_url_speak_http_and_others_if_it_is_written(
    place: Place,
    line: str,
    speaks_http: bool,  # noqa: FBT001
) -> None:
    assert parse([source(place.with_line(line))]).servers["a"].speaks_http() is speaks_http


def test_no_file_and_an_empty_file_have_no_servers() -> None:
    assert parse([]) == parse([source("")]) == parse([source("[mcp_servers]")]) == Config({}, {})


@pytest.mark.parametrize(
    ("texts", "parent"),
    [
        ([""], None),
        (["[egress]"], None),
        (["[egress]\nparent = '10.0.0.1:3128'"], Direct("10.0.0.1", 3128)),
        (["[egress]", "[egress]\nparent = 'http://[fd00::1]:80'"], Direct("fd00::1", 80)),
    ],
)
def test_the_parent_is_understood(texts: list[str], parent: Direct | None) -> None:
    files = [source(text, f"{number}.toml") for number, text in enumerate(texts)]
    assert parse(files).parent == parse(files[::-1]).parent == parent


@pytest.mark.parametrize(
    ("egress", "direct", "has_network"),
    [([], [], False), (["x.example"], [], True), (["@npm"], [], True), ([], ["10.0.0.5:1"], True)],
)
def test_a_server_has_a_network_only_if_it_reaches_something(
    egress: list[str],
    direct: list[str],
    has_network: bool,  # noqa: FBT001
) -> None:
    config = parse([source(OURS.with_line(f"egress = {egress}\ndirect = {direct}"))])
    assert config.servers["a"].has_network() is has_network


def test_servers_come_in_the_order_of_their_names_whatever_the_order_of_files() -> None:
    files = [source(LOCAL.with_line("", name), name) for name in ("b", "c", "a")]
    assert list(parse(files).servers) == ["a", "b", "c"]
    assert parse(files) == parse(files[::-1])


scalars = (
    st.integers().map(str)
    | st.sampled_from(["true", "inf", "-0.0", "1979-05-27", "07:32:00", "''", "'1G'", "'/x:rw'"])
    | st.text("ab${}/.:@\\u00e9", max_size=9).map(lambda text: f"'{text}'")
)
toml_values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | inner.map(lambda value: f"{{ a = {value} }}")
    ),
    max_leaves=4,
)
TABLES = (ProgramTable, RemoteTable, ProgramSettings, RemoteSettings, SessionLimitsTable)
KEYS = [key for table in TABLES for key in keys_of(table)]
toml_lines = st.builds(
    "{} = {}".format,
    st.sampled_from([*KEYS, "'é'", "a.b"]),
    toml_values,
)
places = st.sampled_from([BARE, LOCAL, REMOTE, HEADERS, REMOTE_OURS, ENV, OURS, LIMITS])


@given(
    st.binary()
    | st.text().map(str.encode)
    | st.builds(Place.with_line, places, toml_lines).map(str.encode)
)
def test_whatever_is_written_is_understood_or_refused(content: bytes) -> None:
    with suppress(ConfigError):
        assert all(name == server.name for name, server in parse([source(content)]).servers.items())


@pytest.mark.parametrize(
    ("texts", "approvals"),
    [
        ([""], ApprovalSettings()),
        (["[approvals]", ""], ApprovalSettings()),
        (["", "[approvals]\nsame_uid = true"], ApprovalSettings(same_uid=True)),
        (["[approvals]\nsame_uid = false"], ApprovalSettings()),
        (
            ["[approvals]\nwebhook = 'https://hook.example:8443/a?b=c'"],
            ApprovalSettings(webhook="https://hook.example:8443/a?b=c"),
        ),
    ],
)
def test_how_people_are_asked_is_understood(texts: list[str], approvals: ApprovalSettings) -> None:
    files = [source(text, f"{number}.toml") for number, text in enumerate(texts)]
    assert parse(files).approvals == parse(files[::-1]).approvals == approvals
