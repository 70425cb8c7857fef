"""An operator sets, lists, imports, removes, re-seals and restores secrets; none is ever lost."""

import json
import re
import secrets
from collections import Counter
from collections.abc import Callable

import pytest

from tests.system.bed.machine import Machine
from tests.system.guest import search
from tests.system.support import kill_at_syscall, small_disk, vault
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all
from tests.system.support.vault import FILE, KEY, OTHERS, TOKEN

STAGE = vault.booted
STORE = "/var/lib/mcpwrap/store.json"
SETTINGS = "/var/lib/mcpwrap/secrets.json"
NEW = f"new-{secrets.token_hex(16)}"
SET = ["mcpwrap", "secret", "set", "vault", "TOKEN"]
SAME_KIND = only_in_test_all("row of the same kind: another verb, or another form of bad input")


def listed(machine: Machine) -> dict[tuple[str, str], dict[str, object]]:
    """Return the output for any account, by server and key."""
    rows = json.loads(machine.as_user("alice", "mcpwrap secret list --json").out)
    return {(row["name"], row["key"]): row for row in rows}


def version(machine: Machine, name: str = "vault", key: str = "TOKEN") -> object:
    return listed(machine)[name, key]["version"]


def on_disk(machine: Machine) -> str:
    """Return all of root's files about secrets, as they are."""
    return machine.look(
        f"sha256sum {STORE} {SETTINGS} $(find /var/lib/mcpwrap/sealed -type f | sort)"
    )


# --------------------------------------------------------------------------- set and list
def test_anybody_may_see_which_secrets_there_are_and_nobody_their_values(machine: Machine) -> None:
    rows = listed(machine)
    assert rows.keys() == vault.VALUES.keys()
    assert {(r["is_set"], r["is_declared"]) for r in rows.values()} == {(True, True)}
    exposure = {key: row["exposure"] for key, row in rows.items()}
    assert exposure["vault", "FILE"] == "L1 file"
    assert exposure["vault", "TOKEN"] == "L2 variable"
    text = machine.as_user("alice", "mcpwrap secret list").out
    assert text.splitlines()[0].split() == [
        "SERVER",
        "KEY",
        "SET",
        "VERSION",
        "CHANGED",
        "EXPOSURE",
    ]
    for value in vault.VALUES.values():
        assert not search.holds(f"{rows}{text}".encode(), value)
    modes = machine.look(f"stat -c '%a %U' {SETTINGS} {STORE} {vault.sealed('vault', 'TOKEN')}")
    assert modes.splitlines() == ["644 root", "600 root", "600 root"]
    refused = machine.as_user("alice", f"cat {STORE}; ls /var/lib/mcpwrap/sealed", status=2).err
    assert refused.count("Permission denied") == 2


def test_what_is_set_and_not_referred_to_is_said(machine: Machine) -> None:
    vault.put(machine, "vault", "SPARE", NEW)
    assert not listed(machine)["vault", "SPARE"]["is_declared"]
    assert "yes, unused" in machine.as_user("alice", "mcpwrap secret list").out
    assert "vault: SPARE is removed" in machine.as_root("mcpwrap secret remove vault SPARE").out
    assert not listed(machine)["vault", "SPARE"]["is_set"]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        pytest.param("", "cannot be used: empty", id="empty"),
        pytest.param("\n", "cannot be used: empty", id="newline", marks=SAME_KIND),
        pytest.param("with\0NUL", "cannot be used: a NUL", id="NUL"),
        pytest.param("x" * (32 * 1024 + 1), "cannot be used: 32769 bytes", id="too large"),
        pytest.param("x" * 3_000_000, "over 1 MiB", id="far too large", marks=SAME_KIND),
    ],
)
@pytest.mark.parametrize("verb", ["set", pytest.param("rotate", marks=SAME_KIND)])
def test_a_value_that_no_variable_can_hold_is_refused(
    machine: Machine, verb: str, value: str, why: str
) -> None:
    before = on_disk(machine)
    err = machine.as_root(f"mcpwrap secret {verb} vault TOKEN", stdin=value, status=2).err
    assert why in err
    assert "nothing was changed" in err
    assert on_disk(machine) == before


