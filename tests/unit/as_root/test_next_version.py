"""Root's part of `mcpwrap tools diff --next`, with a scripted unit at the other ends of pipes."""

import os
import pwd
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import msgspec
import pytest

from mcpwrap.as_root import lock, next_version
from mcpwrap.as_root.secrets import command as secret_command
from mcpwrap.core.wire import next_version_pipe
from mcpwrap.core.wire.next_version_pipe import NextVersionRequest
from mcpwrap.core.wire.panic_file import Panic, encode
from mcpwrap.core.wire.server_files import RemoteSpec, SecretPart, ServerSpec
from mcpwrap.core.wire.server_files import encode as encode_file
from mcpwrap.errors import McpwrapError, UsageError
from mcpwrap.linux import root_files, tty
from mcpwrap.linux.systemd.systemctl import ToolError
from mcpwrap.machine import nft_table, observer
from mcpwrap.plan import next_version as planned
from mcpwrap.plan import paths
from mcpwrap.plan.registry import Allocation, Registry
from tests.shared import pace

SPEC = ServerSpec(
    name="git", command="/opt/git-mcp", args=(), cwd="", egress_env={}, inherits=(),
    env={"TOKEN": (SecretPart("TOKEN"),)}, secrets=("TOKEN",), secret_files=(), state=True,
    allow_degraded=False, idle_exit_s=0, sessions=1, memory_bytes=1, tasks=1, cpu_percent=0,
)  # fmt: skip
FAR = msgspec.structs.replace(SPEC, name="far", remote=RemoteSpec(url="https://x", headers={}))
COMMAND = ("/bin/true", "-y")


