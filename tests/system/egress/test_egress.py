"""Egress allowlist: real clients reach the listed hosts and no other, proxy-aware or not."""

from collections.abc import Callable, Iterator

import pytest

from tests.shared import pace
from tests.system.bed.internet import Connected, Internet
from tests.system.bed.machine import Machine
from tests.system.bed.session import Session
from tests.system.egress.egress_clients import (
    CLIENTS,
    CONFIG,
    booted,
    initialized,
    text_of_tool,
)
from tests.system.support.egress_sessions import play
from tests.system.support.servers import PROBE_SERVER

STAGE = booted
LISTED, UNLISTED = "api.good.test", "other.test"


@pytest.fixture(scope="module")
def probe(stage: Connected) -> Iterator[Session]:
    """Hold a session of the probe open for the stories that use it."""
    with stage.machine.session("probe") as session:
        yield session


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_reaches_the_listed_host_and_no_other(
    machine: Machine, internet: Internet, client: str
) -> None:
    server, get = CLIENTS[client]
    with initialized(machine, server) as session:
        assert '"ok": true' in get(session, LISTED)
        assert internet.hosts() == {LISTED}
        assert {connection.port for connection in internet.connections()} == {443}
        internet.forget()
        assert '"ok": true' not in get(session, UNLISTED)
    assert internet.connections() == []
    assert internet.packets() == []
    assert [query for query in internet.queries() if UNLISTED in query.name] == []


def test_the_rules_are_what_keeps_a_client_in(machine: Machine, internet: Internet) -> None:
    """Without its element in the wrapped set, the same account reaches any address."""
    uid = machine.uid_of("mcpw-probe")
    code = f"import socket; socket.create_connection(('203.0.113.20', 443), {pace.WAIT_S})"
    as_server = f'setpriv --reuid {uid} --clear-groups python3 -c "{code}"'
    machine.as_root(as_server, status=1)
    assert internet.connections() == []
    with machine.unwatched():
        machine.as_root(f"nft delete element inet mcpwrap wrapped {{ {uid} }}")
        machine.as_root(as_server)
        assert [seen.address for seen in internet.connections()] == ["203.0.113.20"]
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
@pytest.mark.usefixtures("machine")
def test_an_entry_admits_what_it_says(
    probe: Session, internet: Internet, host: str, begins: str
) -> None:
    assert play(probe, f"by_urllib('https://{host}/small')").startswith(begins)
    assert bool(internet.connections()) is (begins == "200 ")


@pytest.mark.parametrize("address", ["203.0.113.20", "2001:db8:2::20"])
def test_direct_is_one_address_and_port(
    machine: Machine, probe: Session, internet: Internet, address: str
) -> None:
    assert address in play(probe, f"greeted({address!r}, 5432)")
    assert "OSError" in play(probe, f"greeted({address!r}, 25)")
    assert [(seen.address, seen.port) for seen in internet.connections()] == [(address, 5432)]
    assert f"{address} . 5432" in machine.look("nft list table inet mcpwrap")


@pytest.mark.parametrize("server", ["npx", "uvx"])
def test_a_package_is_downloaded_once_and_kept(
    machine: Machine, internet: Internet, server: str
) -> None:
    with initialized(machine, server) as session:
        assert text_of_tool(session, "echo", text="hello") == "hello"
    registry = {"npx": "npm.good.test", "uvx": "pypi.good.test"}[server]
    assert internet.hosts() == {registry}
    fetched = len([r for r in internet.requests() if r.path.endswith((".tgz", ".whl"))])
    assert fetched
    internet.forget()
    with initialized(machine, server) as session:
        assert text_of_tool(session, "echo", text="again") == "again"
    # npx asks for no confirmation, and uv checks whether its cached version is still current.
    again = len([r for r in internet.requests() if r.path.endswith((".tgz", ".whl"))])
    assert again < fetched
    machine.as_user("alice", f"ls /var/cache/mcpwrap/{server}", status=2)


def test_a_program_in_a_home_is_explained(machine: Machine) -> None:
    machine.as_user("alice", "mkdir -p .nvm/bin && cp /usr/bin/true .nvm/bin/npx")
    machine.as_root("ln -sf /home/alice/.nvm/bin/npx /usr/local/bin/nvm-npx")
    more = '\n[mcp_servers.nvm]\ncommand = "/usr/local/bin/nvm-npx"\n'
    machine.configure(CONFIG + more)
    said = machine.as_root("mcpwrap apply", status=2).err
    assert "is really /home/alice/.nvm/bin/npx, and no server can see a home" in said
    assert "install it for every account" in said
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
            said = play(session, "greeted('198.51.100.10', 443)")
            assert said == "OSError 101"  # ENETUNREACH: no interface but its own
            assert session.evaluate("import os; result = sorted(os.listdir('/sys/class/net'))")
        assert internet.packets() == []
        # No server needs it.
        assert machine.show("mcpwrap-squid-proxy@1", "ActiveState") == {"ActiveState": "inactive"}
