"""Accepting a proposal: reading, questions, refusals, and the order of changes."""

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest

from mcpwrap.as_root import lock, main
from mcpwrap.as_root.apply import accept as module
from mcpwrap.as_root.apply import apply
from mcpwrap.as_root.apply.accept import accept
from mcpwrap.as_root.lock import only_one
from mcpwrap.as_root.secrets import command
from mcpwrap.config.proposal import texts_of
from mcpwrap.core.wire.secret_index import SecretIndex, SecretVersion
from mcpwrap.errors import McpwrapError, UsageError
from mcpwrap.linux import run_as_nobody, tty
from mcpwrap.linux.isolation import prctl
from mcpwrap.linux.root_files import NewFile
from mcpwrap.machine import observer, planning, secret_index_file
from mcpwrap.plan import paths
from mcpwrap.plan.diff.diff import RetirementPolicy

ONE = """
[mcp_servers.a]
command = '/x'
env = { T = '${T}', U = '${U}' }
mcpwrap.agents = ['alice']
"""
TEXT = texts_of(ONE.encode())["a"]
READ = "import sys; from mcpwrap.as_nobody import proposal_reader as p; sys.exit(p.main())"


class Machine:
    """Machine in a folder: root's files on it, and the actions taken there, in order."""

    def __init__(self, folder: Path) -> None:
        self.conf = folder / "etc"
        self.conf_d = self.conf / "conf.d"
        self.conf_d.mkdir(parents=True)
        self.config = self.conf / "config.toml"
        self.config.write_text("")
        self.proposal = folder / "proposal.toml"
        self.names: list[str] = []
        self.settings = SecretIndex()
        self.done: list[str] = []
        self.shown = ""
        self.answers: Callable[[], bool] = lambda: True

    def propose(self, text: str = ONE) -> str:
        self.proposal.write_text(text)
        return hashlib.sha256(text.encode()).hexdigest()

    def accept(self, text: str = ONE, *, by: str = "alice") -> None:
        accept(self.propose(text), str(self.proposal), by=by)

    def expect_refused(self, why: str, text: str = ONE) -> str:
        before = self.files()
        with pytest.raises(McpwrapError, match=why) as error:
            self.accept(text)
        assert "nothing was changed" in str(error.value)
        assert (self.done, self.files()) == ([], before)
        return str(error.value)

    def files(self) -> dict[str, str]:
        found = (path for path in self.conf.rglob("*") if path.is_file())
        return {str(path.relative_to(self.conf)): path.read_text() for path in found}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)

    def says_yes(text: Callable[[int], str], question: str) -> bool:
        made.shown = text(80) + question
        return made.answers()

    def planned(*, added: dict[str, str]) -> SimpleNamespace:
        for file in observer.config_files(added):
            assert b"impossible" not in file.content or refuse()
        return SimpleNamespace(wanted=sorted(added))

    def note(what: str) -> Callable[..., None]:
        return lambda *arguments: made.done.append(" ".join([what, *map(str, arguments)]))

    def set_all(values: Mapping[tuple[str, str], str], beside: Sequence[NewFile]) -> None:
        for each in beside:
            Path(each.path).write_text(each.text)
        made.done.append(f"set {values}")

    monkeypatch.setattr(paths, "CONFIG_FILE", str(made.config))
    monkeypatch.setattr(paths, "CONFIG_DIR", str(made.conf_d))
    monkeypatch.setattr(paths, "LOCK", str(tmp_path / "run/lock"))
    monkeypatch.setattr(observer, "read_roots_own", _bytes)
    monkeypatch.setattr(observer, "server_names", lambda: made.names)
    monkeypatch.setattr(secret_index_file, "read", lambda: made.settings)
    monkeypatch.setattr(tty, "says_yes", says_yes)
    monkeypatch.setattr(planning, "planned", planned)
    monkeypatch.setattr(apply, "check_workspaces", lambda _: [])
    monkeypatch.setattr(apply, "apply", note("apply"))
    monkeypatch.setattr(command, "set_all", set_all)
    monkeypatch.setattr(command, "say_what_is_left", note("say"))
    _read_here(monkeypatch)
    monkeypatch.setattr(command, "read_all", lambda: b"")
    monkeypatch.setattr(os, "isatty", lambda _: False)
    return made


