"""The text of each server's own files."""

import pytest

from mcpwrap.config.model import Limits, Local, Server
from mcpwrap.plan import units

HEAD = "# Written by `mcpwrap apply` from /etc/mcpwrap; changes here are undone by the next one.\n"


def test_an_account_gets_one_number_for_user_and_group_and_no_shell() -> None:
    assert units.sysusers("git", 27514) == (
        f"{HEAD}g mcpw-git 27514\n"
        'u mcpw-git 27514:27514 "mcpwrap server git" /nonexistent /usr/sbin/nologin\n'
    )


STATELESS = """\
[Service]
# No allowlist, no network: not even a loopback interface is shared.
PrivateNetwork=yes
# 2 sessions of this much, and the supervisor.
MemoryMax=200
TasksMax=18
# Homes and temporary files of sessions; full, it is this wrapper's affair alone.
TemporaryFileSystem=/run/mcpwrap/rt/git:mode=0700,uid=27514,gid=27514,size=256M,nr_inodes=16k
"""
LASTING = """\
# A home that lasts.
StateDirectory=mcpwrap/state/git
BindPaths=/var/lib/mcpwrap/state/git
"""


@pytest.mark.parametrize(
    ("server", "text"),
    [
        (Server(name="git", runs=Local(command="/x")), STATELESS),
        (
            Server(name="git", runs=Local(command="/x"), state=True),
            STATELESS + LASTING,
        ),
    ],
)
def test_a_drop_in_has_what_is_true_of_one_wrapper(server: Server, text: str) -> None:
    limits = Limits(memory_bytes=100, tasks=5, sessions=2)
    limited = Server(name=server.name, runs=server.runs, state=server.state, limits=limits)
    assert units.drop_in(limited, 27514) == HEAD + text


@pytest.mark.parametrize(
    ("uids", "text"),
    [
        ((), ""),  # nft takes no empty braces
        ((20_001,), "add element inet mcpwrap wrapped { 20001 }\n"),
        ((20_001, 20_003), "add element inet mcpwrap wrapped { 20001, 20003 }\n"),
    ],
)
def test_the_wrapped_set_has_exact_uids(uids: tuple[int, ...], text: str) -> None:
    assert units.wrapped_set(uids) == HEAD + text
