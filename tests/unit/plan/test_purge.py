"""`mcpwrap purge`: what it removes, in order, and the same in the postrm of the .deb."""

import re
from fnmatch import fnmatch
from pathlib import Path

from mcpwrap.plan import purge
from mcpwrap.plan.steps import RemoveAccount, RemoveFile, RemoveTree

TOP = Path(__file__).resolve().parents[3]
POSTRM = (TOP / "packaging/debian/mcpwrap.postrm").read_text()
PRERM = (TOP / "packaging/debian/mcpwrap.prerm").read_text()
SYSUSERS = (TOP / "packaging/sysusers.d/mcpwrap.conf").read_text()
FOUND = ("/etc/mcpwrap", "/var/cache/mcpwrap", "/var/log/mcpwrap", purge.STAMP)


def test_the_postrm_of_the_deb_removes_the_same() -> None:
    ours = {*purge.DROP_INS, *purge.CONTENT_BY_TREE, purge.STAMP, purge.RUNTIME}
    commands = re.findall(
        r"^ *rm -\w+(?: --one-file-system)? (/(?:.|\\\n)*?[^\\])$", POSTRM, re.MULTILINE
    )
    theirs = {word for command in commands for word in command.replace("\\\n", " ").split()}
    links = {path for path in theirs if fnmatch(path, purge.LINKS)}
    assert len(links) > 5  # those of `apply`; debhelper removes those of the package
    assert theirs - links == ours
    accounts = re.search(r"for account in (mcpwrap-(?:.|\\\n)*?);", POSTRM)
    groups = re.search(r"for group in (.*?);", POSTRM)
    assert accounts
    assert groups
    named = accounts[1].replace("\\\n", " ").split() + groups[1].split()
    assert sorted(named) == sorted(purge.own_accounts(SYSUSERS))
    assert f"nft delete table {purge.TABLE} " in POSTRM
    assert f"ip route flush table local root {purge.ROUTES} " in POSTRM


def test_what_the_prerm_of_the_deb_stops_is_stopped_before_the_rest() -> None:
    patterns = [pattern for group in purge.SESSIONS for pattern in group]
    by_name = {name for name in re.findall(r"mcpwrap[\w@*.-]*", PRERM) if "." in name}
    egress = {"mcpwrap-squid-*@*.service", "mcpwrap-front.service", "mcpwrap-webhook.service"}
    left = {name for name in by_name if not any(_has(pattern, name) for pattern in patterns)}
    assert left == egress  # connections of no session any more


def _has(pattern: str, name: str) -> bool:
    return name == pattern or (pattern.endswith("*") and name.startswith(pattern[:-1]))


def test_only_names_of_mcpwrap_are_its_own_accounts() -> None:
    lines = (
        '# u mcpwrap-no\ng mcpwrap -\n\nu mcpwrap-gate - "of u x" /x\ng adm -\nm alice mcpwrap\n'
    )
    assert purge.own_accounts(lines) == ["mcpwrap", "mcpwrap-gate"]


def test_accounts_go_after_all_files_that_they_own() -> None:
    link = "/etc/systemd/system/sockets.target.wants/mcpwrap@time.socket"
    drop_in = "/etc/systemd/system/mcpwrap@time.service.d"
    found = {purge.LINKS: [link], "/etc/systemd/system/mcpwrap@*.service.d": [drop_in]}
    found |= {path: [path] for path in FOUND}  # /var/lib/mcpwrap went before an interruption

    def find(pattern: str) -> list[str]:
        return found.get(pattern, [])

    assert list(purge.unit_steps(find)) == [RemoveFile(link), RemoveTree(drop_in)]
    assert list(purge.steps(find, ["mcpw-time", "mcpwrap"])) == [
        RemoveTree("/etc/mcpwrap"),
        RemoveTree("/var/cache/mcpwrap"),
        RemoveTree("/var/log/mcpwrap"),
        RemoveFile(purge.STAMP),
        RemoveAccount("mcpw-time"),
        RemoveAccount("mcpwrap"),
    ]


def test_the_list_before_the_question_names_each_account_and_folder() -> None:
    accounts = [f"mcpw-{n}" for n in range(6)]
    text = "\n".join(purge.shown(accounts))
    assert all(name in text for name in (*accounts, *purge.CONTENT_BY_TREE))
    assert "6 accounts and groups" in text
    assert max(map(len, text.splitlines())) <= 100
