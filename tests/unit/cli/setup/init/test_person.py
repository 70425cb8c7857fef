"""Account of the person, and the variables of its shell."""

import os
import pwd
import select
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from mcpwrap.cli.setup.init import person
from mcpwrap.cli.setup.init.person import (
    MAX_OUTPUT_BYTES,
    PersonAccount,
    login_environ,
    other_person,
    output_of,
    person_of,
    started,
)
from mcpwrap.errors import McpwrapError, UsageError


@pytest.fixture
def me(tmp_path: Path) -> PersonAccount:
    """Return this account, with a home and a shell of its own."""
    entry = pwd.getpwuid(os.geteuid())
    return PersonAccount(entry.pw_name, entry.pw_uid, entry.pw_gid, str(tmp_path), "/bin/bash")


@pytest.mark.parametrize(
    ("name", "uid", "code"),
    [
        ("alice", 1000, ""),
        ("", 1000, "E-INIT-NO-PERSON"),
        ("root", 0, "E-INIT-NO-PERSON"),  # root called sudo
        ("daemon", 1, "E-INIT-ACCOUNT"),
        ("mcpw-time", 34_142, "E-INIT-ACCOUNT"),
        ("nobody", 65_534, "E-INIT-ACCOUNT"),
        ("nul\0", 1000, "E-INIT-ACCOUNT"),
    ],
)
def test_only_a_person_is_set_up(
    monkeypatch: pytest.MonkeyPatch, name: str, uid: int, code: str
) -> None:
    def getpwnam(name: str) -> object:
        if "\0" in name:
            raise ValueError(name)
        return SimpleNamespace(
            pw_name=name, pw_uid=uid, pw_gid=uid, pw_dir=f"/home/{name}", pw_shell="/bin/sh"
        )

    monkeypatch.setattr(person, "pwd", SimpleNamespace(getpwnam=getpwnam))
    if not code:
        assert person_of(name) == PersonAccount(name, uid, uid, f"/home/{name}", "/bin/sh")
        return
    with pytest.raises(UsageError) as raised:
        person_of(name)
    assert raised.value.code == code


def test_there_is_no_such_account() -> None:
    with pytest.raises(UsageError, match="no such account"):
        person_of("no-such-account-here")


@pytest.mark.parametrize(
    ("uid", "why"), [(1001, ""), (1000, "an account's own calls"), (1, "a system account")]
)
def test_another_person_approves(monkeypatch: pytest.MonkeyPatch, uid: int, why: str) -> None:
    alice = PersonAccount("alice", 1000, 1000, "/", "")
    entry = SimpleNamespace(pw_name="bob", pw_uid=uid, pw_gid=uid, pw_dir="/", pw_shell="")
    monkeypatch.setattr(person, "pwd", SimpleNamespace(getpwnam=lambda _: entry))
    if not why:
        assert other_person("bob", alice) == PersonAccount("bob", uid, uid, "/", "")
        return
    text = f"'bob' cannot approve calls of alice: .*{why}.*E-INIT-APPROVER.*\\n.*--for alice"
    with pytest.raises(UsageError, match=text):
        other_person("bob", alice)


def test_variables_are_those_of_an_interactive_shell(me: PersonAccount) -> None:
    (Path(me.home) / ".bash_profile").write_text(". ~/.bashrc\n")
    text = "[ -z \"$PS1\" ] || export PATH=/nvm/bin:$PATH LINES_OF='a\nb=c'\necho welcome\nread x\n"
    (Path(me.home) / ".bashrc").write_text(text)
    found = login_environ(me)
    assert found["PATH"].startswith("/nvm/bin:")
    assert found["LINES_OF"] == "a\nb=c"
    assert (found["HOME"], found["USER"]) == (me.home, me.account)


@pytest.mark.parametrize(
    ("shell", "start_up"),
    [
        ("/usr/sbin/nologin", ""),
        ("/no/such/shell", ""),
        ("", ""),
        ("/bin/bash", "exec sleep 100"),
        ("/bin/bash", "exit 0"),
        ("/bin/bash", "yes"),  # without an end
    ],
)
def test_without_a_shell_that_answers_they_are_few(
    me: PersonAccount, monkeypatch: pytest.MonkeyPatch, shell: str, start_up: str
) -> None:
    monkeypatch.setattr(person, "_SHELL_S", 0.3)
    (Path(me.home) / ".bash_profile").write_text(start_up)
    found = login_environ(PersonAccount(me.account, me.uid, me.gid, me.home, shell))
    assert sorted(found) == ["HOME", "LANG", "LOGNAME", "PATH", "SHELL", "USER"]


def test_it_has_no_terminal_and_ends_with_the_block(me: PersonAccount) -> None:
    tried = "import os; os.open('/dev/tty', os.O_RDWR)"
    with started(me, ["/usr/bin/python3", "-c", tried], {}, stderr=subprocess.STDOUT) as child:
        text = output_of(child, "python3", 60)
    assert b"No such device or address" in text
    with started(me, ["/bin/sleep", "100"], {}) as child:
        assert child.poll() is None
    assert child.poll() == -15


@pytest.mark.parametrize(
    ("line", "within_s", "why"),
    [
        (f"head -c {MAX_OUTPUT_BYTES} /dev/zero; exit 3", 60, ""),
        (f"head -c {MAX_OUTPUT_BYTES + 1} /dev/zero", 60, "printed more than 1048576 bytes"),
        ("exec yes", 60, "printed more than"),
        ("exec sleep 100", 0.1, "had not ended after 0.1 s"),
        ("exec sleep 100 >&- 2>&-", 0.1, "had not ended after 0.1 s"),
    ],
)
def test_output_has_an_end_and_a_deadline(
    me: PersonAccount, line: str, within_s: float, why: str
) -> None:
    with started(me, ["/bin/sh", "-c", line], {"PATH": "/usr/bin:/bin"}) as child:
        if why:
            with pytest.raises(McpwrapError, match=rf"{why}.*E-INIT-PROGRAM"):
                output_of(child, "a program", within_s)
        else:
            assert len(output_of(child, "a program", within_s)) == MAX_OUTPUT_BYTES
    assert why or child.returncode == 3


@pytest.mark.parametrize("leader", ["exit 0", "exec sleep 100"])
def test_what_it_leaves_behind_ends_with_the_block(me: PersonAccount, leader: str) -> None:
    line = f"sh -c 'trap \"\" TERM; echo $$; exec sleep 100 2>&-' & {leader}"
    with started(me, ["/bin/sh", "-c", line], {"PATH": "/usr/bin:/bin"}) as child:
        assert child.stdout
        pid_fd = os.pidfd_open(int(child.stdout.readline()))
        assert select.select([pid_fd], [], [], 0)[0] == []
        if leader == "exit 0":
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    try:
        assert select.select([pid_fd], [], [], 60)[0]
    finally:
        os.close(pid_fd)
