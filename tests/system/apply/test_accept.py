"""Acceptance of a proposal: root takes the servers that a person has read, and no others."""

import hashlib
import json
import re
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.system.bed.machine import Machine
from tests.system.guest import search
from tests.system.support import emptied, vault
from tests.system.support.emptied import CONF_D
from tests.system.support.kill_at_syscall import ROOTS_PROGRAM, STRACE
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

STAGE = emptied.booted

TOKEN = f"tok-{secrets.token_hex(16)}"
FILE = "/home/alice/.local/state/mcpwrap/proposal.toml"
PROBED = """
[mcp_servers.probed]
command = "/usr/bin/python3"
args = ["/opt/probe.py"]
env = { TOKEN = "${TOKEN}" }

[mcp_servers.probed.mcpwrap]
agents = ["alice"]
"""
ENDLESS = f"[{'a.' * 989}a]\n" + "".join(f"{'a.' * 500}b{n}=1\n" for n in range(1000))
SHOWN = """\
    [mcp_servers.probed]
    command = "/usr/bin/python3"
    args = ["/opt/probe.py"]
    env.TOKEN = "${TOKEN}"

    [mcp_servers.probed.mcpwrap]
    agents = ["alice"]
    egress = []
    workspace = []
"""
GIVEN = json.dumps({"probed": {"TOKEN": TOKEN}})
QUESTION = "Type yes or no: "
KIND = only_in_test_all("refused by the same comparison as a row beside it")
SLOW = only_in_test_all("waits for 10 s until root gives up")


@dataclass(frozen=True)
class Accepted:
    """Result of an `accept`: text at root's terminal, and the command's output."""

    status: int
    seen: str
    out: str
    err: str


@pytest.fixture
def machine(machine: Machine) -> Machine:
    """Lend the machine without a server of an earlier story."""
    emptied.empty(machine)
    return machine


def propose(machine: Machine, text: str) -> str:
    """Write a proposal as alice does, and return its SHA-256."""
    file = machine.path(FILE)
    if not file.parent.exists():
        machine.as_user("alice", f"umask 077; mkdir -p {Path(FILE).parent}")
    file.write_text(text)
    file.chmod(0o600)
    shutil.chown(file, *[machine.uid_of("alice")] * 2)
    return hashlib.sha256(text.encode()).hexdigest()


def accept(machine: Machine, digest: str, file: str = FILE, **how: Any) -> Accepted:
    """Have root type the command at a terminal, and answer `yes` unless told otherwise."""
    usual = {"given": "", "early": "", "answer": "yes\n", "meanwhile": "", "question": QUESTION}
    plan = {"command": f"mcpwrap accept {digest} {file}", **usual, **how}
    return Accepted(*machine.call("root_terminal", "answer", plan))


def state(machine: Machine) -> str:
    """Return root's whole state."""
    return machine.look(
        "cd /; find etc/mcpwrap var/lib/mcpwrap -type f ! -name audit.json | sort | xargs sha256sum"
    )


def expect_refused(
    machine: Machine, digest: str, why: str, status: int = 2, **how: Any
) -> Accepted:
    """Answer `yes` if asked; nothing is changed, and the output gives the reason."""
    before = state(machine)
    done = accept(machine, digest, **how)
    assert (done.status, done.out) == (status, ""), done
    assert re.search(why, done.err), done.err
    assert "nothing was changed" in done.err
    assert re.search(r"\n  fix: .", done.err)
    assert state(machine) == before
    return done


