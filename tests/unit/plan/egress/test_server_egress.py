"""Egress of a server: the hosts it reaches, and the variables that name its proxy."""

from dataclasses import replace

import pytest

from mcpwrap.config.model import Destination, Direct, Group, Local, Server
from mcpwrap.errors import UsageError
from mcpwrap.plan.egress import server_egress
from mcpwrap.plan.egress.server_egress import MachineSoftware
from mcpwrap.plan.observed import Observed
from tests.unit.plan.configs import (
    CACHE,
    DIRECT,
    EGRESS,
    GIT,
    INTERCEPT,
    NOTHING,
    ONE_OPENED,
    OTHER_OPENED,
)
from tests.unit.plan.machine import DEBIAN, SOFTWARE, SOURCES, wanted

UID = 20_001
API = Destination("api.example.com", 443, with_subdomains=False)
NPM = Destination("npm.example", 443, with_subdomains=False)
PYPI = Destination("pypi.example", 8443, with_subdomains=False)
SERVER = Server(name="git", runs=Local(command="/x"))
SYSTEM_CAS = "/etc/ssl/certs/ca-certificates.crt"
OWN_CAS = "/var/lib/mcpwrap/ca/git/bundle.pem"
PROXY = {
    "HTTPS_PROXY": "http://127.77.0.1:3128",
    "https_proxy": "http://127.77.0.1:3128",
    "HTTP_PROXY": "http://127.77.0.1:3128",
    "http_proxy": "http://127.77.0.1:3128",
    "NODE_USE_ENV_PROXY": "1",
}
CACHE_VARIABLES = {
    "XDG_CACHE_HOME": "/var/cache/mcpwrap/git",
    "npm_config_cache": "/var/cache/mcpwrap/git/npm",
    "UV_CACHE_DIR": "/var/cache/mcpwrap/git/uv",
}
BEYOND = (Direct("fd00::5", 1), Direct("10.0.0.5", 2), Direct("10.0.0.5", 1))


def trusting(file: str) -> dict[str, str]:
    return {
        "SSL_CERT_FILE": file,
        "NODE_EXTRA_CA_CERTS": file,
        "REQUESTS_CA_BUNDLE": file,
        "CURL_CA_BUNDLE": file,
        "GIT_SSL_CAINFO": file,
        "AWS_CA_BUNDLE": file,
    }


@pytest.mark.parametrize(
    ("entries", "hosts"),
    [
        ((), ()),
        ((API,), (API,)),
        ((Group("npm"), API, Group("pypi")), (NPM, API, PYPI)),
        ((NPM, Group("npm"), NPM, Group("npm")), (NPM,)),  # each once
    ],
)
def test_a_group_is_the_hosts_that_the_machine_takes_packages_from(
    entries: tuple[Destination | Group, ...], hosts: tuple[Destination, ...]
) -> None:
    assert server_egress.hosts(replace(SERVER, egress=entries), SOURCES) == hosts


@pytest.mark.parametrize(("name", "tool"), [("npm", "install npm"), ("pypi", "install pip")])
def test_a_group_of_which_the_machine_says_nothing_is_refused(name: str, tool: str) -> None:
    server = replace(SERVER, egress=(API, Group(name)))
    others = {other: source for other, source in SOURCES.items() if other != name}
    for ask in (
        server_egress.hosts(server, SOURCES),
        server_egress.variables(server, UID, SOFTWARE),
    ):
        assert ask
    with pytest.raises(UsageError) as caught:
        server_egress.hosts(server, others)
    assert (
        caught.value.problem
        == f"this machine's configuration has no registry for @{name}; nothing was changed"
    )
    assert caught.value.where == "[mcp_servers.git.mcpwrap], egress"
    assert tool in caught.value.fix
    with pytest.raises(UsageError):
        server_egress.variables(server, UID, MachineSoftware(others, DEBIAN))


@pytest.mark.parametrize(
    ("server", "variables"),
    [
        (SERVER, {}),
        (replace(SERVER, direct=BEYOND), {}),  # nothing lies between
        (replace(SERVER, cache=True), CACHE_VARIABLES),
        (replace(SERVER, egress=(API,)), PROXY | trusting(SYSTEM_CAS)),
        (replace(SERVER, egress=(API,), transparent=False), PROXY | trusting(SYSTEM_CAS)),
        (replace(SERVER, egress=(API,), intercept=True), PROXY | trusting(OWN_CAS)),
        (
            replace(SERVER, egress=(Group("npm"),), cache=True),
            CACHE_VARIABLES
            | PROXY
            | trusting(SYSTEM_CAS)
            | {"npm_config_registry": "https://npm.example/"},
        ),
        (
            replace(SERVER, egress=(API, Group("pypi")), direct=BEYOND),
            PROXY
            | trusting(SYSTEM_CAS)
            | {"NO_PROXY": "10.0.0.5,fd00::5", "no_proxy": "10.0.0.5,fd00::5"},
        ),
    ],
)
def test_what_a_server_has_in_its_environment(server: Server, variables: dict[str, str]) -> None:
    assert server_egress.variables(server, UID, SOFTWARE) == variables


def test_a_resolver_is_named_at_the_address_of_the_server() -> None:
    assert server_egress.resolv_conf(UID).splitlines()[1:] == [
        "nameserver 127.77.0.1",
        "search .",
        "options timeout:2 attempts:2",
    ]


FRONT = '{\n "format": 1,\n "by_server": {\n  "git": "127.77.6.234"\n }\n}\n'


@pytest.mark.parametrize(
    ("text", "listening", "authorities"),
    [
        (NOTHING, {"proxy-1": [], "intercept-1": []}, set()),
        (GIT, {"proxy-1": [], "intercept-1": []}, set()),
        (DIRECT, {"proxy-1": [], "intercept-1": []}, set()),
        (EGRESS, {"proxy-1": ["git"], "intercept-1": []}, {"_none"}),
        (INTERCEPT, {"proxy-1": [], "intercept-1": ["git"]}, {"git"}),
        (ONE_OPENED, {"proxy-1": ["time"], "intercept-1": ["git"]}, {"_none", "git"}),
        (OTHER_OPENED, {"proxy-1": ["git"], "intercept-1": ["time"]}, {"_none", "time"}),
    ],
)
def test_each_server_listens_in_one_instance_of_squid(
    text: str, listening: dict[str, list[str]], authorities: set[str]
) -> None:
    want = wanted(text, Observed())
    for instance, names in listening.items():
        configuration = want.proxies.get(instance, "")
        assert [n for n in ("git", "time") if f" name={n} " in configuration] == names
        assert bool(configuration) == bool(names)
    assert want.authorities == authorities


@pytest.mark.parametrize(
    ("text", "front"), [(NOTHING, ""), (GIT, ""), (DIRECT, ""), (CACHE, ""), (EGRESS, FRONT)]
)
def test_the_front_serves_who_knows_no_proxy(text: str, front: str) -> None:
    assert wanted(text, Observed()).front == front