class Machine:
    """Systemd with the unit of a next version, which gives one answer to each request."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.answer = b"the answer"
        self.fails = False
        self.requests: list[NextVersionRequest] = []
        self._unit: Thread | None = None

    def systemctl(self, *argv: str) -> str:
        self.calls.append(" ".join(argv[1:]))
        if argv[1] == "start":
            if self.fails:
                raise ToolError("no", where="systemctl", fix="fix it", code="E-TOOL-FAILED")
            is_open = Event()
            self._unit = Thread(target=self._run, args=(is_open,))
            self._unit.start()
            assert is_open.wait(pace.WAIT_S)
        elif self._unit:
            self._unit.join()
            self._unit = None
        return ""

    def _run(self, is_open: Event) -> None:
        with (
            suppress(BrokenPipeError),
            Path(planned.REQUEST).open("rb") as request,
            Path(planned.ANSWER).open("wb") as answer,
        ):
            is_open.set()
            self.requests.append(next_version_pipe.decode_request(request.readline()))
            answer.write(self.answer)


@pytest.fixture
def machine(tmp_path: Path, store_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    folder = tmp_path / "next"
    monkeypatch.setattr(next_version_pipe, "FOLDER", str(folder))
    for name in ("REQUEST", "ANSWER", "RULES"):
        monkeypatch.setattr(planned, name, str(folder / name.lower()))
    monkeypatch.setattr(planned, "DROP_IN", str(tmp_path / "unit.d" / "10.conf"))
    monkeypatch.setattr(planned, "LOCK", str(tmp_path / "next.lock"))
    monkeypatch.setattr(planned, "ACCOUNT", pwd.getpwuid(os.getuid()).pw_name)
    monkeypatch.setattr(paths, "SPECS", str(tmp_path))
    for name in ("PANIC", "PANIC_NOW"):
        monkeypatch.setattr(paths, name, str(tmp_path / name))
    for spec in (SPEC, FAR):
        Path(paths.spec(spec.name)).write_text(encode_file(spec))
    monkeypatch.setattr(root_files, "read_roots_own", lambda path: Path(path).read_bytes())
    monkeypatch.setattr(next_version, "run", made.systemctl)
    found = frozenset(
        {("egress_addr", "20000 . 127.77.0.0"), ("egress_addr", "20001 . 127.77.0.1")}
    )
    monkeypatch.setattr(nft_table, "elements", lambda: found)
    registry = Registry(by_name={"git": Allocation(uid=20000, squid="proxy-1")})
    monkeypatch.setattr(observer, "registry", lambda: registry)
    return made


def asked(machine: Machine, *, with_secrets: bool = False) -> bytes:
    return next_version.answer("git", COMMAND, with_secrets=with_secrets)


STOP = "stop -- mcpwrap-next.service mcpwrap-next-egress.service"


def test_an_earlier_one_is_ended_first_and_this_one_last(machine: Machine) -> None:
    assert asked(machine) == b"the answer"
    assert machine.calls == [STOP, "daemon-reload", "start -- mcpwrap-next.service", STOP]
    [request] = machine.requests
    assert (request.spec.command, request.spec.args) == ("/bin/true", ("-y",))
    assert request.value_by_key == {"TOKEN": planned.PLACEHOLDER}
    rules = Path(planned.RULES).read_text()
    assert "next_addr { 127.77.0.0 }" in rules
    assert "127.77.0.1" not in rules
    assert "mcpwrap-squid-proxy@1.service" in Path(planned.DROP_IN).read_text()
    assert not Path(planned.REQUEST).exists()


def test_a_killed_one_is_no_obstacle(machine: Machine) -> None:
    Path(next_version_pipe.FOLDER).mkdir()
    for path in (planned.REQUEST, planned.ANSWER):
        Path(path).write_text("left over")
    assert asked(machine) == b"the answer"


def test_there_is_one_at_a_time(machine: Machine) -> None:
    with lock.if_free(planned.LOCK), pytest.raises(McpwrapError) as refused:
        asked(machine)
    assert refused.value.code == "E-NEXT-BUSY"
    assert machine.calls == []
    assert asked(machine) == b"the answer"


def test_the_unit_is_ended_also_if_it_does_not_start(machine: Machine) -> None:
    machine.fails = True
    with pytest.raises(ToolError):
        asked(machine)
    assert machine.calls[-1] == STOP


def test_an_answer_is_bounded(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(next_version, "MAX_ANSWER_BYTES", 9)
    with pytest.raises(McpwrapError) as refused:
        asked(machine)
    assert refused.value.code == "E-NEXT-TOO-LARGE"
    machine.answer = b"9 bytes.."
    assert asked(machine) == b"9 bytes.."


def test_an_interrupt_ends_it(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: int) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(next_version, "_read_to_end", interrupt)
    with pytest.raises(McpwrapError) as refused:
        asked(machine)
    assert refused.value.code == "E-NEXT-INTERRUPTED"
    assert machine.calls[-1] == STOP


@pytest.mark.parametrize(
    ("name", "command", "code"),
    [
        ("none", COMMAND, "E-USAGE-NO-SERVER"),
        ("../git", COMMAND, "E-USAGE-NO-SERVER"),
        ("far", COMMAND, "E-NEXT-NOT-LOCAL"),
        ("git", ("no-such-program",), "E-NEXT-NO-COMMAND"),
        ("git", ("./true",), "E-NEXT-NO-COMMAND"),  # in which folder?
        ("git", ("/bin",), "E-NEXT-NO-COMMAND"),
        ("git", ("",), "E-NEXT-NO-COMMAND"),
        ("git", ("/bin/true", "x" * 1_100_000), "E-NEXT-TOO-LARGE"),
    ],
)
def test_nothing_starts(machine: Machine, name: str, command: tuple[str, ...], code: str) -> None:
    with pytest.raises(UsageError) as refused:
        next_version.answer(name, command, with_secrets=False)
    assert refused.value.code == code
    assert machine.calls == []


def test_a_program_is_looked_up_where_servers_look(machine: Machine) -> None:
    next_version.answer("git", ("true",), with_secrets=False)
    assert machine.requests[0].spec.command in {"/usr/bin/true", "/bin/true"}


@pytest.mark.parametrize(("stopped", "starts"), [("git", False), ("far", True)])
def test_a_server_that_is_stopped_has_no_next_version(
    machine: Machine, stopped: str, *, starts: bool
) -> None:
    Path(paths.PANIC_NOW).write_text(encode(Panic(names=(stopped,))))
    if starts:
        assert asked(machine) == b"the answer"
        return
    with pytest.raises(McpwrapError) as refused:
        asked(machine)
    assert refused.value.code == "E-SESSION-PANIC"


# ------------------------------------------------------------------ secrets
@pytest.fixture
def answers(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have a person say yes; return what that person was shown."""
    shown: list[str] = []

    def says_yes(text: Callable[[int], str], question: str) -> bool:
        shown.append(text(80) + question)
        return True

    monkeypatch.setattr(tty, "says_yes", says_yes)
    monkeypatch.setattr(observer, "declared_secrets", lambda: {("git", "TOKEN")})
    return shown


def test_the_person_is_shown_what_gets_which_secrets(machine: Machine, answers: list[str]) -> None:
    secret_command.set_one("git", "TOKEN", "s3cret")
    asked(machine, with_secrets=True)
    assert machine.requests[0].value_by_key == {"TOKEN": "s3cret"}
    [text] = answers
    assert text == (
        "This program gets the secrets of git, and can send them to each of its hosts:\n"
        "  program: /bin/true -y\n"
        "  secrets: TOKEN\n"
        "Type `yes` to give it these secrets: "
    )


def test_another_answer_starts_nothing(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tty, "says_yes", lambda *_: False)
    with pytest.raises(McpwrapError) as refused:
        asked(machine, with_secrets=True)
    assert (refused.value.code, machine.calls) == ("E-NEXT-NOT-CONFIRMED", [])


def test_a_secret_that_is_not_set_starts_nothing(machine: Machine, answers: list[str]) -> None:
    with pytest.raises(McpwrapError) as refused:
        asked(machine, with_secrets=True)
    assert (refused.value.code, machine.calls) == ("E-SECRET-UNUSABLE", [])
    assert answers
