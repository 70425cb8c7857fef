"""`mcpwrap worker enable`, `disable` and `token`: a worker for Python servers of other machines."""

import errno
import os
import socket
import sys
from pathlib import Path

import click

from mcpwrap.cli.common.become_root import become_root_program, expect_root
from mcpwrap.cli.setup.secret import pass_typed
from mcpwrap.config import value_parsers
from mcpwrap.config.model import Direct
from mcpwrap.config.value_parsers import BadValueError
from mcpwrap.errors import UsageError
from mcpwrap.machine import worker
from mcpwrap.machine.doctor import python_checks
from mcpwrap.plan import paths

_WHERE = "mcpwrap worker enable"
_STDIN = click.option("--stdin", is_flag=True, help="Read the token from standard input.")
_FILE = click.Path(path_type=Path)


@click.command("enable")
@click.option("--listen", required=True, help="ADDRESS:PORT of this machine.")
@click.option("--certificate", required=True, type=_FILE, help="PEM file, with its chain.")
@click.option("--key", required=True, type=_FILE, help="PEM file of its key.")
@_STDIN
def enable(*, listen: str, certificate: Path, key: Path, stdin: bool) -> int:
    """Have this machine execute code for Python servers of other machines. Needs root.

    \b
    Example:  sudo mcpwrap worker enable --listen 10.0.0.5:9443 \\
                  --certificate /etc/ssl/worker.pem --key /etc/ssl/private/worker.key
    Writes [worker] to /etc/mcpwrap/conf.d/worker.toml, prints a new token once, and applies the
    configuration. Machines behind one load balancer need one token: give it to each with --stdin.
    On the machine with the server: `sudo mcpwrap secret set NAME WORKER_RPC_TOKEN`.
    Exit status: 0 done; 1 a step failed, and `mcpwrap apply` continues; 2 refused, and nothing was
    changed.
    """
    expect_root("worker enable")
    place = _place(listen)
    files = (str(certificate.absolute()), str(key.absolute()))
    if flaw := python_checks.certificate_flaw(*files):
        raise UsageError(
            f"{flaw}; nothing was changed",
            where=_WHERE,
            fix="name the PEM files of a certificate and of its key, without a password",
            code="E-WORKER-TLS",
        )
    _expect_free(place)
    become_root_program("worker", "enable", *_token_from(stdin=stdin), listen, *files)


@click.command("disable")
def disable() -> int:
    """Stop executing code for other machines, and forget their token. Needs root.

    \b
    Example:  sudo mcpwrap worker disable
    Their runs end at once; run `mcpwrap worker drain` first, to let them end by themselves.
    Exit status: 0 done; 1 a step failed, and `mcpwrap apply` continues; 2 [worker] is not in
    /etc/mcpwrap/conf.d/worker.toml, and nothing was changed.
    """
    become_root_program("worker", "disable")


@click.command("token")
@_STDIN
def token(*, stdin: bool) -> int:
    """Replace the token of other machines by a new one, and print it. Needs root.

    \b
    Example:  sudo mcpwrap worker token > token.txt
    The former token is refused at once. Standard output is the token alone; nothing with --stdin.
    Exit status: 0 done; 2 the token cannot be used, or no other machine reaches the worker, and
    nothing was changed.
    """
    expect_root("worker token")
    become_root_program("worker", "token", *_token_from(stdin=stdin))


def _token_from(*, stdin: bool) -> list[str]:
    """Return the arguments of root's program about the token. A terminal is prompted."""
    if stdin and sys.stdin.isatty():
        pass_typed("token (not shown)")
    return ["--stdin"] if stdin else []


def _place(listen: str) -> Direct:
    try:
        return value_parsers.direct(listen)
    except BadValueError as error:
        raise UsageError(
            f"{error.problem}; nothing was changed",
            where=_WHERE,
            fix="write an address of this machine and a port: `--listen 10.0.0.5:9443`",
            code="E-WORKER-LISTEN",
        ) from error


def _expect_free(place: Direct) -> None:
    """Refuse an address at which PID 1 could not listen, before anything is written.

    Raises:
        UsageError: it is not of this machine, or another program listens there.
    """
    if worker.configuration().listen == paths.place(place):
        return  # it is the worker itself
    family = socket.AF_INET6 if ":" in place.address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as systemd.socket(5)
        try:
            trial.bind((place.address, place.port))
            trial.listen()
        except OSError as error:
            is_foreign = error.errno == errno.EADDRNOTAVAIL
            raise UsageError(
                f"cannot listen at {paths.place(place)}: {os.strerror(error.errno or 0)}; nothing "
                "was changed",
                where=_WHERE,
                fix="`ip address` lists the addresses of this machine"
                if is_foreign
                else f"`ss -ltnp` shows which program listens at port {place.port}",
                code="E-WORKER-LISTEN",
            ) from error
