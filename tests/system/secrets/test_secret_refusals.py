"""Sealed secrets: a server does not start with one that is not as root sealed it for this start."""

import json
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.system.bed.machine import BED_AT, Machine
from tests.system.support import vault
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all
from tests.system.support.vault import KEY, OTHERS, TOKEN

STAGE = vault.booted
pytestmark = ON_ONE_RELEASE

MINE = vault.sealed("vault", "TOKEN")
OTHER_KEYS = vault.sealed("vault", "KEY")
OTHER_SERVERS = vault.sealed("other", "TOKEN")
NEW = f"new-{secrets.token_hex(16)}"


def put_file(machine: Machine, path: str, text: str) -> None:
    machine.write(path, text, mode=0o600)


# ------------------------------------------------------------------------------ at rest
def edited(text: str, field: str, change: Callable[[str], str]) -> str:
    """Return a record with one field changed; an honest change would give the same text."""
    record = json.loads(text)
    assert text == json.dumps(record, separators=(",", ":")) + "\n"
    kind = type(record[field])
    record[field] = kind(change(str(record[field])))
    return json.dumps(record, separators=(",", ":")) + "\n"


def bit_of_text(value: str) -> str:
    """Return a text with one bit of its last character flipped."""
    return value[:-1] + chr(ord(value[-1]) ^ 2)


def bit_of_hex(at: float) -> Callable[[str], str]:
    """Return a function that flips one bit of a text's bytes in hexadecimal; 1.0 is the last."""

    def change(value: str) -> str:
        raw = bytearray.fromhex(value)
        raw[int(at * (len(raw) - 1))] ^= 1
        return raw.hex()

    return change


def one_less(value: str) -> str:
    return str(int(value) - 1)


CHANGED = "it was changed, or sealed for something else"
NO_SECRET = "it is not a sealed secret, or it is cut off"
AT_REST = [
    # the change in TOKEN's file, how it is made, and the reason in the refusal
    ("format", lambda t: edited(t, "format", bit_of_text), "written by another version"),
    ("name", lambda t: edited(t, "name", bit_of_text), "its file is for TOKEN of vaulv"),
    ("key", lambda t: edited(t, "key", bit_of_text), "its file is for TOKEL of vault"),
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


AT_REST_IN_BOTH_TIERS = {"name", "version down", "middle", "half of it"}
SAME_KIND = only_in_test_all("row of the same kind: another field, or another part, is changed")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        pytest.param(
            *row[1:], id=row[0], marks=() if row[0] in AT_REST_IN_BOTH_TIERS else SAME_KIND
        )
        for row in AT_REST
    ],
)
def test_a_file_that_was_changed_is_refused(
    machine: Machine, change: Callable[[str], str], why: str
) -> None:
    text = machine.read(MINE)
    put_file(machine, MINE, change(text))
    try:
        vault.expect_refused(machine, "vault", f"the secret TOKEN cannot be used: .*{why}")
    finally:
        put_file(machine, MINE, text)


def test_a_file_that_is_as_it_was_is_accepted(machine: Machine) -> None:
    """The twin: the same file, written as the changed ones are."""
    put_file(machine, MINE, machine.read(MINE))
    assert vault.gives(machine, "vault", TOKEN)


@pytest.mark.parametrize(
    "path", [MINE, pytest.param("/var/lib/mcpwrap/store.json", marks=SAME_KIND)]
)
def test_a_file_that_others_can_read_opens_for_nobody(machine: Machine, path: str) -> None:
    machine.as_root(f"chmod 644 {path}")
    why = rf"{path}: accounts other than root can use it \(mode 0644\)"
    try:
        vault.expect_refused(machine, "vault", why)
        for command in ("mcpwrap apply", "mcpwrap secret rekey"):
            assert re.search(why, machine.as_root(command, status=2).err)
    finally:
        machine.as_root(f"chmod 600 {path}")
    assert vault.gives(machine, "vault", TOKEN)  # the twin


def relabelled(text: str, as_text: str) -> str:
    """Return a sealed secret with the identity of another."""
    return (
        json.dumps(
            {**json.loads(as_text), "ciphertext": json.loads(text)["ciphertext"]},
            separators=(",", ":"),
        )
        + "\n"
    )


@pytest.mark.parametrize(
    ("path", "servers"),
    [
        pytest.param(OTHER_SERVERS, ["vault", "other"], id="of two servers"),
        pytest.param(OTHER_KEYS, ["vault"], id="of two keys", marks=SAME_KIND),
    ],
)
def test_files_that_have_changed_places_are_refused(
    machine: Machine, path: str, servers: list[str]
) -> None:
    mine, others = machine.read(MINE), machine.read(path)
    try:
        put_file(machine, MINE, others)
        put_file(machine, path, mine)
        for name in servers:
            vault.expect_refused(machine, name, "its file is for")
        put_file(machine, MINE, relabelled(others, mine))
        put_file(machine, path, relabelled(mine, others))
        for name in servers:
            vault.expect_refused(machine, name, CHANGED)
    finally:
        put_file(machine, MINE, mine)
        put_file(machine, path, others)
    assert vault.gives(machine, "vault", TOKEN)
    assert vault.gives(machine, "other", OTHERS)


