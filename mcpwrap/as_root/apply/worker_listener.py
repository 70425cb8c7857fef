"""`mcpwrap worker`: this machine's worker for Python servers of other machines, and its token.

The configuration is a file of its own, and the hash of the token another. Both are written
together or not at all; then `apply` makes the machine match. After an interruption the same
command, or `apply`, completes the rest. A hash without the configuration has no effect, because
there is no pool for it.
"""

import re
import secrets
import stat
from pathlib import Path

from mcpwrap.as_root.apply import apply
from mcpwrap.as_root.secrets import mint
from mcpwrap.config.model import Config
from mcpwrap.config.parse import SourceFile, parse, parse_part
from mcpwrap.config.toml_writer import toml_of_worker
from mcpwrap.core.wire.execution.execute_api import TOKEN
from mcpwrap.core.wire.execution.worker_file import LISTENER_POOL
from mcpwrap.errors import McpwrapError, UsageError, nothing_changed
from mcpwrap.linux import root_files, tty
from mcpwrap.linux.root_files import NewFile
from mcpwrap.machine import observer, planning
from mcpwrap.plan import paths
from mcpwrap.plan.diff.diff import RetirementPolicy

_WHERE = "mcpwrap worker"
_EMPTY = "# The MCP servers of this machine: `man mcpwrap.toml`.\n"
_TOP = (
    "# Written by `mcpwrap worker enable`, removed by `mcpwrap worker disable`. Add `python` and\n"
    "# `runs` here: `man mcpwrap.toml`, [worker].\n"
)
_TOKEN = re.compile(r"[\x21-\x7e]{32,512}")  # in the header of a request; long enough to be random
_TOKEN_BYTES = 32


def enable(listen: str, certificate: str, key: str, given_token: str | None) -> None:
    """Make the worker listen at an address, for requests with the token; without one, make one.

    Raises:
        McpwrapError: a setting is invalid, the worker has other settings, or a step failed.
    """
    if given_token is not None:
        _expect_token(given_token)
    _expect_files(certificate, key)
    text = _TOP + toml_of_worker(listen, certificate, key)
    added = _added(text)
    apply.check_workspaces(planning.planned(added=added).wanted)
    files = [NewFile(path=path, text=content) for path, content in added.items()]
    if given_token or added or not Path(paths.worker_token(LISTENER_POOL)).exists():
        token = given_token or _new_token()
        with nothing_changed():
            root_files.replace_all([mint.token_hash_file(LISTENER_POOL, token), *files])
        if not given_token:
            _show(token)
    else:
        tty.say("the token stays as it is: `sudo mcpwrap worker token` makes another one")
    apply.apply(RetirementPolicy.KEEP)


def disable() -> None:
    """Make the worker listen for other machines no more. The token is forgotten.

    Raises:
        McpwrapError: the configuration is not in a file of its own, or a step failed.
    """
    if _configured().worker is not None:
        path = _own_file()
        config = parse(observer.config_files({path: ""}))
        if config.worker is not None or _has_more(path):
            raise UsageError(
                "[worker] is in another file, or beside other settings; nothing was changed",
                where=_WHERE,
                fix=f"remove the table [worker] from {paths.CONFIG_FILE} or {paths.CONFIG_DIR}, "
                "then `sudo mcpwrap apply`",
                code="E-WORKER-OTHER-FILE",
            )
        with nothing_changed():
            root_files.remove(path)
    root_files.remove(paths.worker_token(LISTENER_POOL))
    apply.apply(RetirementPolicy.KEEP)


def renew(given_token: str | None) -> None:
    """Replace the token; without one, make and print one. The worker refuses the former at once.

    Raises:
        UsageError: the token cannot be used, or no other machine reaches the worker.
    """
    if given_token is not None:
        _expect_token(given_token)
    if _configured().worker is None:
        raise UsageError(
            "the worker does not listen for other machines; nothing was changed",
            where=_WHERE,
            fix="`sudo mcpwrap worker enable --help` shows how; a Python server of this machine "
            "gets its token when it starts",
            code="E-WORKER-NOT-ENABLED",
        )
    token = given_token or _new_token()
    with nothing_changed():
        mint.write_token_hash(LISTENER_POOL, token)
    if not given_token:
        tty.say(token)  # alone on standard output, for a pipe to the other machine
    tty.warn("servers that send the former token are refused from now on")


def _new_token() -> str:
    """Return a random token, which a person can copy."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def _expect_token(token: str) -> None:
    """Refuse a token that a header cannot carry, or that could be guessed from its hash.

    Raises:
        UsageError: with the rule, and without the token.
    """
    if not _TOKEN.fullmatch(token):
        raise UsageError(
            "the token on standard input cannot be used; nothing was changed",
            where=_WHERE,
            fix="give 32 to 512 random characters of ASCII, without spaces, on one line",
            code="E-WORKER-TOKEN-VALUE",
        )


def _show(token: str) -> None:
    tty.say(f"token: {token}")
    tty.say(
        f"It is shown once. On each machine with a Python server that uses this worker, set it: "
        f"`sudo mcpwrap secret set NAME {TOKEN}`"
    )


def _own_file() -> str:
    return f"{paths.CONFIG_DIR}/worker.toml"


def _configured() -> Config:
    return parse(observer.config_files())


def _added(text: str) -> dict[str, str]:
    """Return the files to write, by path: none if they exist with this text.

    Raises:
        UsageError: the file exists with another text.
    """
    added = {} if observer.has_configuration() else {paths.CONFIG_FILE: _EMPTY}
    path = _own_file()
    try:
        there = root_files.read_roots_own(path)
    except FileNotFoundError:
        return {**added, path: text}
    if there != text.encode():
        raise UsageError(
            "exists, with other settings; nothing was changed",
            where=path,
            fix="edit it and run `sudo mcpwrap apply`, or first run `sudo mcpwrap worker disable`",
            code="E-WORKER-CONFIGURED",
        )
    return added


def _has_more(path: str) -> bool:
    """Return whether a file of the configuration has other tables than [worker]."""
    alone = parse_part([SourceFile(path, root_files.read_roots_own(path))])
    return alone != Config({}, {}, worker=alone.worker)


def _expect_files(certificate: str, key: str) -> None:
    """Refuse a certificate or key that another account can change, or a key that it can read.

    Links are followed, as of certificates that a program renews.

    Raises:
        UsageError: it can, or the file does not exist.
    """
    for path in (certificate, key):
        try:
            found = Path(path).resolve(strict=True)
            root_files.expect_roots_file(str(found))
            is_open = path == key and found.stat().st_mode & stat.S_IROTH
        except (OSError, RuntimeError) as error:  # RuntimeError: a loop of links
            raise _unusable(path, str(error)) from error
        except McpwrapError as error:
            raise _unusable(path, error.problem.removesuffix("; nothing was changed")) from error
        if is_open:
            raise _unusable(path, "every account can read it")


def _unusable(path: str, why: str) -> UsageError:
    return UsageError(
        f"cannot be used: {why}; nothing was changed",
        where=path,
        fix="name the PEM files of a certificate and its key, which root alone can change",
        code="E-WORKER-TLS",
    )