def test_the_largest_value_reaches_the_server(machine: Machine) -> None:
    value = "x" * (32 * 1024)
    vault.put(machine, "vault", "TOKEN", value)
    assert vault.gives(machine, "vault", value)
    vault.put(machine, "vault", "TOKEN", TOKEN + "\n")  # as `echo` gives it
    assert vault.gives(machine, "vault", TOKEN)


@pytest.mark.parametrize(
    "command",
    [
        "set vault TOKEN",
        pytest.param("rotate vault TOKEN", marks=SAME_KIND),
        pytest.param("remove vault TOKEN", marks=SAME_KIND),
        pytest.param("rekey", marks=SAME_KIND),
        "recovery-key",
    ],
)
def test_others_than_root_change_and_learn_nothing(machine: Machine, command: str) -> None:
    before = on_disk(machine)
    done = machine.as_user("alice", f"mcpwrap secret {command}", stdin=NEW, status=2)
    assert "needs root" in done.err
    assert done.out == ""
    direct = machine.as_user(
        "alice", f"/usr/libexec/mcpwrap/mcpwrap-root secret {command}", status=2
    )
    assert "only the command `mcpwrap` starts this program, as root" in direct.err
    assert on_disk(machine) == before


def test_what_is_typed_is_not_shown(machine: Machine) -> None:
    typed = machine.guest_command("typist", "typed_from_stdin", SET, "not shown[^:]*:\\s*$")
    status, shown = json.loads(machine.as_root(typed, stdin=NEW).out)
    assert (status, "TOKEN is set, version" in shown) == (0, True)
    assert NEW not in shown
    assert vault.gives(machine, "vault", NEW)
    vault.put(machine, "vault", "TOKEN", TOKEN)


def test_a_removed_secret_starts_no_server_until_it_is_set_again(machine: Machine) -> None:
    before = version(machine)
    old = machine.read(vault.sealed("vault", "TOKEN"))
    machine.as_root("mcpwrap secret remove vault TOKEN")
    vault.expect_refused(machine, "vault", "the secret TOKEN cannot be used: it is not set")
    machine.write(vault.sealed("vault", "TOKEN"), old, mode=0o600)  # from a backup
    vault.expect_refused(machine, "vault", "the secret TOKEN cannot be used: it is not set")
    machine.as_root("mcpwrap secret remove vault TOKEN", status=2)
    assert "vault does not start before `sudo mcpwrap secret set vault TOKEN`" in machine.apply()
    assert vault.put(machine, "vault", "TOKEN", NEW) > int(str(before))
    assert vault.gives(machine, "vault", NEW)
    machine.write(vault.sealed("vault", "TOKEN"), old, mode=0o600)
    vault.expect_refused(machine, "vault", "its file has version")
    vault.put(machine, "vault", "TOKEN", TOKEN)


# ------------------------------------------------------------------------------------ import
def test_an_env_file_sets_a_secret_for_each_server_that_declares_it(machine: Machine) -> None:
    before = {key: row["version"] for key, row in listed(machine).items()}
    text = f"# of the old setup\nexport TOKEN='{NEW}'\nKEY={KEY}\nNOBODYS=\"some value\"\n"
    machine.write("/root/mcp-secrets.env", text, mode=0o600)
    done = machine.as_root("mcpwrap secret import /root/mcp-secrets.env")
    assert done.err == "not set, as no server declares them: NOBODYS\n"
    raised = {key for key, row in listed(machine).items() if row["version"] != before.get(key)}
    assert raised == {
        ("vault", "TOKEN"),
        ("other", "TOKEN"),
        ("everything", "TOKEN"),
        ("straight", "TOKEN"),
        ("vault", "KEY"),
    }
    assert vault.gives(machine, "vault", NEW)
    assert vault.gives(machine, "other", NEW)
    for name in ("vault", "other", "everything", "straight"):
        vault.put(machine, name, "TOKEN", vault.VALUES[name, "TOKEN"])
    machine.as_root("rm /root/mcp-secrets.env")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        pytest.param(NEW, "line 2: no `=`", id="no =", marks=SAME_KIND),
        pytest.param(
            f"KEY='{NEW}", "line 2, KEY: a quote that is not closed on its line", id="open quote"
        ),
        pytest.param("KEY=", "line 2: nothing after the `=`", id="empty", marks=SAME_KIND),
        pytest.param(f"TOKEN={NEW}", "line 2, TOKEN: is also set on line 1", id="twice"),
        pytest.param(
            f"{NEW}=x",
            "line 2: no valid secret name before the `=`",
            id="no name",
            marks=SAME_KIND,
        ),
    ],
)
def test_one_bad_line_of_an_env_file_changes_nothing(machine: Machine, line: str, why: str) -> None:
    before = on_disk(machine)
    machine.write("/root/bad.env", f"TOKEN=a-good-value\n{line}\n", mode=0o600)
    err = machine.as_root("mcpwrap secret import /root/bad.env", status=2).err
    assert why in err
    assert "nothing was changed" in err
    assert NEW not in err
    assert on_disk(machine) == before


