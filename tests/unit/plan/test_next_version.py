"""Next version of a server: its packet rules, its unit's drop-in, its descriptor."""

import msgspec
import pytest

from mcpwrap.core.wire import server_files
from mcpwrap.core.wire.server_files import SecretPart, ServerSpec
from mcpwrap.plan import next_version, paths
from mcpwrap.plan.next_version import NextVersionEgress, drop_in, egress_of, next_spec, rules
from mcpwrap.plan.observed import Observed
from tests.unit.plan.machine import wanted
from tests.unit.unit_files import settings

GIT = """
[mcp_servers.git]
command = '/opt/git-mcp'
cwd = '/home/alice/project'
env = { TOKEN = '${TOKEN}', MODE = 'plain' }
[mcp_servers.git.mcpwrap]
agents = ['bob']
"""
UID = 21770
ADDRESS = "127.77.6.234"
OTHER = "\n[mcp_servers.time]\ncommand = '/y'\n[mcp_servers.time.mcpwrap]\nagents = ['bob']\n"


def egress(address: str, *direct: tuple[str, str], fronted: str = "") -> NextVersionEgress:
    return NextVersionEgress(address=address, is_fronted=bool(fronted), direct=direct)


NONE = egress("")
OPTIONS = "mode=0700,uid=990,gid=990,size=1073741824,nr_inodes=256k"
HOME = f"TemporaryFileSystem=/run/mcpwrap/next:{OPTIONS}"
BOTH = ("192.0.2.7", "22"), ("2001:db8::7", "22")
ALL_ADDED = f"""\
add element inet mcpwrap next_addr {{ {ADDRESS} }}
add element inet mcpwrap next4 {{ {ADDRESS} . tcp . 443, {ADDRESS} . tcp . 53, \
{ADDRESS} . udp . 53, 192.0.2.7 . tcp . 22 }}
add element inet mcpwrap next6 {{ 2001:db8::7 . tcp . 22 }}
"""
FLUSH = """\
# Written by `mcpwrap tools diff --next`, which replaces it each time.
flush set inet mcpwrap next_addr
flush set inet mcpwrap next4
flush set inet mcpwrap next6
"""


def spec_of(text: str) -> ServerSpec:
    files = wanted(text, Observed()).server_files["git"]
    return server_files.decode_spec(files[paths.spec("git")].encode())


@pytest.mark.parametrize(
    ("settings_of_git", "expected"),
    [
        ("", NONE),
        ("egress = ['a.example']", egress(ADDRESS, fronted="yes")),
        ("egress = ['a.example']\ntransparent = false", egress(ADDRESS)),
        (
            "direct = ['192.0.2.7:22', '[2001:db8::7]:22']",
            egress("", *BOTH),
        ),
    ],
)
def test_the_egress_is_that_of_the_server_and_of_no_other(
    settings_of_git: str, expected: NextVersionEgress
) -> None:
    other = f"{OTHER}egress = ['b.example']\ndirect = ['198.51.100.9:25']\n"
    elements = wanted(f"{GIT}{settings_of_git}\n{other}", Observed()).elements
    assert egress_of(UID, elements) == expected


@pytest.mark.parametrize(
    ("allowed", "added"),
    [
        (NONE, ""),
        (
            egress(ADDRESS),
            f"add element inet mcpwrap next_addr {{ {ADDRESS} }}\n",
        ),
        (
            egress(ADDRESS, *BOTH, fronted="yes"),
            ALL_ADDED,
        ),
    ],
)
def test_the_rules_replace_those_of_an_earlier_one(allowed: NextVersionEgress, added: str) -> None:
    assert rules(allowed) == FLUSH + added


def test_a_drop_in_without_a_network() -> None:
    assert drop_in(spec_of(GIT), NONE, "", 990) == (
        """\
# Written by `mcpwrap tools diff --next`, which replaces it each time.
[Service]
# The server has none.
PrivateNetwork=yes
# The limits of one session, its files, and the supervisor.
MemoryMax=2281701376
TasksMax=264
LimitNPROC=264
# Home and downloads. They end with the unit.
"""
        f"{HOME}\n"
    )


