"""Real clients reach the hosts that were listed, and no other, whether they know proxies or not."""

from collections.abc import Callable, Iterator

import pytest

from tests.system.bed import installed
from tests.system.bed.internet import Internet
from tests.system.bed.machine import Machine
from tests.system.bed.session import PROBE
from tests.system.clients import GO_GET, NODE_FILE, NODE_SERVER, PYTHON_GET
from tests.system.servers import PROBE_SERVER

CONFIG = f"""
[mcp_servers.fetch]
command = "/opt/mcp/pypi/bin/mcp-server-fetch"
args = ["--ignore-robots-txt"]
[mcp_servers.fetch.mcpwrap]
egress = ["api.good.test", "*.cdn.test"]
transparent = false  # its guard refuses a name that leads to a loopback address

[mcp_servers.fetch-no-proxy]
command = "/opt/mcp/pypi/bin/mcp-server-fetch"
args = ["--ignore-robots-txt", "--allow-private-ips"]
env = {{ HTTPS_PROXY = "", https_proxy = "", HTTP_PROXY = "", http_proxy = "" }}
[mcp_servers.fetch-no-proxy.mcpwrap]
egress = ["api.good.test"]

[mcp_servers.node]
command = "/usr/bin/node"
args = ["{NODE_FILE}"]
[mcp_servers.node.mcpwrap]
egress = ["api.good.test"]

[mcp_servers.probe]
command = "/usr/bin/python3"
args = ["/opt/probe.py"]
[mcp_servers.probe.mcpwrap]
egress = ["api.good.test", "*.cdn.test", "h2.good.test:8443"]
direct = ["203.0.113.20:5432", "[2001:db8:2::20]:5432"]

[mcp_servers.npx]
command = "/usr/local/bin/npx"
args = ["-y", "bed-echo"]
[mcp_servers.npx.mcpwrap]
agents = ["alice"]
egress = ["@npm"]
cache = true

[mcp_servers.uvx]
command = "/usr/local/bin/uvx"
args = ["bed-echo"]
env = {{ UV_PYTHON_DOWNLOADS = "never" }}
[mcp_servers.uvx.mcpwrap]
agents = ["alice"]
egress = ["@pypi"]
cache = true
"""
LISTED, UNLISTED = "api.good.test", "other.test"
CA = "{'SSL_CERT_FILE': '/etc/ssl/certs/ca-certificates.crt'}"


@pytest.fixture(scope="module")
def connected(suite: str) -> Iterator[tuple[Machine, Internet]]:
    """Boot a machine on an internet, with servers that go out."""
    machine = installed.installed_machine(suite)
    try:
        machine.add_person("alice", groups="mcpwrap")
        machine.write("/opt/probe.py", PROBE)
        machine.write(NODE_FILE, NODE_SERVER)
        machine.write("/etc/npmrc", "registry=https://npm.good.test/\n")
        machine.write("/etc/pip.conf", "[global]\nindex-url = https://pypi.good.test/simple/\n")
        with Internet(machine) as internet:
            machine.configure(CONFIG)
            machine.apply()
            yield machine, internet
    finally:
        machine.remove()


@pytest.fixture
def online(connected: tuple[Machine, Internet]) -> Iterator[tuple[Machine, Internet]]:
    """Lend both to one test, nothing noted yet."""
    connected[1].forget()
    yield connected
    assert connected[0].unannounced() == []


def _tool(server: str, tool: str, key: str, value: str) -> Callable[[Machine, str], str]:
    def ask(machine: Machine, host: str) -> str:
        return machine.call_tool(server, tool, {key: value.format(host=host)})

    return ask


def _probe(code: str, **values: str) -> Callable[[Machine, str], str]:
    def ask(machine: Machine, host: str) -> str:
        with machine.session("probe") as session:
            url = f"https://{host}/small"
            return str(session.evaluate(code.format(url=url, **values)))

    return ask


CLIENTS = {
    "mcp-server-fetch": _tool("fetch", "fetch", "url", "https://{host}/small"),
    "mcp-server-fetch, no proxy": _tool("fetch-no-proxy", "fetch", "url", "https://{host}/small"),
    "node, fetch": _tool("node", "fetch", "url", "https://{host}/small"),
    "node, sockets": _tool("node", "socket", "host", "{host}"),
    "go": _probe(GO_GET, env="dict(os.environ)"),
    "go, no proxy": _probe(GO_GET, env=CA),
    "python": _probe(PYTHON_GET, handlers="[]"),
    "python, no proxy": _probe(PYTHON_GET, handlers="[urllib.request.ProxyHandler({})]"),
}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_reaches_the_listed_host_and_no_other(
    online: tuple[Machine, Internet], client: str
) -> None:
    machine, internet = online
    assert '"ok": true' in CLIENTS[client](machine, LISTED)
    assert {(seen.sni, seen.port) for seen in internet.connections()} == {(LISTED, 443)}
    internet.forget()
    assert '"ok": true' not in CLIENTS[client](machine, UNLISTED)
    assert internet.connections() == []
    assert internet.packets() == []
    assert [query for query in internet.queries() if UNLISTED in query.name] == []


