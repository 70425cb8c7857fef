"""The text of each server's own files."""

from dataclasses import replace

import pytest

from mcpwrap.config.model import Destination, Direct, Group, Limits, Local, SecretRef, Server
from mcpwrap.plan import unit_files

HEAD = "# Written by `mcpwrap apply` from /etc/mcpwrap; changes here are undone by the next one.\n"


def test_an_account_gets_one_number_for_user_and_group_and_no_shell() -> None:
    assert unit_files.sysusers({"git": 27514}) == (
        f"{HEAD}g mcpw-git 27514\n"
        'u mcpw-git 27514:27514 "mcpwrap server git" /nonexistent /usr/sbin/nologin\n'
    )


NO_NETWORK = """\
# Without an allowlist it has no network: not even a loopback interface is shared.
PrivateNetwork=yes
"""
BOUNDS = """\
# The limits of 2 sessions, and the supervisor.
MemoryMax=200
TasksMax=22
# The same, counted by account, for machines that do not count tasks by control group.
LimitNPROC=22
# Home and temporary files of each session: a full one affects that session alone.
TemporaryFileSystem=/run/mcpwrap/rt/git/0:mode=0700,uid=27514,gid=27514,size=256M,nr_inodes=16k
TemporaryFileSystem=/run/mcpwrap/rt/git/1:mode=0700,uid=27514,gid=27514,size=256M,nr_inodes=16k
TemporaryFileSystem=/run/mcpwrap/rt/git/2:mode=0700,uid=27514,gid=27514,size=256M,nr_inodes=16k
TemporaryFileSystem=/run/mcpwrap/rt/git/3:mode=0700,uid=27514,gid=27514,size=256M,nr_inodes=16k
TemporaryFileSystem=/run/mcpwrap/rt/git/4:mode=0700,uid=27514,gid=27514,size=256M,nr_inodes=16k
TemporaryFileSystem=/run/mcpwrap/rt/git/5:mode=0700,uid=27514,gid=27514,size=256M,nr_inodes=16k
"""
STATELESS = f"[Service]\n{NO_NETWORK}{BOUNDS}"
OWN = """\
# Its own egress address; the packet rules enforce the same, for each port of it.
IPAddressAllow=127.77.29.90
"""
RESOLVER = """\
# The resolver that answers every name with that address.
BindReadOnlyPaths=/var/lib/mcpwrap/resolv/git.conf:/etc/resolv.conf
"""
TRUSTED = "BindReadOnlyPaths=/var/lib/mcpwrap/ca/git/bundle.pem\n"
BEYOND = """\
# By `direct`, not through Squid. The packet rules allow port 1 alone.
IPAddressAllow=10.0.0.5
# By `direct`, not through Squid. The packet rules allow port 2 alone.
IPAddressAllow=fd00::5
"""
KEPT = """\
# Downloads, for the next session.
CacheDirectory=mcpwrap/git
"""
CPU = "CPUQuota=300%\n"
SECRETS = """\
# Root seals the secrets for this start alone; their key is a credential.
ExecStartPre=+/usr/bin/nsenter --target=1 --mount -- /usr/libexec/mcpwrap/mcpwrap-mint start git
LoadCredential=capability:/run/mcpwrap/mint/git
BindReadOnlyPaths=/run/mcpwrap/bundle/git
# `systemctl reload` hands over their current values; the next session has these.
ExecReload=+/usr/bin/nsenter --target=1 --mount -- /usr/libexec/mcpwrap/mcpwrap-mint reload git
ExecReload=/usr/bin/kill -HUP $MAINPID
[Unit]
# systemd looks for file and folder before the first command, so they must exist.
Requires=mcpwrap-mint@git.service
After=mcpwrap-mint@git.service
"""
WAY_OUT = """\
[Unit]
# The packet rules refuse its connections from any address but its own.
Requires=mcpwrap-address@ADDRESS.service
After=mcpwrap-address@ADDRESS.service
# Its egress, without which it starts nevertheless.
Wants=UNITS
After=UNITS
"""
WAY_OUT = WAY_OUT.replace("ADDRESS", "127.77.29.90")
SPLICED = WAY_OUT.replace("UNITS", "mcpwrap-squid-proxy@1.service mcpwrap-front.service")
OPENED = SPLICED.replace("proxy", "intercept")
NO_FRONT = WAY_OUT.replace("UNITS", "mcpwrap-squid-proxy@1.service")
LASTING = """\
# A persistent home.
StateDirectory=mcpwrap/state/git
BindPaths=/var/lib/mcpwrap/state/git
"""


RUNS = Local(command="/x")
WITH_SECRET = Local(command="/x", env={"A": (SecretRef("KEY"),)})
LIMITS = Limits(memory_bytes=100, tasks=5, sessions=2)
WITH_CPU = Limits(memory_bytes=100, tasks=5, sessions=2, cpu_percent=150)


@pytest.mark.parametrize(
    ("server", "text"),
    [
        (Server(name="git", runs=RUNS, limits=LIMITS), STATELESS),
        (Server(name="git", runs=RUNS, limits=WITH_CPU), STATELESS + CPU),
        (Server(name="git", runs=WITH_SECRET, limits=LIMITS), STATELESS + SECRETS),
        (Server(name="git", runs=RUNS, limits=LIMITS, state=True), STATELESS + LASTING),
        (
            Server(name="git", runs=WITH_SECRET, limits=LIMITS, state=True),
            STATELESS + LASTING + SECRETS,  # [Unit] is last
        ),
    ],
)
def test_a_drop_in_has_what_is_true_of_one_wrapper(server: Server, text: str) -> None:
    assert unit_files.drop_in(server, 27514, "") == HEAD + text


HOSTS = (Destination("api.example.com", 443, with_subdomains=False), Group("npm"))
DIRECT = (Direct("10.0.0.5", 1), Direct("fd00::5", 2))


@pytest.mark.parametrize(
    ("server", "lines", "way_out"),
    [
        (Server(name="git", runs=RUNS, egress=HOSTS), OWN + RESOLVER, SPLICED),
        (Server(name="git", runs=RUNS, egress=HOSTS, transparent=False), OWN, NO_FRONT),
        (
            Server(name="git", runs=RUNS, egress=HOSTS, intercept=True),
            OWN + RESOLVER + TRUSTED,
            OPENED,
        ),
        (Server(name="git", runs=RUNS, direct=DIRECT), BEYOND, ""),  # no egress of mcpwrap
        (Server(name="git", runs=RUNS, cache=True), NO_NETWORK + KEPT, ""),
        (
            Server(name="git", runs=RUNS, egress=HOSTS, direct=DIRECT, cache=True),
            BEYOND + OWN + RESOLVER + KEPT,
            SPLICED,
        ),
        (
            Server(name="git", runs=WITH_SECRET, egress=HOSTS),
            OWN + RESOLVER,
            SECRETS + SPLICED,  # two sections [Unit] are one (systemd.syntax(7))
        ),
    ],
)
def test_a_drop_in_has_what_one_wrapper_reaches(server: Server, lines: str, way_out: str) -> None:
    instance = "intercept-1" if server.intercept else "proxy-1" if server.egress else ""
    text = unit_files.drop_in(replace(server, limits=LIMITS), 27514, instance)
    assert text == f"{HEAD}[Service]\n{lines}{BOUNDS}{way_out}"
