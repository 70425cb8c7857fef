"""A server has its secret, its agent uses it, and nobody but root and that server sees it."""

import base64
import json
import secrets
import urllib.parse
from collections.abc import Iterator

import pytest

from tests.system import vault
from tests.system.bed.machine import Machine
from tests.system.bed.session import Session
from tests.system.vault import DECOY, FILE, KEY, OTHERS, TOKEN

# The redactor alone, without the gate, which passes on nothing but messages.
STRAIGHT = """
[mcp_servers.straight]
command = "/usr/bin/python3"
args = ["/opt/probe.py"]
env = { TOKEN = "${TOKEN}", FILE = "${FILE}" }
[mcp_servers.straight.mcpwrap]
agents = ["alice"]
secret_files = ["FILE"]
relay = "direct"
"""


@pytest.fixture(scope="module")
def vault_machine(suite: str) -> Iterator[Machine]:
    with vault.booted(suite) as machine:
        machine.configure(vault.CONFIG + STRAIGHT)
        machine.apply()
        vault.put(machine, "straight", "TOKEN", TOKEN)
        vault.put(machine, "straight", "FILE", FILE)
        yield machine


@pytest.fixture
def machine(vault_machine: Machine) -> Iterator[Machine]:
    yield vault_machine
    assert vault_machine.unannounced() == []


def the_pid(machine: Machine, name: str) -> int:
    """Return the process of the one session's server: the redactor has no such environment."""
    found = [
        pid
        for pid in machine.pids(name)
        if "TMPDIR=" in machine.as_root(f"cat /proc/{pid}/environ").out
    ]
    (pid,) = found
    return pid


def test_the_server_has_the_value_itself(machine: Machine) -> None:
    with machine.session("vault") as session:
        assert vault.has(session, TOKEN)
        environ = machine.as_root(f"cat /proc/{the_pid(machine, 'vault')}/environ").out.split("\0")
        assert f"TOKEN={TOKEN}" in environ
        assert f"URL=https://host/?key={KEY}" in environ
    with machine.session("other") as session:  # its own of that name
        assert (vault.has(session, OTHERS), vault.has(session, TOKEN)) == (True, False)


def test_a_real_server_says_its_environment_without_the_value(machine: Machine) -> None:
    env = json.loads(machine.call_tool("everything", "get-env"))
    assert env["TOKEN"] == "[redacted TOKEN]"
    with machine.session("everything") as session:
        session.initialize()
        environ = machine.as_root(f"cat /proc/{the_pid(machine, 'everything')}/environ").out
        assert f"TOKEN={TOKEN}" in environ.split("\0")


# How a server may write it. Run by the server, with its variable for `it`, and by the test.
FORMS = {
    "plain": "it",
    "JSON": "json.dumps(it)",
    "JSON as it is": "json.dumps(it, ensure_ascii=False)",
    "JSON in JSON": "json.dumps(json.dumps(it))",
    "base64": "base64.b64encode(it.encode()).decode()",
    "base64 after 1": "base64.b64encode(b'x' + it.encode()).decode()",
    "base64 after 2": "base64.b64encode(b'xx' + it.encode()).decode()",
    "base64 for URLs": "base64.urlsafe_b64encode(it.encode()).decode()",
    "hexadecimal": "it.encode().hex()",
    "HEXADECIMAL": "it.encode().hex().upper()",
    "URL": "urllib.parse.quote(it)",
    "part of a URL": "urllib.parse.quote(it, safe='')",
    "form": "urllib.parse.quote_plus(it)",
}
SAY = """
import base64, json, os, urllib.parse
it = os.environ["TOKEN"]
said = ({form}).encode() + b"\\n"
for fd in (1, 2):
    os.write(fd, b"whole " + said)
    for number in b"cut " + said:
        os.write(fd, bytes([number]))
"""


def lines_said(machine: Machine, form: str) -> list[str]:
    """Return what arrives at the agent: on stdout whole and cut, and the same on stderr."""
    with machine.session("straight") as session:
        session.ask(SAY.format(form=form))
        lines = [session.read_line(), session.read_line()]
        assert session.told() is None
        return lines + session.close()[1].splitlines()


def expected(form: str) -> str:
    """Return what the server writes."""
    names = {"it": TOKEN, "base64": base64, "json": json, "urllib": urllib}
    return str(eval(form, names))


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_what_a_server_writes_has_no_value_in_it(machine: Machine, form: str) -> None:
    written = expected(form)
    lines = lines_said(machine, form)
    assert [line.split(" ")[0] for line in lines] == ["whole", "cut"] * 2
    for line in lines:
        assert "[redacted TOKEN]" in line
        assert not [at for at in range(len(written) - 7) if written[at : at + 8] in line]


def test_the_redactor_is_what_takes_it_out(machine: Machine) -> None:
    """Without it each form arrives as it was written: so each was really said."""
    check = "        if not self._marker_by_form:\n            return chunk\n"
    with machine.patched("core/redact", check, "        return chunk\n"):
        for form in FORMS.values():
            written = expected(form)
            assert lines_said(machine, form) == [f"whole {written}", f"cut {written}"] * 2
    assert "[redacted TOKEN]" in lines_said(machine, "it")[0]