def refuse() -> bool:
    raise UsageError(
        "it cannot be; nothing was changed", where="[mcp_servers.a]", fix="", code="E-FILE-ACCESS"
    )


def _bytes(path: str, *, max_bytes: int) -> bytes:
    return Path(path).read_bytes()[: max_bytes + 1]


_ANSWER_TO = run_as_nobody.answer_to


def _read_here(monkeypatch: pytest.MonkeyPatch, script: str = READ) -> None:
    """Have the proposal parsed by the real program, from this tree and under this account."""

    def answer_to(question: bytes, _: list[str], *, max_bytes: int, timeout_s: float) -> bytes:
        tree = f"import sys; sys.path[:0] = {sys.path!r}; "
        argv = [sys.executable, "-c", tree + script]
        return _ANSWER_TO(question, argv, max_bytes=max_bytes, timeout_s=timeout_s)

    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(run_as_nobody, "answer_to", answer_to)


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[object], None]]:
    def give(what: object) -> None:
        raw = what if isinstance(what, bytes) else json.dumps(what).encode()
        monkeypatch.setattr(command, "read_all", lambda: raw)

    return give  # type: ignore[return-value]


def test_the_shown_proposal_is_written_and_applied(machine: Machine) -> None:
    machine.accept()
    assert machine.files() == {"config.toml": "", "conf.d/a.toml": TEXT}
    assert machine.done == [f"apply {RetirementPolicy.KEEP}"]
    assert all(line.strip() in machine.shown for line in TEXT.splitlines())
    assert "a: alice alone" in machine.shown
    machine.accept()  # it exists, as after an interrupted run, and is applied
    assert machine.done == [f"apply {RetirementPolicy.KEEP}"] * 2


def test_secrets_are_set_before_the_proposal_is_applied(
    machine: Machine, given: Callable[[object], None]
) -> None:
    set_before = SecretVersion(version=1, is_set=True, changed_at="")
    machine.settings = SecretIndex(by_server={"a": {"T": set_before}})
    given({"a": {"T": "hidden"}})
    machine.accept()
    assert machine.done == [
        "set {('a', 'T'): 'hidden'}",
        f"apply {RetirementPolicy.KEEP}",
        "say a T",
    ]
    assert "a T: given, replaces the one that is set" in machine.shown
    assert "a U: MISSING, to be set by `sudo mcpwrap secret set a U`" in machine.shown
    assert "hidden" not in machine.shown
    given({"a": {"U": "hidden"}})
    machine.accept()
    assert "a T: stays as it was set before\n  a U: given\n" in machine.shown


def test_where_a_secret_cannot_be_sealed_its_server_is_not_defined_either(
    machine: Machine, given: Callable[[object], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise McpwrapError("no TPM; nothing was changed", where="", fix="", code="E-FILE-ACCESS")

    given({"a": {"T": "hidden"}})
    with monkeypatch.context() as during:
        during.setattr(command, "set_all", fails)
        machine.expect_refused("no TPM")
    machine.accept()  # the twin
    assert "conf.d/a.toml" in machine.files()


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ({"a": {"V": "hidden"}}, "does not refer to a secret 'V' of 'a'"),
        ({"b": {"T": "hidden"}}, "does not refer to a secret 'T' of 'b'"),
        ({"a": {"T": ""}}, "the value of T cannot be used: empty"),
        ({"a": {"T": "x" * 40_000}}, "the value of T cannot be used: 40000 bytes"),
        ({"a": "hidden"}, "is not of the form"),
        (["hidden"], "is not of the form"),
        (b"hidden", "is not of the form"),
        (b'{"a": {"T": "\xff"}}', "is not of the form"),
        (b'{"a": {"T": "\\ud800"}}', "is not of the form"),
    ],
)
def test_invalid_secrets_are_refused_before_the_question(
    machine: Machine, given: Callable[[object], None], raw: object, why: str
) -> None:
    given(raw)
    assert "hidden" not in machine.expect_refused(why)
    assert machine.shown == ""