# ------------------------------------------------------------------------------------- apply
def test_accounts_that_would_share_a_secret_are_refused(machine: Machine) -> None:
    machine.add_person("bob")
    two = vault.CONFIG.replace('agents = ["alice"]', 'agents = ["alice", "bob"]', 1)
    whole_group = vault.CONFIG.replace('agents = ["alice"]\n', "", 1)
    for config in (two, whole_group):
        machine.configure(config)
        err = machine.as_root("mcpwrap apply", status=2).err
        assert "would share this server's secrets; nothing was changed" in err
        machine.configure(config.replace("secret_files", "shared = true\nsecret_files", 1))
        machine.apply()  # the twin
    machine.configure(vault.CONFIG)
    machine.apply()


def test_only_a_purge_forgets_the_secrets_of_a_server_that_is_gone(machine: Machine) -> None:
    without = vault.CONFIG.replace("[mcp_servers.other", "[mcp_servers.renamed")
    folder = "/var/lib/mcpwrap/sealed/other"
    machine.configure(without)
    machine.apply()
    assert "TOKEN.sealed" in machine.look(f"ls {folder}")
    machine.configure(vault.CONFIG)
    machine.apply()
    assert vault.gives(machine, "other", OTHERS)  # it was added again, and its value is back
    machine.configure(without)
    assert "forget the secrets of other" in machine.as_root("mcpwrap apply --purge").out
    machine.as_root(f"ls {folder}", status=2)
    assert "other" not in json.loads(machine.read(SETTINGS))["by_server"]
    machine.configure(vault.CONFIG)
    machine.apply()
    vault.expect_refused(machine, "other", "it is not set")
    assert vault.put(machine, "other", "TOKEN", OTHERS) == 1
    assert vault.gives(machine, "other", OTHERS)


# ----------------------------------------------------------------------- rekey and restore
def expect_all_values(machine: Machine) -> None:
    """Start each server, which opens all of its secrets."""
    vault.stop(machine, "vault", "other")
    with machine.session("vault") as session, machine.session("other") as other:
        assert vault.has(session, TOKEN)
        assert vault.has(other, OTHERS)


def test_a_new_store_key_seals_all_values_anew(machine: Machine) -> None:
    old = {key: json.loads(machine.read(vault.sealed(*key))) for key in vault.VALUES}
    old_key = machine.as_root("mcpwrap secret recovery-key").out
    out = machine.as_root("mcpwrap secret rekey").out
    assert "secrets are sealed with a new store key, wrapped by systemd-creds" in out
    assert machine.as_root("mcpwrap secret recovery-key").out != old_key
    for key, before in old.items():
        after = json.loads(machine.read(vault.sealed(*key)))
        assert after["version"] == before["version"]
        assert after["sealed_with"] != before["sealed_with"]
    assert len({json.loads(machine.read(vault.sealed(*key)))["sealed_with"] for key in old}) == 1
    expect_all_values(machine)


# The actions of a command depend on the release; how files are written is our own code.
KILLED_AT = {
    "bookworm": {kill_at_syscall.FORK: 3, "rename": 7},
    "trixie": {kill_at_syscall.FORK: 3},
    "forky": {kill_at_syscall.FORK: 3},
}


@ON_ONE_RELEASE
def test_killed_at_some_calls_rekey_loses_nothing(machine: Machine) -> None:
    """strace kills root's program at the first and the last of its calls, and between them."""
    expect_rekey_survives(machine, kill_at_syscall.few(rekey_calls(machine)))


