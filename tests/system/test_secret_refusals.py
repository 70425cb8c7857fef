"""A secret that is not as root sealed it, for this start of this server, starts no server."""

import json
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.system import vault
from tests.system.bed.machine import Machine
from tests.system.releases import ON_ONE_RELEASE
from tests.system.vault import KEY, OTHERS, TOKEN

pytestmark = ON_ONE_RELEASE

MINE = vault.sealed("vault", "TOKEN")
OTHER_KEYS = vault.sealed("vault", "KEY")
OTHER_SERVERS = vault.sealed("other", "TOKEN")
NEW = f"new-{secrets.token_hex(16)}"


@pytest.fixture(scope="module")
def vault_machine(suite: str) -> Iterator[Machine]:
    with vault.booted(suite) as machine:
        yield machine


@pytest.fixture
def machine(vault_machine: Machine) -> Iterator[Machine]:
    yield vault_machine
    assert vault_machine.unannounced() == []


def put_file(machine: Machine, path: str, text: str) -> None:
    machine.write(path, text, mode=0o600)


# ------------------------------------------------------------------------------ at rest
def edited(text: str, field: str, change: Callable[[str], str]) -> str:
    """Return a record in which one field is another; an honest change would give the same text."""
    record = json.loads(text)
    assert text == json.dumps(record, separators=(",", ":")) + "\n"
    kind = type(record[field])
    record[field] = kind(change(str(record[field])))
    return json.dumps(record, separators=(",", ":")) + "\n"


def bit_of_text(value: str) -> str:
    """Return a text with one bit of its last character flipped."""
    return value[:-1] + chr(ord(value[-1]) ^ 2)


def bit_of_hex(at: float) -> Callable[[str], str]:
    """Return what flips one bit of the bytes that a text has in hexadecimal; 1.0 is the last."""

    def change(value: str) -> str:
        raw = bytearray.fromhex(value)
        raw[int(at * (len(raw) - 1))] ^= 1
        return raw.hex()

    return change


def one_less(value: str) -> str:
    return str(int(value) - 1)