# ---------------------------------------------------------------------------------- accepted
def test_what_was_read_is_accepted_and_its_server_works(machine: Machine) -> None:
    """On a machine without a configuration; with its secret, which does not appear."""
    done = accept(machine, propose(machine, PROBED), given=GIVEN)
    assert done.status == 0, done
    seen = done.seen.replace("\r\n", "\n")
    assert f"'{FILE}'\nproposes 1 server, probed." in seen
    assert SHOWN in seen
    assert "Who can use it:\n  probed: alice alone\n" in seen
    assert "Secrets:\n  probed TOKEN: given\n" in seen
    assert "probed: TOKEN is set, version 1\n" in done.out
    assert done.out.endswith("done\n")
    written = machine.read(f"{CONF_D}/probed.toml")
    assert "".join(f"    {line}".rstrip() + "\n" for line in written.splitlines()) == SHOWN
    mode = machine.look(f"stat -c '%a %U %G' {CONF_D}/probed.toml")
    assert mode == "644 root root\n"
    with machine.session("probed") as session:
        assert vault.has(session, TOKEN)
        uid = session.evaluate("import os; result = os.getuid()")
    assert uid == machine.uid_of("mcpw-probed")
    machine.look(f"test -s {vault.sealed('probed', 'TOKEN')}")
    for text in (done.seen, done.out, done.err, written, machine.read(FILE)):
        assert not search.holds(text.encode(), TOKEN)

    again = accept(machine, propose(machine, PROBED))
    assert "probed TOKEN: stays as it was set before" in again.seen
    assert (again.status, again.out) == (0, "nothing to do\n")
    other = accept(machine, propose(machine, PROBED), given=GIVEN)
    assert "probed TOKEN: given, replaces the one that is set" in other.seen
    assert "probed: TOKEN is set, version 2\n" in other.out


@ON_ONE_RELEASE
def test_root_reads_which_variables_an_agent_is_to_choose(machine: Machine) -> None:
    chosen = 'inherits_any = ["KUBECONFIG"]'
    text = PROBED.replace("\n\n", f"\n{chosen}\n\n", 1)
    done = accept(machine, propose(machine, text), given=GIVEN, answer="no\n")
    assert (done.status, done.out) == (1, "")
    seen = done.seen.replace("\r\n", "\n")
    assert f"    {chosen}\n" in seen
    assert "Notes:\n  WIDENED by [mcp_servers.probed] inherits_any: " in seen
    assert (
        "WIDENED" not in accept(machine, propose(machine, PROBED), answer="no\n").seen
    )  # the twin


@ON_ONE_RELEASE
def test_what_is_missing_or_for_others_is_said(machine: Machine) -> None:
    text = PROBED.replace('["alice"]', '["bob"]').replace(
        "[mcp_servers.probed.m", "cwd = '/'\n[mcp_servers.probed.m"
    )
    done = accept(machine, propose(machine, text))
    assert "probed: NOT alice ALONE: not alice, but bob" in done.seen
    assert "probed TOKEN: MISSING, to be set by `sudo mcpwrap secret set probed" in done.seen
    assert done.status == 0
    assert "probed does not start before `sudo mcpwrap secret set probed TOKEN`" in done.out


# ---------------------------------------------------------------------------------- changed
CHANGED = PROBED.replace('"/opt/probe.py"', '"/opt/evil.py"')


@ON_ONE_RELEASE
def test_a_proposal_that_changed_before_root_reads_it_is_refused(machine: Machine) -> None:
    digest = propose(machine, PROBED)
    propose(machine, CHANGED)
    why = "is not the proposal that this command was printed for: it has another SHA-256"
    done = expect_refused(machine, digest, why, given=GIVEN)
    assert done.seen == ""  # root is not asked
    assert not machine.path(f"{CONF_D}/probed.toml").exists()
    propose(machine, PROBED)  # the twin
    assert accept(machine, digest, given=GIVEN).status == 0
    assert "/opt/probe.py" in machine.read(f"{CONF_D}/probed.toml")


@ON_ONE_RELEASE
def test_a_proposal_that_changes_while_root_reads_it_is_not_used(machine: Machine) -> None:
    """The text that root read is the text that is applied."""
    digest = propose(machine, PROBED)
    changed = f"sed -i s,/opt/probe.py,/opt/evil.py, {FILE}"
    done = accept(machine, digest, meanwhile=changed)
    assert done.status == 0
    assert "evil" in machine.read(FILE)
    assert "/opt/probe.py" in machine.read(f"{CONF_D}/probed.toml")


@ON_ONE_RELEASE
@only_in_test_all("mutation twin: shows that the story above notices a missing comparison")
def test_without_the_comparison_a_changed_one_would_be_accepted(machine: Machine) -> None:
    digest = propose(machine, PROBED)
    propose(machine, CHANGED)
    compared = "if hashlib.sha256(raw).hexdigest() != digest:"
    with machine.patched("as_root/apply/proposal_intake", compared, "if False:"):
        assert accept(machine, digest).status == 0
    assert "evil" in machine.read(f"{CONF_D}/probed.toml")