@only_in_test_all("mutation twin: shows that the value is refused for what it is bound to")
def test_what_a_value_is_bound_to_is_what_refuses_it(machine: Machine) -> None:
    bound = 'return "\\0".join(("mcpwrap 1", *bound)).encode()'
    with machine.patched("core/secrets/aead", bound, 'return b"anything"'):
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
    with an_older_file(machine) as why:
        vault.expect_refused(machine, "vault", why)


@only_in_test_all("mutation twin: shows that without the check it is the old value again")
def test_the_version_is_what_refuses_an_older_file(machine: Machine) -> None:
    check = "if stored.version < last_version:"
    with an_older_file(machine), machine.patched("core/secrets/at_rest", check, "if False:"):
        assert vault.gives(machine, "vault", TOKEN)


@contextmanager
def an_older_file(machine: Machine) -> Iterator[str]:
    """Put an older TOKEN in place for the time of the block; yield the reason of its refusal."""
    old = machine.read(MINE)
    version = json.loads(old)["version"]
    assert vault.put(machine, "vault", "TOKEN", NEW) == version + 1
    newer = machine.read(MINE)
    put_file(machine, MINE, old)
    yield f"its file has version {version}, and {version + 1} was set"
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
PLAN = "/opt/forge.json"
PYTHONPATH = f"{BED_AT}:/usr/lib/mcpwrap:/usr/lib/mcpwrap/site"
FORGE = f"/usr/bin/env PYTHONPATH={PYTHONPATH} /usr/bin/python3 -B -m tests.system.guest.call"
FORGED = f"""
# After the mint: what root gives at this start is what the test says.
[Service]
ExecStartPre=+/usr/bin/nsenter --target=1 --mount -- {FORGE} forge carry_out []
"""
Step = tuple[str, dict[str, Any]]
Plan = list[Step]
HONEST: Step = ("give", {})  # of itself, in place of the mint's files
REPLAY_CAPABILITY: Step = ("replay", {"file": "capability"})
REPLAY_BUNDLE: Step = ("replay", {"file": "bundle"})
SEALED_ELSE = "the secret [A-Z]+ was sealed for another server or start"
NOT_OPEN = "cannot be unsealed: it was changed, or sealed for something else"
NOT_DECLARED = "the bundle does not have the secrets that the server declares"


def given(step: str, **values: Any) -> Plan:
    """Return the plan of one step."""
    return [(step, values)]


def flipped(file: str, field: str) -> Plan:
    """Return the plan to flip one bit of a field of text."""
    return given("flip_text", file=file, field=field)


def sooner(file: str, field: str) -> Plan:
    """Return the plan to let it expire a second sooner by one clock."""
    return given("expire_sooner", file=file, field=field)


def flipped_byte(file: str, field: str, at: float) -> Plan:
    """Return the plan to flip one bit of a field in hexadecimal."""
    return given("flip_byte", file=file, field=field, at=at)


