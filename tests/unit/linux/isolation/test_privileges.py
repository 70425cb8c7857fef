"""Dropping root privileges for good."""

import os
import pwd
import subprocess
import sys

import pytest

from mcpwrap.linux.isolation.privileges import invoking_user

GIVE_UP = """
import os, sys
from mcpwrap.linux.isolation.privileges import give_up_root
who = give_up_root(*sys.argv[1:])
try:
    os.setuid(0)
    again = True
except PermissionError:
    again = False
print(who.account if who else None, os.getresuid(), os.getresgid(), 0 in os.getgroups(), again)
"""
NOBODY = pwd.getpwnam("nobody")
DAEMON = pwd.getpwnam("daemon")


@pytest.mark.parametrize(
    ("uid", "gid", "account"),
    [
        (str(DAEMON.pw_uid), str(DAEMON.pw_gid), "daemon"),
        ("", "", "nobody"),  # root without sudo
        ("0", "0", "nobody"),  # root that called sudo
        ("-1", "0", "nobody"),
        ("1", "", "nobody"),
        ("4294967", "1", "nobody"),  # a removed account
    ],
)
def test_the_account_that_called_sudo(uid: str, gid: str, account: str) -> None:
    who, new_uid, _ = invoking_user(uid, gid)
    assert who.account == account
    assert new_uid == pwd.getpwnam(account).pw_uid
    assert who.is_somebody == (account != "nobody")


@pytest.mark.parametrize("entry", [DAEMON, NOBODY])
def test_root_cannot_be_regained(entry: pwd.struct_passwd) -> None:
    ids = [str(entry.pw_uid), str(entry.pw_gid)] if entry is DAEMON else ["", ""]
    argv = [sys.executable, "-c", GIVE_UP, *ids]
    env = {"PYTHONPATH": ":".join(filter(None, sys.path))}
    said = subprocess.run(argv, env=env, capture_output=True, text=True).stdout.strip()
    if os.geteuid() == 0:
        uids, gids = (entry.pw_uid,) * 3, (entry.pw_gid,) * 3
        assert said == f"{entry.pw_name} {uids} {gids} False False"
    else:  # there are no root privileges to drop
        assert said.startswith(f"None {os.getresuid()}")
