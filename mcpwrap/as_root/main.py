"""Program `mcpwrap-root`: the verbs of `mcpwrap` that need root.

They are `apply`, `accept`, `secret`, `worker`, `next`, `passwd`, `policy-default`,
`policy-accept`, `purge`, `panic` and `resume`. The operator's command executes it as root. It reads
root's files, acts, and exits.
"""

import os
import signal
import sys

from mcpwrap.as_root import (
    accepted_rules,
    approver_passwords,
    default_policy,
    next_version,
    panic,
    purge,
)
from mcpwrap.as_root.apply import accept, apply, worker_listener
from mcpwrap.as_root.lock import only_one
from mcpwrap.as_root.secrets import command
from mcpwrap.errors import EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE, McpwrapError, file_error
from mcpwrap.linux import tty
from mcpwrap.linux.isolation import prctl
from mcpwrap.plan.diff.diff import RetirementPolicy


def main() -> int:
    """Carry out one command of `mcpwrap`. Exit status: as in `mcpwrap.errors`."""
    tty.guard()
    os.umask(0o022)
    os.chdir("/")
    prctl.forbid_dumps()  # it may hold secrets
    try:
        return _run(sys.argv[1:]) if os.geteuid() == 0 else _misused()
    except McpwrapError as error:
        return _failed(error)
    except KeyboardInterrupt:
        tty.warn("mcpwrap: interrupted")
        return EXIT_INTERRUPTED
    except OSError as error:  # code that knows how far it came raises a McpwrapError itself
        return _failed(file_error(error, "interrupted here: the same command continues"))


def _run(argv: list[str]) -> int:
    match argv:
        case ["panic" | "resume" as verb, *names]:
            return _panic(verb, *names)
        case ["passwd", *rest]:
            return _passwd(rest)
        case ["accept", *rest]:
            return _accept(rest)
        case ["next", *rest]:
            return _next(rest)
        case ["policy-accept", before]:
            return _accept_rule(before)
        case _:
            # Before the lock: a person who types a value or an answer takes time.
            given = command.value_from(command.read_all()) if _reads_input(argv) else ""
            if argv == ["purge"]:
                purge.confirm()
            with only_one():
                return _do_as_asked(argv, given)


def _failed(error: McpwrapError) -> int:
    tty.fail(error)
    return error.exit_code


def _panic(verb: str, *names: str) -> int:
    if verb == "panic":
        panic.begin(list(names))
        tty.say("sessions are ended and new ones refused, until `sudo mcpwrap resume`")
    else:
        panic.end(list(names))
        tty.say("agents can open sessions again")
    return EXIT_OK


def _passwd(argv: list[str]) -> int:
    match argv:
        case ["--stdin", user]:
            approver_passwords.set_one(user, command.read_all().removesuffix(b"\n"))
        case ["--remove", user]:
            approver_passwords.remove(user)
        case [user]:
            approver_passwords.expect_person(user)
            approver_passwords.set_one(user, approver_passwords.typed())
        case _:
            return _misused()
    return EXIT_OK


def _accept(argv: list[str]) -> int:
    match argv:
        case [digest, path]:
            accept.accept(digest, path, by="")
        case [digest, path, by]:
            accept.accept(digest, path, by=by)
        case _:
            return _misused()
    return EXIT_OK


def _accept_rule(before: str) -> int:
    given = command.read_all()
    with only_one():
        accepted_rules.write(before, given)
    return EXIT_OK


def _next(argv: list[str]) -> int:
    prctl.end_with_parent(signal.SIGTERM)  # the command that awaits the answer
    match argv:
        case ["--with-secrets", name, _, *_]:
            text = next_version.answer(name, argv[2:], with_secrets=True)
        case [name, _, *_]:
            text = next_version.answer(name, argv[1:], with_secrets=False)
        case _:
            return _misused()
    left = memoryview(text)
    while left:
        left = left[os.write(1, left) :]  # bytes for a pipe, and not a text for a terminal
    return EXIT_OK


def _reads_input(argv: list[str]) -> bool:
    match argv:
        case ["secret", "set" | "rotate", _, _] | ["secret", "import"]:
            return True
        case ["worker", "enable" | "token", "--stdin", *_]:
            return True
        case _:
            return argv == ["secret", "rekey", "--recovery-key"]


def _do_as_asked(argv: list[str], given: str) -> int:
    match argv:
        case ["apply"]:
            apply.apply(RetirementPolicy.KEEP)
        case ["apply", "--purge"]:
            apply.apply(RetirementPolicy.PURGE)
        case ["purge"] | ["purge", "--yes"]:
            purge.purge()
        case ["secret", *rest]:
            return _secret(rest, given)
        case ["worker", *rest]:
            return _worker(rest, given)
        case ["policy-default", "disable" | "enable" as verb, rule, server]:
            default_policy.change(verb, rule, server)
        case _:
            return _misused()
    return EXIT_OK


def _worker(argv: list[str], given: str) -> int:
    match argv:
        case ["enable", listen, certificate, key]:
            worker_listener.enable(listen, certificate, key, None)
        case ["enable", "--stdin", listen, certificate, key]:
            worker_listener.enable(listen, certificate, key, given)
        case ["token"]:
            worker_listener.renew(None)
        case ["token", "--stdin"]:
            worker_listener.renew(given)
        case ["disable"]:
            worker_listener.disable()
        case _:
            return _misused()
    return EXIT_OK


def _secret(argv: list[str], given: str) -> int:
    match argv:
        case ["set", name, key]:
            command.set_one(name, key, given)
            command.say_what_is_left(name, key)
        case ["rotate", name, key]:
            command.rotate(name, key, given)
        case ["import"]:
            command.import_file(given)
        case ["remove", name, key]:
            command.remove(name, key)
        case ["rekey"]:
            command.rekey(None)
        case ["rekey", "--recovery-key"]:
            command.rekey(given)
        case ["recovery-key"]:
            command.show_recovery_key()
        case _:
            return _misused()
    return EXIT_OK


def _misused() -> int:
    tty.warn(
        "mcpwrap-root: only the command `mcpwrap` starts this program, as root "
        "[E-USAGE-INTERNAL-PROGRAM]"
    )
    return EXIT_USAGE
