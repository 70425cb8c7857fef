"""Secrets in use: a server has its own, its agent uses it, and only root and that server see it."""

import base64
import json
import secrets

import pytest

from tests.system.bed.machine import Machine
from tests.system.bed.session import Session
from tests.system.guest.secret_server import FORMS
from tests.system.support import vault
from tests.system.support.tiers import on_each_release, only_in_test_all
from tests.system.support.vault import DECOY, FILE, KEY, OTHERS, TOKEN

STAGE = vault.booted


def the_pid(machine: Machine, name: str) -> int:
    """Return the process of the one session's server: the redactor has no such environment."""
    found = [
        pid for pid in machine.pids(name) if "TMPDIR=" in machine.look(f"cat /proc/{pid}/environ")
    ]
    (pid,) = found
    return pid


@on_each_release("systemd passes the credentials by which it is opened")
def test_the_server_has_the_value_itself(machine: Machine) -> None:
    with machine.session("vault") as session:
        assert vault.has(session, TOKEN)
        environ = machine.look(f"cat /proc/{the_pid(machine, 'vault')}/environ").split("\0")
        assert f"TOKEN={TOKEN}" in environ
        assert f"URL=https://host/?key={KEY}" in environ
    with machine.session("other") as session:  # its own of that name
        assert (vault.has(session, OTHERS), vault.has(session, TOKEN)) == (True, False)


def test_a_real_server_says_its_environment_without_the_value(machine: Machine) -> None:
    env = json.loads(machine.call_tool("everything", "get-env"))
    assert env["TOKEN"] == "[redacted TOKEN]"
    with machine.session("everything") as session:
        session.initialize()
        environ = machine.look(f"cat /proc/{the_pid(machine, 'everything')}/environ")
        assert f"TOKEN={TOKEN}" in environ.split("\0")


def lines_said(machine: Machine, form: str) -> list[str]:
    """Return the data that reaches the agent: on stdout whole and cut, and the same on stderr."""
    with machine.session("straight") as session:
        session.ask(
            f"from tests.system.guest.secret_server import write_token; write_token({form!r})"
        )
        lines = [session.read_line(), session.read_line()]
        assert session.told() is None
        return lines + session.close()[1].splitlines()


@pytest.mark.parametrize("form", FORMS)
def test_what_a_server_writes_has_no_value_in_it(machine: Machine, form: str) -> None:
    written = FORMS[form](TOKEN)
    lines = lines_said(machine, form)
    assert [line.split(" ")[0] for line in lines] == ["whole", "cut"] * 2
    for line in lines:
        assert "[redacted TOKEN]" in line
        assert not [at for at in range(len(written) - 7) if written[at : at + 8] in line]


@only_in_test_all("mutation twin: shows that every form was really written")
def test_the_redactor_is_what_takes_it_out(machine: Machine) -> None:
    """Without it each form arrives as it was written: so each was really sent."""
    check = "        if not self._marker_by_form:\n            return chunk\n"
    with machine.patched("core/secrets/redact", check, "        return chunk\n"):
        for form in FORMS:
            written = FORMS[form](TOKEN)
            assert lines_said(machine, form) == [f"whole {written}", f"cut {written}"] * 2
    assert "[redacted TOKEN]" in lines_said(machine, "plain")[0]


def test_nobody_finds_the_value_but_root(machine: Machine) -> None:
    """One search by each account that could find it: the decoy everywhere; root, more."""
    x = base64.b64encode(b"x" + DECOY.encode()).decode()
    machine.write("/opt/decoy", f"somewhere in the middle {x} of a line\n")
    machine.as_root("logger -t decoy --file /dev/stdin", stdin=DECOY.encode().hex())
    with machine.session("vault") as session, machine.session("other") as other:
        said = str(session.evaluate("import os; result = dict(os.environ)"))
        assert vault.has(session, TOKEN)
        assert vault.has(other, OTHERS)
        pid = the_pid(machine, "vault")
        wanted = (TOKEN, KEY, FILE.splitlines()[1], DECOY)
        by_root = vault.places_of(machine, *wanted)
        by_alice = vault.places_of(machine, *wanted, user="alice")
        by_account = vault.places_by(machine, "mcpw-other", *wanted)
        by_server = other.call("search", "places", *vault.question(machine, *wanted))
    for found in (by_alice, by_account, by_server):
        assert found[:3] == [[], [], []]
        assert "/opt/decoy" in found[3]
    environ = [f"/proc/{pid}/environ"]
    assert by_root[:2] == [environ, environ]
    assert by_root[2]  # the file of its session, in the place that only it sees
    assert all(place.startswith("/proc/") and "/secrets/FILE" in place for place in by_root[2])
    journal = [place for place in by_root[3] if place.startswith("journalctl ")]
    assert journal  # so it is searched
    assert "/opt/decoy" in by_root[3]
    for value in (TOKEN, KEY, FILE.splitlines()[1]):
        assert value not in said