# --------------------------------------------------------------------------------- answer
@ON_ONE_RELEASE
def test_without_a_terminal_nobody_is_asked(machine: Machine) -> None:
    digest = propose(machine, PROBED)
    before = state(machine)
    for given in ("", "yes\n"):
        command = f"mcpwrap accept {digest} {FILE}"
        stdin, status = given, 2
        err = machine.as_root(command, stdin=stdin, status=status).err
        why = "the process has no terminal" if not given else "is not of the form"
        assert f"{why}" in err
        assert "nothing was changed" in err
    assert state(machine) == before


@ON_ONE_RELEASE
@pytest.mark.parametrize(
    "answer",
    [
        "no\n",
        pytest.param("\n", marks=KIND),
        "y\n",
        pytest.param("YES\n", marks=KIND),
        pytest.param("yes please\n", marks=KIND),
        "\x04",
        pytest.param("\x03", marks=KIND),
    ],
    ids=["no", "nothing", "y", "YES", "more", "end", "interrupt"],
)
def test_whoever_does_not_type_yes_changes_nothing(machine: Machine, answer: str) -> None:
    digest = propose(machine, PROBED)
    done = expect_refused(machine, digest, "was not confirmed", 1, answer=answer, given=GIVEN)
    assert SHOWN.splitlines()[0] in done.seen


FLUSHED = "termios.tcflush(terminal.fileno(), termios.TCIFLUSH)"


@ON_ONE_RELEASE
def test_what_was_typed_before_the_question_is_no_answer(machine: Machine) -> None:
    digest = propose(machine, PROBED)
    expect_refused(machine, digest, "was not confirmed", 1, early="yes\n", answer="no\n")
    with machine.patched("linux/tty", FLUSHED, "pass"):
        assert accept(machine, digest, early="yes\n", answer="no\n").status == 0


@ON_ONE_RELEASE
def test_while_a_person_reads_nobody_waits_and_what_others_do_counts(machine: Machine) -> None:
    digest = propose(machine, PROBED)
    machine.configure("")
    other = f"printf '[mcp_servers.probed]\\ncommand = \"/bin/true\"\\n' > {CONF_D}/a.toml"
    done = accept(machine, digest, meanwhile=f"{other}; mcpwrap apply")
    assert done.status == 2
    assert f"other servers have these names: probed (in {CONF_D}/a.toml)" in done.err
    assert "nothing was changed" in done.err
    assert not machine.path(f"{CONF_D}/probed.toml").exists()


# ---------------------------------------------------------------------------------- child
TOLD_BY_THE_CHILD = """    import sys
    sys.path.insert(0, "/opt/bed")
    from tests.system.guest import confined
    raise SystemExit("told " + confined.told(close_behind))
"""


def test_what_is_proposed_is_read_by_nobody(machine: Machine) -> None:
    """The program reports its identity, and its abilities once it is confined."""
    digest = propose(machine, PROBED)
    shut = "    close_behind()\n    answer"
    with machine.patched("as_nobody/proposal_reader", shut, f"{TOLD_BY_THE_CHILD}    answer"):
        done = accept(machine, digest)
    assert done.status == 1
    found = re.search(r"ended with status 1 \(told (.*)\); nothing was changed", done.err)
    assert found, done.err
    uid, gid, groups, is_leader, environ, open_count, attacks = json.loads(found[1])
    nobody = machine.uid_of("nobody")
    assert (uid, gid, groups, is_leader) == ([nobody] * 3, [65534] * 3, [], True)
    assert (environ, open_count) == (["LANG"], 3)
    assert attacks == [1] * 9


