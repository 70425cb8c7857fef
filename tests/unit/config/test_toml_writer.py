"""Server written as TOML: it parses to the same server, and the text is plain ASCII."""

import re
import string
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.config.model import (
    AllowedRequest,
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
from mcpwrap.config.toml_writer import toml_of, toml_of_worker
from mcpwrap.core.wire.server_files import OAuth
from tests.unit.config.places import source

EXAMPLE = Path(__file__).parents[3] / "examples/config.toml"
ASCII = re.compile(r"[\n -~]*")


def read(text: str) -> dict[str, Server]:
    return parse([source(text)]).servers


def expect_the_same(server: Server) -> str:
    text = toml_of(server)
    assert ASCII.fullmatch(text)
    assert read(text) == {server.name: server}
    return text


@pytest.mark.parametrize("name", read(EXAMPLE.read_text()))
def test_every_example_is_the_same_when_it_is_read_again(name: str) -> None:
    expect_the_same(read(EXAMPLE.read_text())[name])


def test_a_program_of_which_nothing_is_said() -> None:
    assert (
        toml_of(Server(name="a", runs=Local(command="/x")))
        == """\
[mcp_servers.a]
command = "/x"

[mcp_servers.a.mcpwrap]
agents = ["@mcpwrap"]
egress = []
workspace = []
"""
    )


EVERYTHING = """\
[mcp_servers.all-of_it]
command = "/usr/bin/node"
args = ["-e", "a \\"b\\" \\\\ c", "", "\\tx\\n\\u001B[2J\\u007F"]
env.KEY = "${TOKEN}"
env.URL = "https://h/?a=${TOKEN}&b=$${OTHER}}"
inherits = ["TZ", "LANG"]
inherits_any = ["PROJECT"]

[mcp_servers.all-of_it.mcpwrap]
agents = ["alice", "@staff"]
egress = ["@npm", "a.example", "*.b.example:8443"]
workspace = ["/home/alice/\\U0001F600:rw", "/home/alice/x:y:ro"]
projects = ["/home/alice/src:rw"]
direct = ["10.0.0.5:5432", "[fd00::5]:1"]
transparent = false
intercept = true
requests = [
    "GET,POST a.example/v1/*",
    "GET,HEAD,POST,PUT,PATCH,DELETE,OPTIONS x.b.example/",
]
protect = false
protect_instructions = false
umask = "0027"
state = true
cache = true
secret_files = ["OTHER"]
expose = "http"
audit = "sealed"
shared = true
allow_degraded = true
idle_exit = "never"
http = { web = { project = "/home/alice/src/a" } }
limits = { memory = "1536M", tasks = 3, cpu = "150%", sessions = 2, state = "16M", cache = "3G" }
"""
ELSEWHERE = """\
[mcp_servers.b]
url = "https://mcp.example.com:8443/x"
headers.X-Tenant = "ours"
headers."X.Y!" = "a ${KEY} b"

[mcp_servers.b.mcpwrap]
agents = ["alice"]
egress = ["auth.example.com"]
intercept = true
oauth = { scopes = ["a", "b"], client_id = "it \\"is\\"" }
"""


@pytest.mark.parametrize("text", [EVERYTHING, ELSEWHERE])
def test_every_setting_is_written_one_way(text: str) -> None:
    (server,) = read(text).values()
    assert expect_the_same(server) == text


@pytest.mark.parametrize(
    ("setting", "written"),
    [
        ('idle_exit = "3600s"', 'idle_exit = "1h"'),
        ('idle_exit = "9999m"', 'idle_exit = "9999m"'),  # 10 000 minutes could not be parsed
        ('idle_exit = "61s"', 'idle_exit = "61s"'),
        ('idle_exit = "15m"', "workspace = []"),  # the default
        ('limits.memory = "1024M"', "workspace = []"),
        ('limits.memory = "999999K"', 'limits = { memory = "999999K" }'),
        ('limits.memory = "1T"', 'limits = { memory = "1T" }'),
        ('requests = ["* a.example/*"]\nintercept = true\negress = ["a.example:443"]',
         'requests = ["GET,HEAD,POST,PUT,PATCH,DELETE,OPTIONS a.example/*"]'),
    ],
)  # fmt: skip
def test_a_value_with_several_spellings_has_one(setting: str, written: str) -> None:
    text = f"[mcp_servers.a]\ncommand = '/x'\n[mcp_servers.a.mcpwrap]\n{setting}\n"
    assert expect_the_same(read(text)["a"]).endswith(f"{written}\n")


@pytest.mark.parametrize(
    ("ours", "written"),
    [
        ("oauth = true", "oauth = true\n"),
        ("oauth = false", '["@mcpwrap"]\n'),
        ("egress = ['x.example']", '["@mcpwrap"]\n'),  # its own host is always in the list
        ("egress = ['x.example:1']", 'egress = ["x.example:1"]\n'),
    ],
)
def test_of_a_server_elsewhere_its_own_host_is_not_listed(ours: str, written: str) -> None:
    text = f"[mcp_servers.a]\nurl = 'https://x.example/'\n[mcp_servers.a.mcpwrap]\n{ours}\n"
    assert expect_the_same(read(text)["a"]).endswith(written)


def test_what_parse_would_refuse_is_shown_nevertheless() -> None:
    """An invalid server that was made by hand is reported by `parse`, not by a missing line."""
    odd = Server(
        name="a",
        runs=RemoteServer(url="https://x.example/"),
        workspace=(Workspace("/srv/x", is_writable=True),),
    )
    assert 'workspace = ["/srv/x:rw"]' in toml_of(odd)


# ------------------------------------------------------------------------------- properties
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0$"), max_size=12)
PRINTABLE = st.text(st.characters(categories=["L", "N", "P", "S"], exclude_characters="/"))
PARTS = PRINTABLE.filter(lambda part: part not in {"", ".", ".."})
PATHS = st.lists(PARTS, min_size=1, max_size=3).map(lambda parts: "/srv/" + "/".join(parts))
KEYS = st.text(string.ascii_uppercase + "_", min_size=1, max_size=6)
VARIABLES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
HOSTS = st.from_regex(r"[a-z]{1,5}(\.[a-z0-9]{1,5}){0,2}\.[a-z]{2,4}", fullmatch=True)
PORTS = st.integers(1, 65_535)


T = TypeVar("T")


def tuples(items: st.SearchStrategy[T]) -> st.SearchStrategy[tuple[T, ...]]:
    return st.lists(items, max_size=3).map(lambda found: (*found,))


TEMPLATES: st.SearchStrategy[Template] = tuples(st.builds(SecretRef, KEYS)).flatmap(
    lambda refs: st.lists(TEXT, min_size=len(refs) + 1, max_size=len(refs) + 1).map(
        lambda texts: tuple(
            part for pair in zip(texts, [*refs, None], strict=True) for part in pair if part
        )
    )
)
LOCALS = st.builds(
    Local,
    command=PATHS,
    args=tuples(TEXT),
    cwd=st.just("") | PATHS,
    env=st.dictionaries(VARIABLES, TEMPLATES, max_size=3),
    inherits=tuples(st.sampled_from(["TZ", "LANG"])),
    inherits_any=tuples(st.sampled_from(["LC_ALL", "PROJECT"])),
)
DESTINATIONS = st.builds(Destination, HOSTS, PORTS, st.booleans())
DIRECTS = st.builds(Direct, st.sampled_from(["10.0.0.5", "127.0.0.1", "fd00::5", "::1"]), PORTS)
LIMITS = st.builds(
    Limits,
    memory_bytes=st.builds(
        lambda count, unit: count * unit,
        st.integers(16, 1024),
        st.sampled_from([1024**2, 1024**3]),
    ),
    tasks=st.integers(1, 32_768),
    sessions=st.integers(1, 1024),
    cpu_percent=st.integers(0, 20_000),
)
SECONDS = st.integers(0, 9999) | st.builds(
    lambda count, unit: count * unit, st.integers(1, 9999), st.sampled_from([60, 3600])
)


MODES = st.sampled_from(
    [("gate", "first-use"), ("gate", "strict"), ("direct", "first-use"), ("direct", "off")]
)


@st.composite
def servers(draw: st.DrawFn) -> Server:
    runs = draw(LOCALS)
    keys = sorted(Server(name="a", runs=runs).secrets())
    egress = draw(tuples(DESTINATIONS | st.sampled_from([Group("npm"), Group("pypi")])))
    hosts = [e.host for e in egress if isinstance(e, Destination) and not e.with_subdomains]
    methods = tuples(st.sampled_from(["GET", "POST", "PUT"])).filter(bool)
    requests: st.SearchStrategy[tuple[AllowedRequest, ...]] = (
        tuples(st.builds(AllowedRequest, methods, st.sampled_from(hosts), st.just("/v1/*")))
        if hosts
        else st.just(())
    )
    intercept = bool(egress) and draw(st.booleans())
    relay, pins = draw(MODES)
    return draw(
        st.builds(
            Server,
            name=st.from_regex(r"[a-z][a-z0-9_-]{0,25}", fullmatch=True),
            runs=st.just(runs),
            agents=tuples(st.sampled_from(["alice", "@mcpwrap", "b.c-d_e"])).filter(bool),
            egress=st.just(egress),
            direct=tuples(DIRECTS),
            transparent=st.booleans(),
            intercept=st.just(intercept),
            requests=requests if intercept else st.just(()),
            workspace=st.lists(
                st.builds(Workspace, PATHS, st.booleans()),
                max_size=3,
                unique_by=lambda w: w.path,
            ).map(tuple),
            protect=st.booleans(),
            protect_instructions=st.booleans(),
            umask=st.none() | st.integers(0, 0o077),
            state=st.booleans(),
            cache=st.booleans(),
            secret_files=tuples(st.sampled_from(keys)) if keys else st.just(()),
            relay=st.just(relay),
            pins=st.just(pins),
            audit=st.sampled_from(["hash", "sealed", "plain"]),
            idle_exit_s=SECONDS,
            shared=st.booleans(),
            allow_degraded=st.booleans(),
            limits=LIMITS,
        )
    )


@given(servers())
def test_any_program_is_the_same_when_it_is_read_again(server: Server) -> None:
    expect_the_same(server)


VALUES = st.text(string.ascii_letters + string.digits + string.punctuation.replace("$", ""))
SCOPES = st.text(string.ascii_letters + "!#'[]~", min_size=1, max_size=5)


@given(
    st.dictionaries(
        st.sampled_from(["X-A", "b!#$%&'*+.^_`|~c", "D"]), VALUES.filter(bool).map(lambda v: (v,))
    ),
    st.none() | st.builds(OAuth, scopes=tuples(SCOPES), client_id=VALUES),
    tuples(DESTINATIONS),
)
def test_any_server_elsewhere_is_the_same_when_it_is_read_again(
    headers: dict[str, Template], oauth: OAuth | None, egress: tuple[Destination, ...]
) -> None:
    runs = RemoteServer(url="https://own.example:99/a", headers=headers, oauth=oauth)
    own = Destination("own.example", 99, with_subdomains=False)
    listed = tuple(dict.fromkeys([own, *egress]))
    expect_the_same(Server(name="a", runs=runs, egress=listed, transparent=False))


def test_the_worker_of_this_machine() -> None:
    text = toml_of_worker("10.0.0.5:9443", "/etc/ssl/c.pem", "/etc/ssl/k.pem")
    worker = parse([source(text)]).worker
    assert worker is not None
    assert worker.listen == Direct("10.0.0.5", 9443)
    assert (worker.certificate, worker.key) == ("/etc/ssl/c.pem", "/etc/ssl/k.pem")