# The change of root's files, and the reason in the refusal. These by the start it was for.
HANDED_OVER: list[tuple[str, Plan, str]] = [
    (
        "no capability",
        given("empty", file="capability"),
        "root minted no capability for this start",
    ),
    ("expired capability", given("give", start_age_s=61), "the capability has expired"),
    (
        "expired by the boot clock",
        given("give", boot_age_s=61),
        "the capability has expired",
    ),
    (
        "of a later boot",
        given("give", boot_age_s=-61),
        "the capability is of another boot, or the clock was set back",
    ),
    (
        "replayed start",
        [REPLAY_CAPABILITY, REPLAY_BUNDLE],
        "the capability is for another start",
    ),
    ("replayed capability", [REPLAY_CAPABILITY], "the capability is for another start"),
    ("replayed bundle", [REPLAY_BUNDLE], SEALED_ELSE),
    (
        "capability of another",
        given("take", file="capability"),
        "the capability is for another server",
    ),
    ("bundle of another", given("take", file="bundle"), NOT_DECLARED),
    (
        "capability's start",
        flipped("capability", "invocation_id"),
        "is for another start",
    ),
    (
        "no bundle",
        given("remove", file="bundle"),
        "the secrets cannot be read: No such file",
    ),
]
# And these by their content.
GIVEN: list[tuple[str, Plan, str]] = [
    (
        "expired bundle",
        given("give", bundle_age_s=61),
        "the secret [A-Z]+ has expired",
    ),
    ("bundle made for another", given("give", name="other"), SEALED_ELSE),
    (
        "bundle without a secret",
        given("give", keys=["KEY", "TOKEN"]),
        NOT_DECLARED,
    ),
    (
        "capability's name",
        flipped("capability", "name"),
        "the capability is for another server",
    ),
    ("capability's id", flipped("capability", "capability_id"), SEALED_ELSE),
    ("capability's key", flipped_byte("capability", "session_key", 0.5), NOT_OPEN),
    ("capability's time", sooner("capability", "expires_at"), NOT_OPEN),
    ("capability's boot time", sooner("capability", "expires_boot_s"), NOT_OPEN),
    (
        "half a capability",
        given("cut", file="capability", part=0.5),
        "the capability is malformed or cut off",
    ),
    ("secret's name", flipped("bundle", "name"), SEALED_ELSE),
    ("secret's key", flipped("bundle", "key"), NOT_DECLARED),
    ("secret's version", given("raise_version"), NOT_OPEN),
    ("secret's capability", flipped("bundle", "capability_id"), SEALED_ELSE),
    ("secret's time", sooner("bundle", "expires_at"), NOT_OPEN),
    ("secret's boot time", sooner("bundle", "expires_boot_s"), NOT_OPEN),
    ("secret's nonce", flipped_byte("bundle", "ciphertext", 0), NOT_OPEN),
    ("secret's middle", flipped_byte("bundle", "ciphertext", 0.5), NOT_OPEN),
    ("secret's tag", flipped_byte("bundle", "ciphertext", 1), NOT_OPEN),
    (
        "half a bundle",
        given("cut", file="bundle", part=0.5),
        "the bundle is malformed or cut off",
    ),
    (
        "an empty bundle",
        given("cut", file="bundle", part=0),
        "the bundle is malformed or cut off",
    ),
    (
        "a space more",
        given("append", file="bundle", text=" "),
        "the bundle was changed",
    ),
]
IN_BOTH_TIERS = {
    "expired capability", "expired by the boot clock", "replayed start", "replayed bundle",
    "bundle of another", "expired bundle", "bundle made for another", "bundle without a secret",
    "secret's version", "secret's middle", "half a bundle",
}  # fmt: skip


def rows(table: list[tuple[str, Plan, str]]) -> list[Any]:
    """Return the rows of a table as parameters."""
    return [
        pytest.param(plan, why, id=name, marks=() if name in IN_BOTH_TIERS else SAME_KIND)
        for name, plan, why in table
    ]


@contextmanager
def forging(machine: Machine) -> Iterator[Callable[..., None]]:
    """Let a program change the files for the next starts of `vault`."""
    machine.write(PLAN, "[]")
    if not machine.path(DROP_IN).exists():  # it stays until the end of the file
        machine.write(DROP_IN, FORGED)
        machine.as_root("systemctl daemon-reload")
    try:
        yield lambda *plan: machine.write(PLAN, json.dumps(plan))
    finally:
        machine.write(PLAN, "[]")
        vault.stop(machine, "vault")


@pytest.fixture(scope="module", autouse=True)
def _no_forger_is_left(stage: Machine) -> Iterator[None]:
    yield
    stage.as_root(f"rm -f {DROP_IN}; systemctl daemon-reload")


@pytest.mark.parametrize(("plan", "why"), rows(HANDED_OVER))
def test_what_was_given_to_another_start_is_refused(machine: Machine, plan: Plan, why: str) -> None:
    vault.stop(machine, "other")
    machine.as_root("systemctl start mcpwrap@other")
    with forging(machine) as give:
        give(HONEST, ("keep", {}))
        assert vault.gives(machine, "vault", TOKEN)  # the twin
        give(HONEST, *plan)
        vault.expect_refused(machine, "vault", why)


@pytest.mark.parametrize(("plan", "why"), rows(GIVEN))
def test_what_root_gave_is_taken_whole_or_not_at_all(
    machine: Machine, plan: Plan, why: str
) -> None:
    with forging(machine) as give:
        give(HONEST, *plan)
        vault.expect_refused(machine, "vault", why)


def test_what_root_gave_is_taken_as_it_is(machine: Machine) -> None:
    """The twin: if nothing is changed after the mint, the server has its secrets."""
    assert vault.gives(machine, "vault", TOKEN)  # of the mint itself
    with forging(machine) as give:
        give(HONEST)
        assert vault.gives(machine, "vault", TOKEN)