@ON_ONE_RELEASE
@pytest.mark.parametrize(
    ("says", "why"),
    [
        pytest.param(
            'ProposalAnswer(text_by_name={"a": "\\x1b[2J"})',
            "characters that are not valid in a name",
            marks=KIND,
        ),
        pytest.param(
            'ProposalAnswer(text_by_name={"../a": "x = 1"})',
            "characters that are not valid in a name",
            marks=KIND,
        ),
        (
            'ProposalAnswer(text_by_name={"a": "[approvals]\\nsame_uid = true\\n"})',
            "a text that is not one server",
        ),
        pytest.param("ProposalAnswer()", "no server, or too many", marks=KIND),
        pytest.param(
            'ProposalAnswer(wrong="\\x1b[2J\\u202e\\n  fix: do")',
            r"\| \\x1b\[2J\\u202e\n  \|   fix: do\n  fix",
            marks=KIND,
        ),
        pytest.param('ProposalAnswer(wrong="x" * 300_000)', "ended with status ", marks=KIND),
        pytest.param('__import__("time").sleep(60)', "did not end within 10 s", marks=SLOW),
        pytest.param("os._exit(0)", "returned malformed output", marks=KIND),
        ("os.abort()", "ended with status -"),
    ],
    ids=["escapes", "a path", "approvals", "none", "wrong", "much", "late", "silent", "dead"],
)
def test_a_program_that_was_taken_over_gains_nothing(machine: Machine, says: str, why: str) -> None:
    digest = propose(machine, PROBED)
    before = state(machine)
    with machine.patched("as_nobody/proposal_reader", "reading(memfd.read_all(0))", says):
        done = accept(machine, digest)
    assert done.status in {1, 2}
    assert re.search(why, done.err), done.err
    assert "nothing was changed" in done.err
    assert all(line.isprintable() for line in done.err.splitlines())
    assert (done.seen, state(machine)) == ("", before)


# ------------------------------------------------------------------------------- hostile files
HOSTILE = """
[mcp_servers.probed]
command = "/usr/bin/python3"
args = ["\\u001b[2J\\u001b]0;owned\\u0007", "\\u202e\\u2066\\u200b", "p\\u0430yp\\u0430l", "\\r\\b"]
env = { A = "                                                                workspace = []" }

[mcp_servers.probed.mcpwrap]
agents = ["alice", "bob", "@mcpwrap"]
"""


@ON_ONE_RELEASE
@pytest.mark.parametrize(
    "columns", [pytest.param(0, marks=KIND), 40, *(pytest.param(n, marks=KIND) for n in (80, 132))]
)
def test_nothing_that_is_shown_acts_or_looks_like_something_else(
    machine: Machine, columns: int
) -> None:
    digest = propose(machine, HOSTILE)
    command = f"sh -c 'stty -F /dev/tty cols {columns}; exec mcpwrap accept {digest} {FILE}'"
    done = expect_refused(machine, digest, "was not confirmed", 1, answer="no\n", command=command)
    text = done.seen.replace("\r\n", "\n")
    assert re.fullmatch(r"[\n -~]*", text)
    assert r"\u001B[2J" in text.replace("\n  > ", "")
    assert r"p\u0430yp\u0430l" in text.replace("\n  > ", "")
    assert "probed: NOT alice ALONE: alice, and also bob" in text.replace("\n  > ", "")
    assert sum(line.strip() == "workspace = []" for line in text.splitlines()) == 1


OF_ANOTHER = """
[mcp_servers.b]
command = "/x"
[mcp_servers.b.mcpwrap]
agents = ["bob"]
workspace = ["/home/alice/.local:rw"]
"""
LONG = f"""
[mcp_servers.b]
command = "/x"
args = ["{"x" * 32_000}", "{"y" * 32_000}", "{"z" * 2000}"]
"""


