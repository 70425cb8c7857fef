"""`mcpwrap secret …`: pass values to root's program, and list keys without values."""

import os
import sys
from pathlib import Path
from typing import NoReturn

import click
import msgspec

from mcpwrap.cli.common.become_root import become_root_program, expect_root
from mcpwrap.cli.common.output import ask_hidden, print_json, print_table
from mcpwrap.config import value_parsers
from mcpwrap.core import names
from mcpwrap.core.names import is_server_name
from mcpwrap.core.wire.secret_index import SecretIndex
from mcpwrap.errors import EXIT_OK, UsageError
from mcpwrap.linux import tty
from mcpwrap.machine import observer, secret_index_file

_NAME = click.argument("name")
_KEY = click.argument("key")


@click.group("secret")
def command() -> None:
    """Set, list and remove the secrets of servers, which are stored sealed.

    \b
    Example:  sudo mcpwrap secret set github TOKEN      # prompts, or reads standard input
    In config.toml, `env = { GITHUB_TOKEN = "${TOKEN}" }` gives it to that server and no other.
    """


@command.command("set")
@_NAME
@_KEY
def set_(name: str, key: str) -> int:
    """Set the secret KEY of server NAME to the text on standard input. Needs root.

    \b
    Example:  sudo mcpwrap secret set github TOKEN < token.txt
    On a terminal it prompts for the value. The newline after a value of one line is removed.
    A running server gets the value at the next start of its wrapper; `rotate` gives it at once.
    Exit status: 0 done, 1 failed, 2 the value or a name cannot be used and nothing was changed.
    """
    _with_value("set", name, key)


@command.command("rotate")
@_NAME
@_KEY
def rotate(name: str, key: str) -> int:
    """Set a secret like `set`, also in a running wrapper: its next session has it. Needs root.

    \b
    Example:  sudo mcpwrap secret rotate github TOKEN < token.txt
    """
    _with_value("rotate", name, key)


@command.command("import")
@click.argument("file", type=click.Path(path_type=Path))
def import_(file: Path) -> int:
    """Set all secrets of an env FILE, each for every server that declares it. Needs root.

    \b
    Example:  sudo mcpwrap secret import mcp-secrets.env && shred -u mcp-secrets.env
    Lines are KEY=VALUE, with quotes as in a shell and no expansion. An error changes nothing.
    """
    try:
        fd = os.open(file, os.O_RDONLY)
    except OSError as error:
        raise UsageError(
            f"cannot be read: {error.strerror}",
            where=str(file),
            fix="name a file that this account can read",
            code="E-USAGE-UNREADABLE-FILE",
        ) from error
    os.dup2(fd, 0)
    become_root_program("secret", "import")


@command.command("remove")
@_NAME
@_KEY
def remove(name: str, key: str) -> int:
    """Delete the secret KEY of server NAME. Needs root.

    \b
    Example:  sudo mcpwrap secret remove github TOKEN
    """
    # A key that mcpwrap made may be removed, as after a restore: the next start makes it anew.
    _expect_names(name, key if key != names.OAUTH_KEY else "OTHER")
    become_root_program("secret", "remove", name, key)


@command.command("rekey")
@click.option(
    "--recovery-key", is_flag=True, help="Open the store with the recovery key on standard input."
)
def rekey(*, recovery_key: bool) -> int:
    """Seal all secrets with a new store key, wrapped by this machine. Needs root.

    \b
    Example:  sudo mcpwrap secret rekey
    After a restore on another machine, which cannot open the old store key:
              sudo mcpwrap secret rekey --recovery-key < recovery-key.txt
    """
    expect_root("secret rekey")
    if recovery_key and sys.stdin.isatty():
        pass_typed("recovery key (not shown)")
    become_root_program("secret", "rekey", *(["--recovery-key"] if recovery_key else []))


@command.command("recovery-key")
def recovery_key() -> int:
    """Print the store key, to store it off this machine with the backup. Needs root.

    \b
    Example:  sudo mcpwrap secret recovery-key > /media/usb/recovery-key.txt
    """
    become_root_program("secret", "recovery-key")


class SecretRow(msgspec.Struct, frozen=True, kw_only=True):
    """Output of `--json` for each secret. `version` is 0 for one that was never set."""

    name: str
    key: str
    is_set: bool
    is_declared: bool  # the configuration refers to it
    version: int
    changed_at: str
    exposure: str  # L0 never in the server · L1 a file of its session · L2 a variable


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_(*, as_json: bool) -> int:
    """List the secrets, and how far each is exposed; values are never shown.

    \b
    Example:  mcpwrap secret list
    Exposure: L0 never in the server, L1 a file that only its session has, L2 a variable of it.
    """
    rows = secret_rows()
    if as_json:
        print_json(rows)
    elif rows:
        print_table(
            ["SERVER", "KEY", "SET", "VERSION", "CHANGED", "EXPOSURE"],
            [[r.name, r.key, _is_set(r), str(r.version), r.changed_at, r.exposure] for r in rows],
        )
    else:
        tty.say('no secrets: refer to one in config.toml, `env = { X = "${KEY}" }`')
    return EXIT_OK


def secret_rows() -> list[SecretRow]:
    """Return one row for each secret that is declared or set."""
    settings, exposure_by_secret = secret_index_file.read(), observer.declared_secrets()
    known = {(n, k) for n, by_key in settings.by_server.items() for k in by_key}
    return [
        _row(settings, name, key, exposure_by_secret.get((name, key), ""))
        for name, key in sorted(known | exposure_by_secret.keys())
    ]


def _row(settings: SecretIndex, name: str, key: str, exposure: str) -> SecretRow:
    setting = settings.of(name, key)
    return SecretRow(
        name=name,
        key=key,
        is_set=setting is not None and setting.is_set,
        is_declared=bool(exposure),
        version=setting.version if setting else 0,
        changed_at=setting.changed_at if setting else "",
        exposure=exposure,
    )


def _is_set(row: SecretRow) -> str:
    if not row.is_set:
        return "NO"
    return "yes" if row.is_declared else "yes, unused"


def _with_value(verb: str, name: str, key: str) -> NoReturn:
    expect_root(f"secret {verb}")
    _expect_names(name, key)
    if sys.stdin.isatty():
        pass_typed(f"{key} of {name} (not shown)")
    become_root_program("secret", verb, name, key)


def _expect_names(name: str, key: str) -> None:
    if not is_server_name(name):
        raise UsageError(
            f"{name!r} is not a valid server name",
            where="mcpwrap secret",
            fix="`mcpwrap status` lists the servers",
            code="E-USAGE-SERVER-NAME",
        )
    try:
        value_parsers.secret_key(key)
    except value_parsers.BadValueError as error:
        raise UsageError(
            error.problem, where="mcpwrap secret", fix=error.fix, code=error.code
        ) from None


def pass_typed(what: str) -> None:
    """Prompt for a value, and put it on standard input for root's program.

    A typed line is shorter than what a pipe holds (termios(3), pipe(7)).
    """
    value = ask_hidden(what)
    read_fd, write_fd = os.pipe()
    os.write(write_fd, value.encode())
    os.close(write_fd)
    os.dup2(read_fd, 0)