def test_nobody_finds_the_value_but_root(machine: Machine) -> None:
    """One search for all who could look. It finds the decoy wherever that is, and for root more."""
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
        asked = vault.question(machine, *wanted)
        machine.as_root("install -m 644 /dev/stdin /tmp/asked", stdin=asked)
        as_other = "systemd-run --quiet --wait --pipe --uid=mcpw-other --gid=mcpw-other"
        by_account = machine.as_root(f"{as_other} python3 /opt/search.py </tmp/asked").out
        run = f"import runpy; result = runpy.run_path('/opt/search.py')['main'](*{asked})"
        by_server = other.evaluate(run)
    for found in (by_alice, json.loads(by_account), by_server):
        assert found[:3] == [[], [], []]
        assert "/opt/decoy" in found[3]
    environ = [f"/proc/{pid}/environ"]
    assert by_root[:2] == [environ, environ]
    assert by_root[2]  # the file of its session, in the place that it alone sees
    assert all(place.startswith("/proc/") and "/secrets/FILE" in place for place in by_root[2])
    journal = [place for place in by_root[3] if place.startswith("journalctl ")]
    assert journal  # so it is searched
    assert "/opt/decoy" in by_root[3]
    for value in (TOKEN, KEY, FILE.splitlines()[1]):
        assert value not in said


KEEP_OUT = """
import os
def attempt(path):
    try:
        os.close(os.open(path, os.O_RDONLY))
        return "opened"
    except OSError as error:
        return os.strerror(error.errno)
result = [attempt(path) for path in {paths!r}]
"""


def test_the_keys_to_a_start_are_for_root_alone(machine: Machine) -> None:
    """Not even the server that was started with them gets at them, once it runs."""
    paths = [
        "/run/mcpwrap/mint/vault",
        "/run/mcpwrap/bundle/vault/bundle",
        "/run/credentials/mcpwrap@vault.service/capability",
        "/var/lib/mcpwrap/store.json",
        vault.sealed("vault", "TOKEN"),
    ]
    code = KEEP_OUT.format(paths=paths)
    refusals = {"Permission denied", "No such file or directory"}
    with machine.session("vault") as session, machine.session("other") as other:
        assert set(session.evaluate(code)) <= refusals
        assert set(other.evaluate(code)) <= refusals
    show = f"{code}\nimport json; print(json.dumps(result))"
    assert set(machine.probe(show, user="alice")) == {"Permission denied"}
    assert set(machine.probe(show)) == {"opened"}  # the twin: they are there


def test_a_secret_can_be_a_file_of_its_session(machine: Machine) -> None:
    look = """
import hashlib, os, stat
path = os.environ["FILE"]
info = os.stat(path)
text = open(path).read()
result = [path, stat.filemode(info.st_mode), info.st_uid == os.getuid()]
result += [hashlib.sha256(text.encode()).hexdigest(), text]
os.write(1, text.encode())
"""
    with machine.session("straight") as session:
        session.ask(look)
        assert [session.read_line() for _ in range(3)] == ["[redacted FILE]"] * 3
        path, mode, is_own, found, text = session.told()
        root = f"/proc/{machine.show('mcpwrap@straight', 'MainPID')['MainPID']}/root"
        assert machine.as_root(f"cat {root}{path}").out == FILE  # while it runs
    assert path.startswith("/run/mcpwrap/rt/straight/")
    assert (mode, is_own) == ("-r--------", True)
    assert found == vault.digest(FILE)
    assert text == "[redacted FILE]\n"  # in one line of JSON it is one value
    machine.await_end_of("straight")
    assert machine.as_root(f"find {root}/run/mcpwrap/rt/straight -type f").out == ""


def rotate(machine: Machine, value: str) -> None:
    out = machine.as_root("mcpwrap secret rotate vault TOKEN", stdin=value).out
    assert "vault: handed over for its next session" in out


def test_a_value_is_rotated_while_its_server_runs(machine: Machine) -> None:
    new = f"new-{secrets.token_hex(16)}"
    vault.stop(machine, "vault")
    with machine.session("vault") as before:
        assert vault.has(before, TOKEN)
        supervisor = machine.show("mcpwrap@vault", "MainPID")
        rotate(machine, new)
        with machine.session("vault") as after:
            assert vault.has(after, new)
            assert vault.has(before, TOKEN)  # it keeps what it was started with
            assert machine.show("mcpwrap@vault", "MainPID") == supervisor
            expect_closed(before)
            left, found = vault.places_of(machine, TOKEN, new)
            assert left == []
            assert len(found) == 1
            assert found[0].endswith("/environ")
    listed = machine.as_root("ls -A /var/lib/mcpwrap/sealed/vault /run/mcpwrap/bundle/vault").out
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
