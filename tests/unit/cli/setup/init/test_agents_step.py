"""Step of agents' files: a stand-in for `mcpwrap` prints, requests and exits as `wrap` does."""

import os
import pwd
from pathlib import Path

import click
import pytest

from mcpwrap.cli.agents.clients import NO_FILES
from mcpwrap.cli.setup.init import agents_step, guide, person
from mcpwrap.cli.setup.init.guide import Guide
from mcpwrap.cli.setup.init.person import PersonAccount
from mcpwrap.errors import McpwrapError
from mcpwrap.linux import tty

SHA = "5f" * 32
ROOT = Path(__file__).parents[5]
# `accept` stores its arguments, its standard input and SUDO_USER.
PROGRAM = """#!/usr/bin/python3 -B
import os, sys
sys.path.insert(0, {root!r})
from mcpwrap.cli.common.root_handoff import handoff_of
if sys.argv[1] == "clients":
    print({listed!r}, flush=True)
    sys.exit({raw})
if sys.argv[1] == "accept":
    with open({folder!r} + "/accepted", "w") as file:
        file.write(repr((sys.argv[2:], os.environ["SUDO_USER"], sys.stdin.read())))
    sys.exit({refused})
handoff = handoff_of(os.environ)
{body}
"""
ASKS = f"""
print("a diff \\x1b[31m", flush=True)
if not handoff.is_confirmed(): sys.exit(1)
print("a proposal", end="", flush=True)
if not handoff.is_accepted({SHA!r}, "/p", b'{{}}'): sys.exit(1)
print(" is accepted", flush=True)
sys.exit(STATUS)
"""