@ON_ONE_RELEASE
@pytest.mark.parametrize(
    ("more", "why"),
    [
        pytest.param(
            "[egress]\nparent = '10.0.0.1:3128'",
            r"\[egress\]: cannot be proposed",
            marks=KIND,
        ),
        ("[approvals]\nsame_uid = true", r"\[approvals\]: cannot be proposed"),
        pytest.param("[other]", "other: no such setting", marks=KIND),
        ("[mcp_servers.'../x']\ncommand = '/x'", "is not a valid server name"),
        ("[mcp_servers.b", "not TOML"),
        ("[mcp_servers.b]\ncommand = '/x'\nargs = ['\x1b[2J\u202e${X}']", "not TOML"),
        pytest.param(
            "[mcp_servers.b]\ncommand = '\u202e\u0430'", r"is not an absolute path", marks=KIND
        ),
        pytest.param(
            "[mcp_servers.b]\n'\u202e\\n' = 1\ncommand = '/x'", "no such setting", marks=KIND
        ),
        (LONG, "characters for a person to read"),
        pytest.param(f"{'a.' * 300_000}a = 1", "nested too deeply", marks=KIND),
        # It takes tomli four times as long.
        pytest.param(ENDLESS, "did not end within 10 s", marks=SLOW),
        pytest.param("#" * 1024 * 1024, "is over 1 MiB", marks=KIND),
        pytest.param(
            "[mcp_servers.b]\ncommand = '/x'\nworkspace = 1",
            "workspace: no such setting",
            marks=KIND,
        ),
        (OF_ANOTHER, "belongs to alice, which is not an agent"),
        ("[mcp_servers.b]\ncommand = '/home/bob/\\x'", "no server can see a home"),
        pytest.param(
            "[mcp_servers.b]\ncommand = '/home/alice/fifo'",
            "no server can see a home",
            marks=KIND,
        ),
        ("[mcp_servers.b]\ncommand = '/x'\nenv.T = '${T}'", "would share this server's secrets"),
    ],
    ids=["egress", "approvals", "table", "name", "syntax", "escapes", "bidi", "key", "long",
         "deep", "endless", "large", "setting", "another's", "home", "fifo", "shared"],
)  # fmt: skip
def test_what_cannot_be_proposed_is_refused(machine: Machine, more: str, why: str) -> None:
    machine.as_user("alice", "test -p fifo || mkfifo fifo")
    digest = propose(machine, f"{PROBED}\n{more}\n")
    before = state(machine)
    done = accept(machine, digest)
    assert done.status in {1, 2}
    assert re.search(why, done.err), done.err
    assert "nothing was changed" in done.err
    assert all(line.isprintable() for line in done.err.splitlines())
    assert (done.seen, state(machine)) == ("", before)


@ON_ONE_RELEASE
@pytest.mark.parametrize(
    ("make", "why"),
    [
        ("mkfifo odd", "is not a plain file"),
        pytest.param("ln -s /dev/zero odd", "cannot be opened: Too many levels", marks=KIND),
        (f"ln -s {FILE} odd", "cannot be opened: Too many levels"),
        pytest.param("mkdir odd", "is not a plain file", marks=KIND),
        pytest.param("ln -s odd odd", "cannot be opened: Too many levels", marks=KIND),
        pytest.param("true", "no such file", marks=KIND),
        ("truncate -s 1T odd", "is over 1 MiB"),
        pytest.param("printf 'x = 1' > odd", "has another SHA-256", marks=KIND),
    ],
)
def test_a_file_that_is_none_is_refused_at_once(machine: Machine, make: str, why: str) -> None:
    digest = propose(machine, PROBED)
    machine.as_user("alice", f"rm -rf odd; {make}")
    expect_refused(machine, digest, why, file="/home/alice/odd")


@ON_ONE_RELEASE
@only_in_test_all("second-order: the story above has a pipe and a file that is too large")
def test_a_device_or_a_file_that_grows_for_ever_is_refused(machine: Machine) -> None:
    digest = propose(machine, PROBED)
    expect_refused(machine, digest, "is not a plain file", file="/dev/zero")
    odd = "/home/alice/odd"
    machine.as_root(f"rm -rf {odd}")
    grows = f"while head -c 65536 /dev/zero; do :; done >{odd}"
    machine.as_root(f"systemd-run -q --uid=alice --unit=grows sh -c '{grows}'")
    try:
        machine.look(f"until test $(stat -c %s {odd}) -gt 2000000; do :; done 2>/dev/null")
        expect_refused(machine, digest, "is over 1 MiB", file=odd)
    finally:
        machine.as_root(f"systemctl stop grows; rm {odd}")