@only_in_test_all("the whole of a kill sweep: `make test` has three of its calls")
def test_killed_anywhere_rekey_loses_nothing(machine: Machine) -> None:
    """strace kills root's program at each command that it starts and each file that it writes."""
    expect_rekey_survives(machine, rekey_calls(machine))


def rekey_calls(machine: Machine) -> list[kill_at_syscall.Call]:
    """Return the calls at which a rekey is killed."""
    least = KILLED_AT[machine.suite]
    found = kill_at_syscall.calls(machine, "secret rekey")
    kills = [call for call in found if call.kind in least]
    assert Counter(call.kind for call in kills) >= Counter(least)
    return kills


def expect_rekey_survives(machine: Machine, kills: list[kill_at_syscall.Call]) -> None:
    """Kill a rekey at each of these calls; all values must open afterwards."""
    for call in kills:
        kill_at_syscall.kill_at(machine, call, "secret rekey")
        expect_all_values(machine)
        machine.as_root("mcpwrap secret rekey")  # which opens all values, or changes nothing
    expect_all_values(machine)


@ON_ONE_RELEASE
def test_killed_at_some_writes_a_rekey_with_the_recovery_key_loses_nothing(
    machine: Machine,
) -> None:
    kills = recovery_rekey_writes(machine)
    expect_recovery_rekey_survives(machine, [kills[0], kills[-1]])


@ON_ONE_RELEASE
@only_in_test_all("the whole of a kill sweep: `make test` has two of its writes")
def test_killed_anywhere_a_rekey_with_the_recovery_key_loses_nothing(machine: Machine) -> None:
    expect_recovery_rekey_survives(machine, recovery_rekey_writes(machine))


def recovery_rekey_writes(machine: Machine) -> list[kill_at_syscall.Call]:
    """Return the writes at which a rekey with the recovery key is killed."""
    recovery = machine.as_root("mcpwrap secret recovery-key").out
    found = kill_at_syscall.calls(machine, "secret rekey --recovery-key", stdin=recovery)
    kills = [call for call in found if call.kind == "rename"]
    assert len(kills) >= 7
    return kills


def expect_recovery_rekey_survives(machine: Machine, kills: list[kill_at_syscall.Call]) -> None:
    """Kill a rekey with the recovery key at each of these writes, and type it again."""
    command = "secret rekey --recovery-key"
    for call in kills:
        recovery = machine.as_root("mcpwrap secret recovery-key").out
        kill_at_syscall.kill_at(machine, call, command, stdin=recovery)
        machine.as_root(f"mcpwrap {command}", stdin=recovery)  # typed again
        expect_all_values(machine)


def test_a_wrong_recovery_key_changes_nothing(machine: Machine) -> None:
    before = on_disk(machine)
    for text in ("", "no key", "ab" * 31):
        err = machine.as_root("mcpwrap secret rekey --recovery-key", stdin=text, status=2).err
        assert "this is not a recovery key; nothing was changed" in err
        assert on_disk(machine) == before
    machine.as_root("mcpwrap secret rekey --recovery-key; true", stdin="ab" * 32)
    expect_all_values(machine)


def test_a_backup_opens_on_another_machine_with_the_recovery_key(
    machine: Machine, boot: Callable[..., Machine]
) -> None:
    recovery = machine.as_root("mcpwrap secret recovery-key").out
    assert len(bytes.fromhex(recovery.strip())) == 32
    tar = "tar -C /var/lib/mcpwrap -c sealed store.json secrets.json | base64 -w0"
    backup = machine.as_root(tar).out
    restored = vault.prepare(boot())
    own_store = restored.read(STORE)
    why = "this machine cannot open the store key"
    restored.write(STORE, machine.read(STORE), mode=0o600)  # of another machine, and nothing else
    vault.expect_refused(restored, "vault", why)
    restored.write(STORE, own_store, mode=0o600)
    expect_all_values(restored)

    restored.as_root("base64 -d | tar -C /var/lib/mcpwrap -x --recursive-unlink", stdin=backup)
    vault.expect_refused(restored, "vault", f"{why}.*rekey --recovery-key")
    for command in ("rekey", "set vault TOKEN", "recovery-key"):
        err = restored.as_root(f"mcpwrap secret {command}", stdin=NEW, status=1).err
        assert why in err
    before = on_disk(restored)
    wrong = restored.as_root("mcpwrap secret rekey --recovery-key", stdin="ab" * 32, status=1).err
    assert "nothing was changed" in wrong
    assert on_disk(restored) == before
    restored.as_root("mcpwrap secret rekey --recovery-key", stdin=recovery)
    expect_all_values(restored)
    assert FILE.splitlines()[0] not in restored.read(STORE)
    restored.as_root("mcpwrap secret rekey")  # the store is this machine's now
    expect_all_values(restored)
    expect_all_values(machine)


