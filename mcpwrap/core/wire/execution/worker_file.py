"""Root's configuration of the worker: `/var/lib/mcpwrap/worker.json`, written by `apply`.

A pool is the set of run slots of one Python server, or of the machine's own listener for other
machines (`[worker]`). The token of a pool is not in this file: the file TOKENS/POOL has its
SHA-256, as 64 hexadecimal digits, written by root's program that minted the token.
"""

import msgspec

MIB = 1024**2
ADDRESS = "127.79.0.1"  # of the worker's socket on loopback; packet rules open it to a few UIDs
PORT = 52200
TOKENS = "/var/lib/mcpwrap/worker"
JOB_SOCKETS = "/run/mcpwrap/job"  # `POOL-N.sock` is the socket of slot N of a pool
LISTENER_POOL = "worker"  # the pool of `[worker]`; no Python server has this name
# Systemd credentials of the worker, and their content where the file does not exist.
CERTIFICATE, KEY, NO_CREDENTIAL = "certificate", "key", "missing"
QUEUED_PER_SLOT = 4  # requests that wait for a slot; more are answered with 429


class RunLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of one run, but for `at_once`, which is the number of slots."""

    memory_bytes: int = 512 * MIB
    cpu_percent: int = 100  # of one processor
    tasks: int = 256  # processes and threads
    seconds: int = 60
    at_once: int = 2
    code_bytes: int = 64 * 1024
    output_bytes: int = 256 * 1024  # of standard output and of standard error, each


class Pool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Pool of run slots."""

    limits: RunLimits


class Worker(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Content of the file. Without pools the worker answers each request with 401."""

    pools: dict[str, Pool] = {}
    listen: str = ""  # `ADDRESS:PORT` that other machines reach, by TLS; "" for none


def decode(text: bytes) -> Worker:
    """Parse root's file.

    Raises:
        msgspec.MsgspecError: it is malformed, or of another version.
    """
    try:
        return msgspec.json.decode(text, type=Worker)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(str(error)) from error


def job_socket(pool: str, number: int, folder: str = JOB_SOCKETS) -> str:
    """Return the path of the socket at which PID 1 starts the run slot."""
    return f"{folder}/{pool}-{number}.sock"