def test_the_keys_to_a_start_are_for_root_alone(machine: Machine) -> None:
    """Not even the server that was started with them can read them, once it runs."""
    paths = [
        "/run/mcpwrap/mint/vault",
        "/run/mcpwrap/bundle/vault/bundle",
        "/run/credentials/mcpwrap@vault.service/capability",
        "/var/lib/mcpwrap/store.json",
        vault.sealed("vault", "TOKEN"),
    ]
    refusals = {"Permission denied", "No such file or directory"}
    with machine.session("vault") as session, machine.session("other") as other:
        assert set(session.call("secret_server", "opened", paths)) <= refusals
        assert set(other.call("secret_server", "opened", paths)) <= refusals
        by_alice = machine.call("secret_server", "opened", paths, user="alice")
        assert set(by_alice) == {"Permission denied"}
        # The twin: they are there.
        assert set(machine.call("secret_server", "opened", paths)) == {"opened"}


def test_a_secret_can_be_a_file_of_its_session(machine: Machine) -> None:
    look = "from tests.system.guest.secret_server import write_file; result = write_file()"
    with machine.session("straight") as session:
        session.ask(look)
        assert [session.read_line() for _ in range(3)] == ["[redacted FILE]"] * 3
        path, mode, is_own, found, text = session.told()
        root = f"/proc/{machine.show('mcpwrap@straight', 'MainPID')['MainPID']}/root"
        assert machine.look(f"cat {root}{path}") == FILE  # while it runs
    assert path.startswith("/run/mcpwrap/rt/straight/")
    assert (mode, is_own) == ("-r--------", True)
    assert found == vault.digest(FILE)
    assert text == "[redacted FILE]\n"  # in one line of JSON it is one value
    machine.await_end_of("straight")
    assert machine.look(f"find {root}/run/mcpwrap/rt/straight -type f") == ""


def rotate(machine: Machine, value: str) -> None:
    out = machine.as_root("mcpwrap secret rotate vault TOKEN", stdin=value).out
    assert "vault: passed to the wrapper for its next sessions" in out


def test_a_value_is_rotated_while_its_server_runs(machine: Machine) -> None:
    new = f"new-{secrets.token_hex(16)}"
    vault.stop(machine, "vault")
    with machine.session("vault") as before:
        assert vault.has(before, TOKEN)
        supervisor = machine.show("mcpwrap@vault", "MainPID")
        rotate(machine, new)
        with machine.session("vault") as after:
            assert vault.has(after, new)
            assert vault.has(before, TOKEN)  # it keeps the value that it was started with
            assert machine.show("mcpwrap@vault", "MainPID") == supervisor
            expect_closed(before)
            left, found = vault.places_of(machine, TOKEN, new)
            assert left == []
            assert len(found) == 1
            assert found[0].endswith("/environ")
    listed = machine.look("ls -A /var/lib/mcpwrap/sealed/vault /run/mcpwrap/bundle/vault")
    assert sorted(word for word in listed.split() if ":" not in word) == [
        "FILE.sealed",
        "KEY.sealed",
        "TOKEN.sealed",
        "bundle",
    ]
    rotate(machine, TOKEN)
    with machine.session("vault") as again:
        assert vault.has(again, TOKEN)


def expect_closed(session: Session) -> None:
    assert session.close() == (0, "")