CHANGED = "it was changed, or sealed for something else"
NO_SECRET = "it is no sealed secret, or cut off"
AT_REST = [
    # what is changed in TOKEN's file, how, and the reason that is given
    ("format", lambda t: edited(t, "format", bit_of_text), "written by another version"),
    ("name", lambda t: edited(t, "name", bit_of_text), "its file is that of vaulv's TOKEN"),
    ("key", lambda t: edited(t, "key", bit_of_text), "its file is that of vault's TOKEL"),
    ("version up", lambda t: edited(t, "version", bit_of_text), CHANGED),
    ("version down", lambda t: edited(t, "version", one_less), "version 0, and 1 was set"),
    ("store key", lambda t: edited(t, "sealed_with", bit_of_hex(0.5)), "another store key"),
    ("nonce", lambda t: edited(t, "ciphertext", bit_of_hex(0)), CHANGED),
    ("middle", lambda t: edited(t, "ciphertext", bit_of_hex(0.5)), CHANGED),
    ("tag", lambda t: edited(t, "ciphertext", bit_of_hex(1)), CHANGED),
    ("one digit less", lambda t: edited(t, "ciphertext", lambda c: c[:-1]), "not hexadecimal"),
    ("one byte less", lambda t: edited(t, "ciphertext", lambda c: c[:-2]), CHANGED),
    ("no ciphertext", lambda t: edited(t, "ciphertext", lambda _: ""), "it is cut off"),
    ("upper case", lambda t: edited(t, "ciphertext", str.upper), "not hexadecimal"),
    ("a space more", lambda t: t.replace(",", ", ", 1), "it was changed"),
    ("a field more", lambda t: t.replace("}", ',"x":1}'), NO_SECRET),
    ("half of it", lambda t: t[: len(t) // 2], NO_SECRET),
    ("without its end", lambda t: t[:-1], "it was changed"),
    ("empty", lambda _: "", NO_SECRET),
    ("10 MB", lambda _: "x" * 10_000_000, NO_SECRET),
]


@pytest.mark.parametrize(("change", "why"), [r[1:] for r in AT_REST], ids=[r[0] for r in AT_REST])
def test_a_file_that_was_changed_is_refused(
    machine: Machine, change: Callable[[str], str], why: str
) -> None:
    text = machine.read(MINE)
    put_file(machine, MINE, change(text))
    try:
        vault.expect_refused(machine, "vault", f"the secret TOKEN cannot be used: .*{why}")
    finally:
        put_file(machine, MINE, text)
    assert vault.gives(machine, "vault", TOKEN)


def relabelled(text: str, as_text: str) -> str:
    """Return a sealed secret that says of itself what another says."""
    return (
        json.dumps(
            {**json.loads(as_text), "ciphertext": json.loads(text)["ciphertext"]},
            separators=(",", ":"),
        )
        + "\n"
    )


@pytest.mark.parametrize(
    ("path", "servers"),
    [(OTHER_SERVERS, ["vault", "other"]), (OTHER_KEYS, ["vault"])],
    ids=["of two servers", "of two keys"],
)
def test_files_that_have_changed_places_are_refused(
    machine: Machine, path: str, servers: list[str]
) -> None:
    mine, others = machine.read(MINE), machine.read(path)
    try:
        put_file(machine, MINE, others)
        put_file(machine, path, mine)
        for name in servers:
            vault.expect_refused(machine, name, "its file is that of")
        put_file(machine, MINE, relabelled(others, mine))
        put_file(machine, path, relabelled(mine, others))
        for name in servers:
            vault.expect_refused(machine, name, CHANGED)
    finally:
        put_file(machine, MINE, mine)
        put_file(machine, path, others)
    assert vault.gives(machine, "vault", TOKEN)
    assert vault.gives(machine, "other", OTHERS)


def test_what_a_value_is_bound_to_is_what_refuses_it(machine: Machine) -> None:
    bound = 'return "\\0".join(("mcpwrap 1", *bound)).encode()'
    with machine.patched("core/seal", bound, 'return b"anything"'):
        vault.put(machine, "vault", "TOKEN", TOKEN)
        vault.put(machine, "vault", "KEY", KEY)
        vault.put(machine, "vault", "FILE", vault.FILE)
        vault.put(machine, "other", "TOKEN", OTHERS)
        put_file(machine, MINE, relabelled(machine.read(OTHER_SERVERS), machine.read(MINE)))
        assert vault.gives(machine, "vault", OTHERS)
    for (name, key), value in vault.VALUES.items():
        vault.put(machine, name, key, value)
    assert vault.gives(machine, "vault", TOKEN)


def test_an_older_file_is_refused(machine: Machine) -> None:
    old = machine.read(MINE)
    version = json.loads(old)["version"]
    assert vault.put(machine, "vault", "TOKEN", NEW) == version + 1
    newer = machine.read(MINE)
    put_file(machine, MINE, old)
    why = f"its file has version {version}, and {version + 1} was set"
    vault.expect_refused(machine, "vault", why)
    check = "if stored.version < last_version:"
    with machine.patched("core/stored", check, "if False:"):
        assert vault.gives(machine, "vault", TOKEN)  # without the check it is the old value again
    vault.expect_refused(machine, "vault", why)
    put_file(machine, MINE, newer)
    assert vault.gives(machine, "vault", NEW)
    vault.put(machine, "vault", "TOKEN", TOKEN)


def test_a_file_that_is_gone_is_refused(machine: Machine) -> None:
    text = machine.read(MINE)
    machine.as_root(f"rm {MINE}")
    vault.expect_refused(machine, "vault", "its file is gone")
    put_file(machine, MINE, text)
    machine.as_root("mv /var/lib/mcpwrap/secrets.json /root/")
    vault.expect_refused(machine, "vault", "it is not set")
    machine.as_root("mv /root/secrets.json /var/lib/mcpwrap/")
    machine.as_root("mv /var/lib/mcpwrap/store.json /root/")
    vault.expect_refused(machine, "vault", "another store key than this machine's")
    machine.as_root("mv /root/store.json /var/lib/mcpwrap/")
    assert vault.gives(machine, "vault", TOKEN)


# ------------------------------------------------------------------- capability and bundle
DROP_IN = "/etc/systemd/system/mcpwrap@vault.service.d/99-forged.conf"
FORGED = """
# After the mint: what root gives at this start is what the test says.
[Service]
ExecStartPre=+/usr/bin/nsenter --target=1 --mount -- /usr/bin/python3 /opt/forge.py
"""
FORGE = """
import json, os, shutil, sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
os.umask(0o022)
sys.path[:0] = ["/usr/lib/mcpwrap", "/usr/lib/mcpwrap/site"]
from mcpwrap.as_root import store
from mcpwrap.core import capability as caps

CAPABILITY = Path("/run/mcpwrap/mint/vault")
BUNDLE = Path("/run/mcpwrap/bundle/vault/bundle")
EARLIER = Path("/run/earlier")

def give(start_age_s=0, bundle_age_s=0, name="vault", keys=("FILE", "KEY", "TOKEN")):
    '''What `mcpwrap-mint start vault` gives, or something like it.'''
    now = datetime.now(UTC)
    random = caps.Randomness(os.urandom(8).hex(), os.urandom(32))
    start_at = now - timedelta(seconds=start_age_s)
    minted = caps.mint("vault", os.environ["INVOCATION_ID"], random, start_at)
    CAPABILITY.write_text(caps.encode(minted))
    values = store.take("vault", keys)
    nonces = [os.urandom(24) for _ in values]
    labelled = caps.mint(name, minted.invocation_id, random, start_at)
    bundle_at = now - timedelta(seconds=bundle_age_s)
    BUNDLE.write_text(caps.encode(caps.bundle(labelled, values, nonces, bundle_at)))

def edit(path, change):
    text = path.read_text()
    record = json.loads(text)
    assert text == json.dumps(record, separators=(",", ":")) + "\\n"
    change(record)
    path.write_text(json.dumps(record, separators=(",", ":")) + "\\n")

def token(record):
    '''The sealed TOKEN in a bundle, or the capability itself.'''
    return next((s for s in record.get("secrets", []) if s["key"] == "TOKEN"), record)

def flip_text(path, field, at=-1):
    def change(record):
        text = token(record)[field]
        at_ = at % len(text)
        token(record)[field] = text[:at_] + chr(ord(text[at_]) ^ 1) + text[at_ + 1:]
    edit(path, change)

def flip_byte(path, field, at):
    def change(record):
        raw = bytearray.fromhex(token(record)[field])
        raw[int(at * (len(raw) - 1))] ^= 1
        token(record)[field] = raw.hex()
    edit(path, change)

def bump(record):
    token(record)["version"] += 1

def cut(path, part):
    text = path.read_text()
    path.write_text(text[:int(len(text) * part)])

def replay(path):
    shutil.copyfile(EARLIER / path.name, path)

"""
HONEST = "give()"  # of itself, in place of what the mint gave
KEEP = "EARLIER.mkdir(exist_ok=True); [shutil.copy(p, EARLIER) for p in (CAPABILITY, BUNDLE)]"
SEALED_ELSE = "the secret [A-Z]+ was sealed for another server or start"
NOT_OPEN = "does not open: it was changed, or sealed for something else"
NOT_DECLARED = "the bundle does not have the secrets that the server declares"
SECOND = 18  # of "2026-01-01T00:00:00+00:00", its last digit
# What is done to what root gave, and the reason that is told. These by whom it was for.
HANDED_OVER = [
    ("no capability", "CAPABILITY.write_text('')", "root minted no capability for this start"),
    ("expired capability", "give(start_age_s=61)", "the capability has expired"),
    ("replayed start", "replay(CAPABILITY); replay(BUNDLE)", "the capability is of another start"),
    ("replayed capability", "replay(CAPABILITY)", "the capability is of another start"),
    ("replayed bundle", "replay(BUNDLE)", SEALED_ELSE),
    (
        "capability of another",
        "shutil.copyfile(CAPABILITY.parent / 'other', CAPABILITY)",
        "the capability is another server's",
    ),
    (
        "bundle of another",
        "shutil.copyfile('/run/mcpwrap/bundle/other/bundle', BUNDLE)",
        NOT_DECLARED,
    ),
    ("capability's start", "flip_text(CAPABILITY, 'invocation_id')", "is of another start"),
    ("no bundle", "BUNDLE.unlink()", "the secrets cannot be read: No such file"),
]
# And these in what it says.
GIVEN = [
    ("expired bundle", "give(bundle_age_s=61)", "the secret [A-Z]+ has expired"),
    ("bundle made for another", "give(name='other')", SEALED_ELSE),
    ("bundle without a secret", "give(keys=('KEY', 'TOKEN'))", NOT_DECLARED),
    ("capability's name", "flip_text(CAPABILITY, 'name')", "the capability is another server's"),
    ("capability's id", "flip_text(CAPABILITY, 'capability_id')", SEALED_ELSE),
    ("capability's key", "flip_byte(CAPABILITY, 'session_key', 0.5)", NOT_OPEN),
    ("capability's time", f"flip_text(CAPABILITY, 'expires_at', {SECOND})", NOT_OPEN),
    ("half a capability", "cut(CAPABILITY, 0.5)", "the capability is none, or cut off"),
    ("secret's name", "flip_text(BUNDLE, 'name')", SEALED_ELSE),
    ("secret's key", "flip_text(BUNDLE, 'key')", NOT_DECLARED),
    ("secret's version", "edit(BUNDLE, bump)", NOT_OPEN),
    ("secret's capability", "flip_text(BUNDLE, 'capability_id')", SEALED_ELSE),
    ("secret's time", f"flip_text(BUNDLE, 'expires_at', {SECOND})", NOT_OPEN),
    ("secret's nonce", "flip_byte(BUNDLE, 'ciphertext', 0)", NOT_OPEN),
    ("secret's middle", "flip_byte(BUNDLE, 'ciphertext', 0.5)", NOT_OPEN),
    ("secret's tag", "flip_byte(BUNDLE, 'ciphertext', 1)", NOT_OPEN),
    ("half a bundle", "cut(BUNDLE, 0.5)", "the bundle is none, or cut off"),
    ("an empty bundle", "cut(BUNDLE, 0)", "the bundle is none, or cut off"),
    ("a space more", "BUNDLE.write_text(BUNDLE.read_text() + ' ')", "the bundle was changed"),
]


@contextmanager
def forging(machine: Machine) -> Iterator[Callable[[str], None]]:
    """Let a program change what the next starts of `vault` are given."""
    machine.write("/opt/forge.py", "")
    if not machine.path(DROP_IN).exists():  # it stays, and does nothing
        machine.write(DROP_IN, FORGED)
        machine.as_root("systemctl daemon-reload")
    try:
        yield lambda code: machine.write("/opt/forge.py", FORGE + code)
    finally:
        machine.write("/opt/forge.py", "")
        vault.stop(machine, "vault")


@pytest.mark.parametrize(
    ("code", "why"), [r[1:] for r in HANDED_OVER], ids=[r[0] for r in HANDED_OVER]
)
def test_what_was_given_to_another_start_is_refused(machine: Machine, code: str, why: str) -> None:
    vault.stop(machine, "other")
    machine.as_root("systemctl start mcpwrap@other")
    with forging(machine) as give:
        give(f"{HONEST}\n{KEEP}\n")
        assert vault.gives(machine, "vault", TOKEN)  # the twin
        give(f"{HONEST}\n{code}\n")
        vault.expect_refused(machine, "vault", why)


@pytest.mark.parametrize(("code", "why"), [r[1:] for r in GIVEN], ids=[r[0] for r in GIVEN])
def test_what_root_gave_is_taken_whole_or_not_at_all(machine: Machine, code: str, why: str) -> None:
    with forging(machine) as give:
        give(f"{HONEST}\n{code}\n")
        vault.expect_refused(machine, "vault", why)


def test_what_root_gave_is_taken_as_it_is(machine: Machine) -> None:
    """The twin: where nothing is changed after it was given, the server has its secrets."""
    assert vault.gives(machine, "vault", TOKEN)  # of the mint itself
    with forging(machine) as give:
        give(HONEST)
        assert vault.gives(machine, "vault", TOKEN)


def test_the_start_that_it_names_is_what_refuses_a_replay(machine: Machine) -> None:
    check = "if not invocation_id or capability.invocation_id != invocation_id:"
    with forging(machine) as give, machine.patched("core/capability", check, "if False:"):
        give(f"{HONEST}\n{KEEP}\n")
        assert vault.gives(machine, "vault", TOKEN)
        give("replay(CAPABILITY); replay(BUNDLE)")
        assert vault.gives(machine, "vault", TOKEN)


def reloaded_with(machine: Machine, bundle: str) -> str:
    """Put a bundle there, tell the wrapper that runs, and return what its next session has."""
    put_bundle = "install -m 644 /dev/stdin /run/mcpwrap/bundle/vault/bundle"
    machine.as_root(put_bundle, stdin=bundle)
    pid = machine.show("mcpwrap@vault", "MainPID")["MainPID"]
    machine.as_root(f"kill -HUP {pid}")
    with machine.session("vault") as session:
        found = str(session.evaluate(vault.DIGEST))
    assert machine.show("mcpwrap@vault", "MainPID")["MainPID"] == pid
    return found


def test_an_older_bundle_is_refused_at_a_reload(machine: Machine) -> None:
    reason = "reload refused, the secrets stay as they were: the secret TOKEN is version"

    def refusals() -> int:
        machine.as_root("journalctl --sync")
        told = machine.journal("_SYSTEMD_UNIT=mcpwrap@vault.service")
        return sum(reason in str(entry["MESSAGE"]) for entry in told)

    def rotated() -> tuple[str, str]:
        vault.stop(machine, "vault")
        vault.put(machine, "vault", "TOKEN", TOKEN)
        machine.as_root("systemctl start mcpwrap@vault")
        old = machine.read("/run/mcpwrap/bundle/vault/bundle")
        machine.as_root("mcpwrap secret rotate vault TOKEN", stdin=NEW)
        return old, machine.read("/run/mcpwrap/bundle/vault/bundle")

    old, newer = rotated()
    before = refusals()
    assert reloaded_with(machine, old) == vault.digest(NEW)
    assert refusals() == before + 1
    assert reloaded_with(machine, newer) == vault.digest(NEW)  # the twin: not an older one
    assert refusals() == before + 1
    assert reloaded_with(machine, "") == vault.digest(NEW)
    check = "if held and sealed.version < held.version:"
    with machine.patched("core/capability", check, "if False:"):
        old, _ = rotated()
        assert reloaded_with(machine, old) == vault.digest(TOKEN)
    vault.put(machine, "vault", "TOKEN", TOKEN)
    machine.announce("reload refused")


def test_no_refusal_has_left_a_value_behind(machine: Machine) -> None:
    """The last of this file: what all of the others have left on the machine."""
    values = [TOKEN, KEY, OTHERS, NEW, vault.FILE.splitlines()[0]]
    assert vault.gives(machine, "vault", TOKEN)
    with machine.session("vault") as session:
        assert vault.has(session, TOKEN)
        found = vault.places_of(machine, *values)  # the twin
        assert [len(places) > 0 for places in found] == [True, True, False, False, True]
    vault.stop(machine, "vault", "other", "everything")
    assert vault.places_of(machine, *values) == [[]] * len(values)