@only_in_test_all("mutation twin: shows that the replay is refused for the start that it names")
def test_the_start_that_it_names_is_what_refuses_a_replay(machine: Machine) -> None:
    check = "if not invocation_id or capability.invocation_id != invocation_id:"
    with forging(machine) as give, machine.patched("core/secrets/capability", check, "if False:"):
        give(HONEST, ("keep", {}))
        assert vault.gives(machine, "vault", TOKEN)
        give(REPLAY_CAPABILITY, REPLAY_BUNDLE)
        assert vault.gives(machine, "vault", TOKEN)


def reloaded_with(machine: Machine, bundle: str) -> str:
    """Put a bundle there, notify the running wrapper, and return its next session's secrets."""
    put_bundle = "install -m 644 /dev/stdin /run/mcpwrap/bundle/vault/bundle"
    machine.as_root(put_bundle, stdin=bundle)
    pid = machine.show("mcpwrap@vault", "MainPID")["MainPID"]
    machine.as_root(f"kill -HUP {pid}")
    with machine.session("vault") as session:
        found = str(session.evaluate(vault.DIGEST))
    assert machine.show("mcpwrap@vault", "MainPID")["MainPID"] == pid
    return found


def refused_reloads(machine: Machine) -> int:
    """Return how many reloads of `vault` were refused for the version of a secret."""
    reason = "reload refused, the secrets stay as they were: the secret TOKEN is version"
    told = machine.journal("_SYSTEMD_UNIT=mcpwrap@vault.service")
    return sum(reason in str(entry["MESSAGE"]) for entry in told)


def rotated(machine: Machine) -> tuple[str, str]:
    """Start `vault`, rotate its token, and return its bundles of before and after."""
    vault.stop(machine, "vault")
    vault.put(machine, "vault", "TOKEN", TOKEN)
    machine.as_root("systemctl start mcpwrap@vault")
    old = machine.read("/run/mcpwrap/bundle/vault/bundle")
    machine.as_root("mcpwrap secret rotate vault TOKEN", stdin=NEW)
    return old, machine.read("/run/mcpwrap/bundle/vault/bundle")


def test_an_older_bundle_is_refused_at_a_reload(machine: Machine) -> None:
    machine.announce("reload refused")
    old, newer = rotated(machine)
    before = refused_reloads(machine)
    assert reloaded_with(machine, old) == vault.digest(NEW)
    assert refused_reloads(machine) == before + 1
    assert reloaded_with(machine, newer) == vault.digest(NEW)  # the twin: not an older one
    assert refused_reloads(machine) == before + 1
    assert reloaded_with(machine, "") == vault.digest(NEW)
    vault.put(machine, "vault", "TOKEN", TOKEN)


@only_in_test_all("mutation twin: shows that the version is what refuses an older bundle")
def test_the_version_is_what_refuses_an_older_bundle(machine: Machine) -> None:
    check = "if held and sealed.version < held.version:"
    with machine.patched("core/secrets/capability", check, "if False:"):
        old, _ = rotated(machine)
        assert reloaded_with(machine, old) == vault.digest(TOKEN)
    vault.put(machine, "vault", "TOKEN", TOKEN)


@only_in_test_all("met only while a package is upgraded, before it restarts the wrappers")
def test_a_reload_seals_nothing_for_a_start_of_an_earlier_version(machine: Machine) -> None:
    mint = "/run/mcpwrap/mint/vault"
    machine.as_root("systemctl restart mcpwrap@vault")
    machine.as_root(f"sed -i 's/\"expires_boot_s\":[0-9]*,//' {mint}")
    before = machine.read("/run/mcpwrap/bundle/vault/bundle")
    machine.announce("mcpwrap@vault")
    machine.as_root("systemctl reload mcpwrap@vault", status=1)
    told = str(machine.journal("_SYSTEMD_UNIT=mcpwrap@vault.service"))
    assert "minted by an earlier version of mcpwrap" in told
    assert "`sudo mcpwrap restart vault`" in told
    assert machine.read("/run/mcpwrap/bundle/vault/bundle") == before
    assert vault.gives(machine, "vault", TOKEN)  # a running session continues
    machine.as_root("mcpwrap restart vault && systemctl reload mcpwrap@vault")


def test_no_refusal_has_left_a_value_behind(machine: Machine) -> None:
    """The last of this file: what all the others have left on the machine."""
    values = [TOKEN, KEY, OTHERS, NEW, vault.FILE.splitlines()[0]]
    assert vault.gives(machine, "vault", TOKEN)
    with machine.session("vault") as session:
        assert vault.has(session, TOKEN)
        found = vault.places_of(machine, *values)  # the twin
        assert [len(places) > 0 for places in found] == [True, True, False, False, True]
    vault.stop(machine, "vault", "other", "everything", "straight")
    assert vault.places_of(machine, *values) == [[]] * len(values)
