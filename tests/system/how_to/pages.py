"""Pages of docs/how-to: the machine on which they are played, and what is there before each."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from tests.system.bed import installed, internet_map
from tests.system.bed.internet import Connected, Internet
from tests.system.bed.lan import Lan
from tests.system.bed.machine import BED_AT, Machine
from tests.system.http import remote
from tests.system.support import emptied
from tests.system.wrap.people import HOME, add_alice

FOLDER = Path(__file__).parents[3] / "docs/how-to"
HOSTS = ("api.example.com", "www.example.com", "files.example.org")
ADDRESS = "198.51.100.30"
REMOTE = f"https://{internet_map.EXAMPLE_MCP}/mcp"
REMOTE_TOKEN = "example-token-1234"  # which the page types
INDEX = f"https://{internet_map.EXAMPLE_MCP}/simple/"
PYTHON = "/opt/mcp/pypi/bin/python"  # of the servers, with what they require
PACKAGES = ("beautifulsoup4", "soupsieve", "typing-extensions")


@contextmanager
def of_a_stranger(suite: str) -> Iterator[Connected]:
    """Boot a machine of alice's, who has sudo; bob has an account too."""
    with installed.agents_machine(suite) as machine, Internet(machine) as internet:
        prepare(machine)
        add_alice(machine)
        machine.add_person("bob")
        for name in (
            *HOSTS,
            internet_map.EXAMPLE_LOGIN,
            internet_map.EXAMPLE_MEMBERS,
            internet_map.EXAMPLE_MCP,
        ):
            internet.add_name(name, ADDRESS)
        yield Connected(machine, internet)


def prepare(machine: Machine) -> None:
    """Give a machine a name that sudo(8) can resolve."""
    machine.as_root("echo 127.0.1.1 $(hostname) >> /etc/hosts")


def anew(machine: Machine) -> None:
    """Leave nothing of a page before: no server, policy, password or file of alice's.

    The configuration is there and empty, as a machine has it that had a server before.
    """
    machine.as_root("rm -f /etc/mcpwrap/policy.yaml /var/lib/mcpwrap/approvers.json")
    emptied.empty(machine)
    machine.as_root(
        "systemctl disable -q --now mcpwrap-web.socket; systemctl restart mcpwrap-gate;"
        f"find {HOME} -mindepth 1 -delete; cp -a /etc/skel/. {HOME}; chown -R alice: {HOME};"
        "usermod -G '' alice; usermod -G '' bob"
    )
    machine.configure("")


@contextmanager
def a_remote_server(world: Connected) -> Iterator[None]:
    """Have a server answer on the internet, to requests with the token of the page."""
    host, port = internet_map.EXAMPLE_MCP, str(internet_map.MCP_PORT)
    with _answers(world, [*remote.SDK_SERVER, port, host, REMOTE_TOKEN, "{}"], REMOTE):
        yield


@contextmanager
def a_package_index(world: Connected) -> Iterator[None]:
    """Have the packages of the page in the index that pip of this machine is configured for."""
    module = [PYTHON, "-B", "-m", "tests.system.guest.wheel_index"]
    world.machine.write("/etc/pip.conf", f"[global]\nindex-url = {INDEX}\n")
    try:
        with _answers(world, [*module, str(internet_map.MCP_PORT), *PACKAGES], INDEX):
            yield
    finally:
        world.machine.as_root("rm /etc/pip.conf")


@contextmanager
def _answers(world: Connected, argv: list[str], url: str) -> Iterator[None]:
    """Start a program on the internet, and wait until it answers there."""
    process = world.internet.start(argv, {"PYTHONPATH": BED_AT})
    try:
        remote.await_answer(world.machine, url)
        yield
    finally:
        process.kill()
        process.wait()


@contextmanager
def a_network_with_haproxy(machine: Machine, other: Machine) -> Iterator[None]:
    """Join the machines as the page has it; HAProxy is on the first one for that time."""
    with Lan() as lan:
        lan.plug(machine, "10.0.0.10")
        lan.plug(other, "10.0.0.11")
        installed.add_haproxy(machine)
        yield
        machine.as_root("dpkg --purge haproxy")


@contextmanager
def with_ufw(world: Connected) -> Iterator[None]:
    """Have ufw on the machine, without a rule; afterwards it is off."""
    installed.add_neighbour(world.machine, "ufw")
    try:
        yield
    finally:
        world.machine.as_root("ufw disable; dpkg --purge ufw")
        world.machine.as_root("for t in 'ip filter' 'ip6 filter'; do nft delete table $t; done")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Play of a page: its tier, what is there before it, and between it and the other machine."""

    is_fast: bool = False
    before: Callable[[Connected], AbstractContextManager[None]] = lambda _: nullcontext()
    between: Callable[[Machine, Machine], AbstractContextManager[None]] = lambda *_: nullcontext()


PAGES = {
    "accept-changed-tools.md": Page(),
    "add-a-server.md": Page(is_fast=True),
    "allow-hosts.md": Page(),
    "approve-calls.md": Page(),
    "confine-servers-without-root.md": Page(),
    "give-it-a-secret.md": Page(is_fast=True),
    "move-to-another-machine.md": Page(),
    "read-the-audit.md": Page(),
    "rotate-a-secret.md": Page(),
    "run-code.md": Page(before=a_package_index),
    "run-code-on-other-machines.md": Page(between=a_network_with_haproxy),
    "share-a-folder.md": Page(),
    "use-a-remote-server.md": Page(before=a_remote_server),
    "use-it-beside-a-firewall.md": Page(before=with_ufw),
    "use-several-servers-as-one.md": Page(),
    "write-a-policy.md": Page(is_fast=True),
}