def test_the_rules_are_what_keeps_a_client_in(online: tuple[Machine, Internet]) -> None:
    """Without its element in the set of the wrapped, the same account goes where it likes."""
    machine, internet = online
    uid = machine.uid_of("mcpw-probe")
    code = "import socket; socket.create_connection(('203.0.113.20', 443), 5)"
    as_server = f'setpriv --reuid {uid} --clear-groups python3 -c "{code}"'
    machine.as_root(as_server, status=1)
    assert internet.connections() == []
    machine.as_root("systemctl stop mcpwrap-watch")
    machine.as_root(f"nft delete element inet mcpwrap wrapped {{ {uid} }}")
    machine.as_root(as_server)
    assert [seen.address for seen in internet.connections()] == ["203.0.113.20"]
    machine.as_root("systemctl start mcpwrap-watch")  # it puts the rules back before it is up
    machine.as_root(as_server, status=1)


@pytest.mark.parametrize(
    ("host", "begins"),
    [
        ("a.cdn.test", "200 "),  # *.cdn.test
        ("cdn.test", "refused"),  # which is not below itself
        ("h2.good.test", "refused"),  # listed with another port
        ("h2.good.test:8443", "200 "),
        ("api.good.test:8443", "refused"),
    ],
)
def test_an_entry_admits_what_it_says(
    online: tuple[Machine, Internet], host: str, begins: str
) -> None:
    machine, internet = online
    assert CLIENTS["python"](machine, host).startswith(begins)
    assert bool(internet.connections()) is (begins == "200 ")


DIRECT = """
import socket
s = socket.create_connection(({address!r}, {port}), 10)
result = s.recv(64).decode()
"""


@pytest.mark.parametrize("address", ["203.0.113.20", "2001:db8:2::20"])
def test_direct_is_one_address_and_port(online: tuple[Machine, Internet], address: str) -> None:
    machine, internet = online
    with machine.session("probe") as session:
        assert address in session.evaluate(DIRECT.format(address=address, port=5432))
        assert "OSError" in session.evaluate(DIRECT.format(address=address, port=25))
    assert [(seen.address, seen.port) for seen in internet.connections()] == [(address, 5432)]
    assert f"{address} . 5432" in machine.as_root("nft list table inet mcpwrap").out


@pytest.mark.parametrize("server", ["npx", "uvx"])
def test_a_package_is_downloaded_once_and_kept(
    online: tuple[Machine, Internet], server: str
) -> None:
    machine, internet = online
    assert machine.call_tool(server, "echo", {"text": "hello"}) == "hello"
    registry = {"npx": "npm.good.test", "uvx": "pypi.good.test"}[server]
    assert {seen.sni for seen in internet.connections()} == {registry}
    fetched = len([r for r in internet.requests() if r.path.endswith((".tgz", ".whl"))])
    assert fetched
    internet.forget()
    assert machine.call_tool(server, "echo", {"text": "again"}) == "again"
    # npx asks for nothing, and uv looks if what it has is still the same.
    again = len([r for r in internet.requests() if r.path.endswith((".tgz", ".whl"))])
    assert again < fetched
    machine.as_user("alice", f"ls /var/cache/mcpwrap/{server}", status=2)


def test_a_program_in_a_home_is_explained(online: tuple[Machine, Internet]) -> None:
    machine, _ = online
    machine.as_user("alice", "mkdir -p .nvm/bin && cp /usr/bin/true .nvm/bin/npx")
    machine.as_root("ln -sf /home/alice/.nvm/bin/npx /usr/local/bin/nvm-npx")
    more = '\n[mcp_servers.nvm]\ncommand = "/usr/local/bin/nvm-npx"\n'
    machine.configure(CONFIG + more)
    said = machine.as_root("mcpwrap apply", status=2).err
    assert "is really /home/alice/.nvm/bin/npx, and no server sees anybody's home" in said
    assert "install it for everybody" in said
    machine.configure(CONFIG + more.replace("/usr/local/bin/nvm-npx", "/usr/bin/true"))
    assert "step" in machine.as_root("mcpwrap plan", status=10).out
    machine.configure(CONFIG)
    assert machine.apply() == "nothing to do\n"


def test_without_an_allowlist_there_is_no_way_out(boot: Callable[..., Machine]) -> None:
    machine = boot()
    with Internet(machine) as internet:
        machine.configure(PROBE_SERVER)
        machine.apply()
        internet.forget()
        with machine.session("probe") as session:
            said = session.evaluate(DIRECT.format(address="198.51.100.10", port=443))
            assert said == "OSError 101"  # ENETUNREACH: no interface but its own
            assert session.evaluate("import os; result = sorted(os.listdir('/sys/class/net'))")
        assert internet.packets() == []
        machine.as_root("systemctl is-active 'mcpwrap-squid-proxy@1'", status=3)  # nobody needs it