@ON_ONE_RELEASE
@pytest.mark.parametrize(
    ("given", "why"),
    [
        (
            '{"probed": {"OTHER": "hidden"}}',
            "the proposal does not refer to a secret 'OTHER' of 'probed'",
        ),
        pytest.param(
            '{"other": {"TOKEN": "hidden"}}',
            "the proposal does not refer to a secret 'TOKEN' of 'other'",
            marks=KIND,
        ),
        pytest.param(
            '{"probed": {"TOKEN": ""}}', "the value of TOKEN cannot be used: empty", marks=KIND
        ),
        pytest.param('{"probed": "hidden"}', "is not of the form", marks=KIND),
        ("hidden", "is not of the form"),
    ],
    ids=["another key", "another server", "empty", "form", "no JSON"],
)
def test_secrets_of_which_nothing_was_said_are_refused(
    machine: Machine, given: str, why: str
) -> None:
    done = expect_refused(machine, propose(machine, PROBED), why, given=given)
    assert "hidden" not in done.err + done.seen


@ON_ONE_RELEASE
def test_a_name_that_is_there_already_is_not_taken_over(machine: Machine) -> None:
    theirs = '[mcp_servers.probed]\ncommand = "/bin/true"\n'
    digest = propose(machine, PROBED)
    for file, text in (("other", theirs), ("probed", theirs), ("probed", "# nothing\n")):
        machine.write(f"{CONF_D}/{file}.toml", text)
        why = rf"other servers have these names: probed \(in {CONF_D}/{file}\.toml\)"
        expect_refused(machine, digest, why)
        machine.as_root(f"rm {CONF_D}/{file}.toml")
    machine.write(f"{CONF_D}/broken.toml", "x = 1\n")
    expect_refused(machine, digest, "broken.toml, x: no such setting")
    machine.as_root(f"rm {CONF_D}/broken.toml")
    assert accept(machine, digest).status == 0


@ON_ONE_RELEASE
@pytest.mark.parametrize(
    "digest", [*(pytest.param(text, marks=KIND) for text in ("", "0" * 63, "A" * 64)), "\x1b[2J"]
)
def test_what_is_no_digest_is_refused(machine: Machine, digest: str) -> None:
    propose(machine, PROBED)
    expect_refused(machine, digest, "is not a SHA-256", command=f"mcpwrap accept '{digest}' {FILE}")


@ON_ONE_RELEASE
def test_others_than_root_are_asked_nothing(machine: Machine) -> None:
    digest = propose(machine, PROBED)
    err = machine.as_user("alice", f"mcpwrap accept {digest} {FILE}", status=2).err
    assert "needs root" in err
    assert "sudo mcpwrap accept" in err
    err = machine.as_user("alice", f"{ROOTS_PROGRAM} accept {digest} {FILE}", status=2).err
    assert "only the command `mcpwrap` starts this program, as root" in err


# --------------------------------------------------------------------------------- interrupted
@ON_ONE_RELEASE
@only_in_test_all("a sweep of kill points, of files alone; test_apply.py has one of `apply`")
@pytest.mark.parametrize("completed_by", ["accept", "apply"])
def test_killed_anywhere_a_second_run_completes_it(machine: Machine, completed_by: str) -> None:
    """strace kills root's program at each file that it replaces, before `apply` begins."""
    machine.configure("")
    two = PROBED + PROBED.replace("probed", "second")
    digest = propose(machine, two)
    given = json.dumps({name: {"TOKEN": TOKEN} for name in ("probed", "second")})
    kills = 0
    for number in range(1, 8):
        inject = f"-e trace=rename -e inject=rename:signal=SIGKILL:when={number}"
        command = f"{STRACE} -o /dev/null {inject} {ROOTS_PROGRAM} accept {digest} {FILE}"
        done = accept(machine, digest, given=given, command=command)
        assert done.status == -9, done
        kills += 1
        machine.as_root("mcpwrap check")
        if completed_by == "accept":
            assert accept(machine, digest, given=given).status == 0
            for name in ("probed", "second"):
                with machine.session(name) as session:
                    assert vault.has(session, TOKEN)
        else:
            machine.apply()
            assert machine.as_root("mcpwrap plan").out.startswith("nothing to do\n")
        machine.as_root(f"rm -f {CONF_D}/*; mcpwrap apply --purge")
    assert kills == 7