def test_a_drop_in_with_all_that_a_server_can_have() -> None:
    text = "egress = ['a.example']\nintercept = true\ndirect = ['192.0.2.7:22']\n"
    spec = spec_of(GIT + text + "[mcp_servers.git.mcpwrap.limits]\ncpu = '50%'\n")
    allowed = egress(ADDRESS, ("192.0.2.7", "22"), ("192.0.2.7", "23"), fronted="yes")
    lines = drop_in(spec, allowed, "intercept-1", 990).splitlines()
    assert [line for line in lines if "=" in line and "#" not in line] == [
        "IPAddressAllow=192.0.2.7",
        f"IPAddressAllow={ADDRESS}",
        "BindReadOnlyPaths=/var/lib/mcpwrap/resolv/git.conf:/etc/resolv.conf",
        "BindReadOnlyPaths=/var/lib/mcpwrap/ca/git/bundle.pem",
        "MemoryMax=2281701376",
        "TasksMax=264",
        "LimitNPROC=264",
        HOME,
        "CPUQuota=50%",
        f"Requires=mcpwrap-address@{ADDRESS}.service",
        f"After=mcpwrap-address@{ADDRESS}.service",
        "Wants=mcpwrap-squid-intercept@1.service mcpwrap-front.service",
        "After=mcpwrap-squid-intercept@1.service mcpwrap-front.service",
    ]


FULL = """
state = true
cache = true
egress = ['a.example']
workspace = ['/home/bob/project:ro']
"""


def test_the_descriptor_has_another_command_and_no_files() -> None:
    spec = spec_of(GIT + FULL)
    found = next_spec(spec, ("/usr/bin/npx", "-y", "git-mcp@2"), with_secrets=False)
    assert (found.command, found.args, found.cwd) == ("/usr/bin/npx", ("-y", "git-mcp@2"), "")
    assert (found.state, found.workspaces) == (False, None)
    assert found.env == {"TOKEN": (SecretPart("TOKEN"),), "MODE": ("plain",)}
    assert "HTTPS_PROXY" in found.egress_env
    assert [text for text in found.egress_env.values() if "/var/cache" in text] == []
    assert found.memory_bytes == spec.memory_bytes + 1024**3


def test_code_that_others_can_change_gets_no_secrets() -> None:
    strict = spec_of(GIT + FULL)
    relaxed = msgspec.structs.replace(strict, writable_command=True)  # by root, for this server
    found = [
        next_spec(spec, ("/x",), with_secrets=with_secrets).writable_command
        for spec in (strict, relaxed)
        for with_secrets in (False, True)
    ]
    assert found == [True, False, True, True]


# ------------------------------------------------------------------ its units
WRAPPER, NEXT = settings("mcpwrap@.service"), settings("mcpwrap-next.service")
OF_ITS_OWN = {
    "User", "Group", "Type", "ExecStart", "LoadCredential", "StateDirectoryMode",
    "CacheDirectoryMode", "WatchdogSec", "TimeoutStopSec", "StandardInput", "StandardOutput",
    "RuntimeMaxSec", "SuccessExitStatus",
}  # fmt: skip


def test_its_unit_has_each_restriction_of_a_wrapper() -> None:
    restrictions = {
        name: values
        for name, values in WRAPPER.items()
        if name.startswith("[Service]") and name.removeprefix("[Service] ") not in OF_ITS_OWN
    }
    assert len(restrictions) > 30
    assert {name: NEXT.get(name) for name in restrictions} == restrictions
    added = {name.partition("] ")[2] for name in NEXT.keys() - WRAPPER.keys() if "[Serv" in name}
    assert added <= OF_ITS_OWN


def test_its_units_are_those_that_root_starts() -> None:
    assert NEXT["[Unit] BindsTo"] == [next_version.EGRESS_UNIT]
    assert NEXT["[Service] User"] == [next_version.ACCOUNT]
    assert NEXT["[Unit] AssertPathExists"] == [next_version.DROP_IN]
    assert NEXT["[Service] StandardInput"] == [f"file:{next_version.REQUEST}"]
    assert NEXT["[Service] StandardOutput"] == [f"file:{next_version.ANSWER}"]
    egress = settings(next_version.EGRESS_UNIT)
    assert egress["[Unit] StopWhenUnneeded"] == ["yes"]
    assert egress["[Service] ExecStart"] == [f"/usr/sbin/nft -f {next_version.RULES}"]
    [stop] = egress["[Service] ExecStop"]
    assert [f"flush set inet mcpwrap {name}" in stop for name in ("next_addr", "next4", "next6")]