@pytest.fixture
def who(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> PersonAccount:
    entry = pwd.getpwuid(os.geteuid())
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    monkeypatch.setattr(agents_step, "login_environ", lambda _: environ)
    return PersonAccount(entry.pw_name, entry.pw_uid, entry.pw_gid, str(tmp_path), "/bin/sh")


def taken(
    who: PersonAccount,
    monkeypatch: pytest.MonkeyPatch,
    body: str,
    *,
    listed: str = "a file",
    raw: int = 1,
    refused: int = 0,
    has_terminal: bool = True,
) -> tuple[str, str]:
    """Take the step; return its state and its reason."""
    program = Path(who.home) / "mcpwrap"
    program.write_text(
        PROGRAM.format(
            root=str(ROOT), listed=listed, raw=raw, folder=who.home, refused=refused, body=body
        )
    )
    program.chmod(0o755)
    monkeypatch.setattr(agents_step, "MCPWRAP", str(program))
    monkeypatch.setattr(tty, "has_terminal", lambda: has_terminal)
    one = Guide(is_agreed=True, is_json=False)
    agents_step.agents(one, who)
    (result,) = one.results
    return result.state, result.why


@pytest.mark.parametrize(
    ("status", "state", "why"),
    [(0, "done", "restart those that run"), (1, "done", "as it is has its reason above")],
)
def test_what_both_confirm_is_done(
    who: PersonAccount,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    status: int,
    state: str,
    why: str,
) -> None:
    found = taken(who, monkeypatch, ASKS.replace("STATUS", str(status)))
    assert found[0] == state
    assert why in found[1]
    accepted = (Path(who.home) / "accepted").read_text()
    assert accepted == repr(([SHA, "/p"], who.account, "{}"))
    shown = capfd.readouterr().out
    assert "\n   | a diff" in shown
    assert "\x1b" not in shown
    assert "\n   | a proposal is accepted\n" in shown


@pytest.mark.parametrize(
    ("body", "refused", "has_terminal", "state", "why"),
    [
        (ASKS, 1, True, "failed", "root has not accepted"),
        (ASKS, 0, False, "skipped", "there is none"),
        ("sys.exit(0)", 0, True, "already", "nothing else can be wrapped"),
        ("sys.exit(1)", 0, True, "already", "nothing else can be wrapped"),  # some are left
        ("sys.exit(2)", 0, True, "failed", "failed, as shown above"),
        ("os.kill(os.getpid(), 9)", 0, True, "failed", "failed, as shown above"),
        # What is not a request closes the socket: the next one is answered by no.
        ("os.write(handoff.fd, b'xxxxx'); sys.exit(int(handoff.is_confirmed()))", 0, True,
         "already", "nothing else"),
    ],
)  # fmt: skip
def test_what_is_not_confirmed_is_not_done(
    who: PersonAccount,
    monkeypatch: pytest.MonkeyPatch,
    body: str,
    refused: int,
    has_terminal: bool,  # noqa: FBT001
    state: str,
    why: str,
) -> None:
    found = taken(who, monkeypatch, body, refused=refused, has_terminal=has_terminal)
    assert found[0] == state
    assert why in found[1]


def test_a_person_who_says_no_changes_nothing(
    who: PersonAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Guide, "agrees", lambda *_: False)
    assert taken(who, monkeypatch, ASKS) == ("skipped", "nothing was changed")
    assert not (Path(who.home) / "accepted").exists()


def test_an_interrupted_question_ends_wrap(
    who: PersonAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> bool:
        raise click.Abort

    monkeypatch.setattr(Guide, "agrees", interrupted)
    monkeypatch.setattr(person, "_END_S", 5.0)
    body = ASKS.replace(
        "if not", "open(os.environ['HOME'] + '/pid', 'w').write(str(os.getpid()))\nif not", 1
    )
    with pytest.raises(click.Abort):
        taken(who, monkeypatch, body)
    pid = int((Path(who.home) / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize(
    ("listed", "state"),
    [("a file", "already"), (NO_FILES, "skipped")],
)
def test_where_no_server_is_raw_wrap_is_not_started(
    who: PersonAccount, monkeypatch: pytest.MonkeyPatch, listed: str, state: str
) -> None:
    body = "open(os.environ['HOME'] + '/started', 'w')"
    assert taken(who, monkeypatch, body, listed=listed, raw=0)[0] == state
    assert not (Path(who.home) / "started").exists()
    taken(who, monkeypatch, body, listed=listed, raw=1)  # the twin
    assert (Path(who.home) / "started").exists()


@pytest.mark.parametrize("columns", [None, 40])
def test_lines_of_the_person_cannot_pass_for_those_of_init(
    who: PersonAccount,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    columns: int | None,
) -> None:
    monkeypatch.setattr(tty, "columns_of", lambda _: columns)
    forged = f"{' ' * 33}{'$ sudo reboot':40}  done: all"
    taken(who, monkeypatch, f"print({forged!r}); sys.exit(0)", listed=forged)
    shown = capfd.readouterr().out.splitlines()
    own = [line for line in shown if not line.startswith("   | ")]
    assert own == [
        "",
        f"1. Agents of {who.account}, and the servers in their files",
        "   $ mcpwrap clients",
        "",
        "   $ mcpwrap wrap --all",
        "   already done: nothing else can be wrapped: the reasons are above",
    ]
    assert all(len(line) <= (columns or 200) for line in shown if line not in own)
    assert "".join(shown).count("sudo reboot") == 2


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("os.write(1, b'x' * (2**20 - 1) + b'\\n'); sys.exit(0)", ""),
        ("os.write(1, b'x' * 2**20 + b'\\n'); sys.exit(0)", "more than 1048576 bytes"),
        ("while True: os.write(1, b'x\\n' * 100)", "more than 1048576 bytes"),
        ("import time; time.sleep(100)", "not ended after 3 s"),
    ],
)
def test_a_wrap_that_prints_or_takes_too_much_is_ended(
    who: PersonAccount, monkeypatch: pytest.MonkeyPatch, body: str, why: str
) -> None:
    monkeypatch.setattr(agents_step, "_WRAP_S", 3)
    if not why:
        assert taken(who, monkeypatch, body)[0] == "already"
        return
    with pytest.raises(McpwrapError, match=rf"{why}.*E-INIT-PROGRAM"):
        taken(who, monkeypatch, body)


def test_a_list_that_is_too_long_fails_the_step(
    who: PersonAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(McpwrapError, match=r"mcpwrap clients: .*E-INIT-PROGRAM"):
        taken(who, monkeypatch, "", listed="x" * 2**20)


def test_a_wrap_that_goes_on_without_output_is_ended(
    who: PersonAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agents_step, "_END_S", 0.1)
    body = "import time; os.close(1); os.close(2); time.sleep(100)"
    assert taken(who, monkeypatch, body)[0] == "failed"


@pytest.mark.parametrize("status", [130, 2])
def test_an_interrupted_command_of_root_ends_the_run(tmp_path: Path, status: int) -> None:
    program = tmp_path / "program"
    how = "kill -INT $$" if status == 2 else f"exit {status}"
    program.write_text(f"#!/bin/sh\n{how}\n")
    program.chmod(0o755)
    with pytest.raises(click.Abort):
        guide.Guide(is_agreed=True, is_json=True).ran([str(program)])
