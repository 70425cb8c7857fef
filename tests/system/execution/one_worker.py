"""Machine whose worker can be enabled at an address of its own, and requests to it."""

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.system.bed.machine import Machine
from tests.system.support import emptied

ADDRESS, PORT = "10.0.0.5", 9443
LISTEN = f"{ADDRESS}:{PORT}"
CERTIFICATE, KEY = "/etc/ssl/private/worker.pem", "/etc/ssl/private/worker.key"
TOKEN = "0123456789abcdef" * 4
ENABLE = f"worker enable --listen {LISTEN} --certificate {CERTIFICATE} --key {KEY}"
OWN_FILE = "/etc/mcpwrap/conf.d/worker.toml"
# Lost by a boot, as the address of a network card that is configured later than that.
PLUG = f"ip address add {ADDRESS}/32 dev lo"


def make_certificate(certificate: str, key: str, more: str = "-noenc") -> str:
    """Return the command that makes a certificate for ADDRESS and its key."""
    kind = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -days 9"
    names = f"-subj /CN=worker -addext subjectAltName=IP:{ADDRESS}"
    names += " -addext keyUsage=digitalSignature,keyCertSign"
    return f"openssl req -x509 {kind} {names} {more} -keyout {key} -out {certificate}"


@contextmanager
def plugged(suite: str) -> Iterator[Machine]:
    """Boot a machine that has the address, and a certificate for it."""
    with emptied.booted(suite) as machine:
        machine.as_root(f"{PLUG}; umask 077; {make_certificate(CERTIFICATE, KEY)}")
        yield machine


def enable(machine: Machine, token: str = TOKEN, *, status: int = 0) -> str:
    """Run `mcpwrap worker enable` with this token; return its output and its errors."""
    done = machine.as_root(f"mcpwrap {ENABLE} --stdin", stdin=f"{token}\n", status=status)
    return done.out + done.err


def reply(
    machine: Machine, path: str, token: str = TOKEN, *arguments: str, scheme: str = "https"
) -> tuple[int, dict[str, Any]]:
    """Return status and body of the worker's reply to another machine; 0 if there is none.

    The request comes from the address itself, as root: no packet rule concerns its account.
    """
    url = f"{scheme}://{LISTEN}/{path}"
    given = ["--cacert", CERTIFICATE, "-H", "@-", "-w", "\n%{http_code}", *arguments, url]
    done = machine.as_root(f"curl -s {shlex.join(given)} || true", stdin=header(token))
    body, _, status = done.out.rpartition("\n")
    return int(status), json.loads(body) if body.startswith("{") else {}


def header(token: str) -> str:
    """Return the header with a token; nothing without one."""
    return f"Authorization: Bearer {token}\n" if token else ""


def execute(
    machine: Machine, code: str = "print(1)", token: str = TOKEN
) -> tuple[int, dict[str, Any]]:
    """Return status and body of the reply to `POST /execute`."""
    return reply(machine, "execute", token, "-d", json.dumps({"code": code}))


def state_of(machine: Machine, status: int) -> dict[str, Any]:
    """Return what `mcpwrap worker status` shows; it must end with this status."""
    shown = machine.as_user("alice", "mcpwrap worker status --json", status=status).out
    found: dict[str, Any] = json.loads(shown)
    return found


def pool(machine: Machine) -> dict[str, Any]:
    """Return the row of the only pool in `mcpwrap worker status`."""
    (found,) = json.loads(machine.look("mcpwrap worker status --json || true"))["pools"].values()
    return dict(found)