def test_a_terminal_and_an_empty_input_are_no_secrets(
    machine: Machine, given: Callable[[object], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    given(b" \n")
    machine.accept()
    given(b"not read")
    monkeypatch.setattr(os, "isatty", lambda fd: fd == 0)
    machine.accept()
    assert machine.done == [f"apply {RetirementPolicy.KEEP}"] * 2


def test_without_a_yes_nothing_is_done(machine: Machine) -> None:
    machine.answers = lambda: False
    machine.expect_refused("not confirmed with `yes`; nothing was changed")


def test_a_proposal_that_changed_is_refused(machine: Machine) -> None:
    digest = machine.propose()
    machine.propose(ONE + " ")
    with pytest.raises(UsageError, match="is not the proposal that this command was printed for"):
        accept(digest, str(machine.proposal), by="")
    assert (machine.shown, machine.done) == ("", [])


def test_a_proposal_that_changes_while_a_person_reads_is_not_used(machine: Machine) -> None:
    def answer() -> bool:
        machine.propose(ONE.replace("/x", "/evil"))
        return True

    machine.answers = answer
    machine.accept()
    assert machine.files()["conf.d/a.toml"] == TEXT


@pytest.mark.parametrize("digest", ["", "0" * 63, "0" * 65, "A" * 64, "\x1b[2J", "0" * 64 + "\n"])
def test_a_malformed_digest_is_refused(machine: Machine, digest: str) -> None:
    machine.propose()
    with pytest.raises(UsageError, match="is not a SHA-256; nothing was changed") as error:
        accept(digest, str(machine.proposal), by="")
    assert "\x1b" not in str(error.value)


def test_a_proposal_of_over_1_mib_is_refused(machine: Machine) -> None:
    machine.expect_refused("over 1 MiB; nothing was changed", ONE + "#" * 1024 * 1024)


def test_the_readers_problems_are_marked(machine: Machine) -> None:
    said = machine.expect_refused("is not a valid proposal", "[mcp_servers.a]\n[approvals]\n")
    assert "\n  | the proposal, [mcp_servers.a]: needs exactly one of `command`, `url`" in said
    assert "\n  |   fix: write `command" in said
    assert said.splitlines()[-1].startswith("  fix: propose it again")


@pytest.mark.parametrize(
    ("says", "why"),
    [
        ("{}", "returned malformed output"),
        ("", "returned malformed output"),
        ('{"text_by_name": {}}', "no server, or too many"),
        ('{"text_by_name": {"a": "\\u001b[2J"}}', "characters that are not valid in a name"),
        (
            '{"text_by_name": {"a": "[approvals]\\nsame_uid = true\\n"}}',
            "a text that is not one server",
        ),
    ],
)
def test_a_compromised_reader_writes_nothing(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, says: str, why: str
) -> None:
    if says == "{}":
        says = "{}x"
    _read_here(monkeypatch, f"import os; os.write(1, {says.encode()!r})")
    machine.expect_refused(why)
    assert machine.shown == ""


def test_a_name_that_is_there_is_not_taken_over(machine: Machine) -> None:
    other = machine.conf_d / "other.toml"
    other.write_text(TEXT)  # the same server, but in a file of root's
    machine.expect_refused(rf"have these names: a \(in {other}\); nothing was changed")
    other.unlink()
    own = machine.conf_d / "a.toml"
    for text in (TEXT.replace("/x", "/y"), "# nothing\n"):
        own.write_text(text)
        machine.expect_refused(rf"have these names: a \(in {own}\); nothing was changed")
    own.unlink()
    machine.config.write_text("x = 1\n")
    machine.expect_refused("no such setting")


def test_a_file_that_appears_while_a_person_reads_counts(machine: Machine) -> None:
    other = machine.conf_d / "other.toml"
    machine.answers = lambda: bool(other.write_text(TEXT))
    with pytest.raises(UsageError, match=r"have these names: a \(in .*; nothing was changed"):
        machine.accept()
    assert machine.done == []
    assert machine.files() == {"config.toml": "", "conf.d/other.toml": TEXT}


def test_an_impossible_proposal_is_refused_before_the_question(machine: Machine) -> None:
    machine.expect_refused("it cannot be", ONE.replace("/x", "/impossible"))
    assert machine.shown == ""


def test_a_machine_without_a_configuration_gets_one(machine: Machine) -> None:
    machine.config.unlink()
    machine.accept()
    assert machine.files().keys() == {"config.toml", "conf.d/a.toml"}
    assert machine.config.read_text().startswith("# The MCP servers of this machine")


def test_a_machine_that_has_lost_its_configuration_gets_none(machine: Machine) -> None:
    """A new configuration would retire all its servers."""
    machine.config.unlink()
    machine.names = ["theirs"]
    machine.expect_refused("no such file; nothing was changed")


def test_another_run_is_not_waited_for_long(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "_TIMEOUT_S", 0)

    def answer() -> bool:
        stack.enter_context(only_one())
        return True

    with ExitStack() as stack:
        machine.answers = answer
        machine.expect_refused("is running; nothing was changed")


@pytest.mark.parametrize(
    ("by", "said"),
    [
        ("alice", "a: alice alone"),
        ("bob", "a: NOT bob ALONE: not bob, but alice"),
        ("", "a: alice\n"),
        ("root", "a: alice\n"),
        ("\x1b[2J", "a: alice\n"),
    ],
)
def test_who_called_sudo_is_named_if_it_can_be_an_agent(
    machine: Machine, by: str, said: str
) -> None:
    machine.accept(by=by)
    assert said in machine.shown


class TestRootsProgram:
    """Arguments and input of root's program."""

    @pytest.fixture(autouse=True)
    def as_root(self, monkeypatch: pytest.MonkeyPatch, machine: Machine) -> None:
        here = Path.cwd()
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        monkeypatch.setattr(os, "umask", lambda _: 0o022)
        monkeypatch.setattr(os, "chdir", lambda _: here)
        monkeypatch.setattr(prctl, "forbid_dumps", lambda: None)
        machine.done = []

    def run(self, monkeypatch: pytest.MonkeyPatch, *argv: str) -> int:
        monkeypatch.setattr(sys, "argv", ["mcpwrap-root", *argv])
        return main.main()

    @pytest.mark.parametrize("by", [[], [""], ["alice"]])
    def test_with_and_without_who_called(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch, by: list[str]
    ) -> None:
        called: list[object] = []
        monkeypatch.setattr(module, "accept", lambda *a, by: called.append((*a, by)))
        assert self.run(monkeypatch, "accept", "digest", "/file", *by) == 0
        assert called == [("digest", "/file", "".join(by))]

    @pytest.mark.parametrize("rest", [[], ["x"], ["x", "y", "z", "more"]])
    def test_with_other_arguments(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], rest: list[str]
    ) -> None:
        assert self.run(monkeypatch, "accept", *rest) == 2
        assert "only the command `mcpwrap` starts" in capsys.readouterr().err

    def test_errors_escape_hostile_names(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert self.run(monkeypatch, "accept", "0" * 64, "/nowhere/\x1b[2J\u202e") == 2
        err = capsys.readouterr().err
        assert "no such file; nothing was changed" in err
        assert all(line.isprintable() for line in err.splitlines())