# ----------------------------------------------------------------------------- a full disk
VERBS = {  # and the standard input of each
    "secret set vault TOKEN": NEW,
    "secret set vault ANOTHER": NEW,
    "secret rotate vault TOKEN": NEW,
    "secret import /root/both.env": "",
    "secret remove vault TOKEN": "",
    "secret rekey": "",
    "approvals passwd --stdin alice": "a password of hers",
}
ROOTS = "/var/lib/mcpwrap"


@pytest.mark.parametrize(
    ("kind", "verbs"),
    [
        ("ext4", ["secret set vault TOKEN", "approvals passwd --stdin alice"]),
        pytest.param("ext4", list(VERBS), marks=only_in_test_all("all the other commands")),
        pytest.param("xfs", list(VERBS), marks=only_in_test_all("file system of another kind")),
        pytest.param("btrfs", list(VERBS), marks=only_in_test_all("file system of another kind")),
    ],
    ids=["two on ext4", "ext4", "xfs", "btrfs"],
)
def test_on_a_full_disk_nothing_is_changed_and_nothing_left(
    machine: Machine, kind: str, verbs: list[str]
) -> None:
    """And when there is room again the same commands succeed."""
    everything = f"find {ROOTS} -xdev -type f ! -name '.fill*' -exec sha256sum {{}} + | sort"
    machine.as_root("systemctl stop 'mcpwrap@*.service'")  # a running one has the earlier value
    machine.write("/root/both.env", f"TOKEN={NEW}\nKEY={NEW}\n", mode=0o600)
    with small_disk.under(machine, ROOTS, kind):
        small_disk.fill(machine, ROOTS)
        before = machine.look(everything)
        for verb in verbs:
            err = machine.as_root(f"mcpwrap {verb}", stdin=VERBS[verb], status=1).err
            assert re.fullmatch(
                rf"mcpwrap: {ROOTS}/\S+: No space left on device; nothing was changed"
                r" \[E-FILE-NO-ROOM\]\n"
                r"  fix: make room: `df` and `df -i` show where\n",
                err,
            ), err
            assert machine.look(everything) == before, verb
        small_disk.empty(machine, ROOTS)
        for verb in verbs:
            machine.as_root(f"mcpwrap {verb}", stdin=VERBS[verb])
            assert machine.look(everything) != before, verb
            before = machine.look(everything)


def test_what_a_command_that_was_killed_left_goes_with_the_next_apply(machine: Machine) -> None:
    """But not while a lock is held under which a program may be writing it."""
    left = [
        "/var/lib/mcpwrap/.gate.json.new",
        "/var/lib/mcpwrap/.secrets.json.new",
        "/var/lib/mcpwrap/sealed/vault/.GONE.sealed.new",
        "/etc/systemd/system/mcpwrap@vault.service.d/.10-mcpwrap.conf.new",
    ]
    theirs = ["/var/lib/mcpwrap/state/.theirs.new", "/etc/mcpwrap/.notes.new"]
    machine.as_root(
        f"mkdir -p /var/lib/mcpwrap/state; umask 077; touch {' '.join([*left, *theirs])}"
    )
    hold = "exec flock /run/mcpwrap/secrets.lock sh -c 'echo held; read line'"
    with machine.session("", user="root", command=hold) as holder:
        assert holder.read_line() == "held"
        out = machine.apply()
        assert all(f"remove {path}, which was not completed" in out for path in left)
        assert machine.look(f"ls {' '.join(left)} 2>/dev/null || true").split() == left[1:3]
        holder.send({})
    machine.apply()
    assert machine.look(f"ls {' '.join(left)} 2>/dev/null || true") == ""
    assert machine.apply().startswith("nothing to do")
    machine.look(f"rm {' '.join(theirs)}")
