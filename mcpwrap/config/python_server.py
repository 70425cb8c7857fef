"""Parser of a Python server's table (`python`), and of `[worker]`, for other machines."""

import re

from mcpwrap.config import local_program, quantities, value_parsers
from mcpwrap.config.file_types.config_file import (
    MAX_AT_ONCE,
    MAX_SECONDS,
    MAX_TASKS,
    ProgramSettings,
    PythonSettings,
    RunLimitsTable,
    WorkerTable,
)
from mcpwrap.config.file_types.fields import keys_of, keys_without
from mcpwrap.config.model import Direct, Python, Server, WorkerListener
from mcpwrap.config.toml_table import TomlTableReader
from mcpwrap.config.value_parsers import BadValueError
from mcpwrap.core.execution.packages import requirements
from mcpwrap.core.execution.packages.package_errors import PackageError
from mcpwrap.core.names import MAX_POOL_CHARS
from mcpwrap.core.wire.execution.worker_file import LISTENER_POOL, RunLimits

_PLAIN_PATH = re.compile(r"[A-Za-z0-9/._+-]+")
_NO_PROGRAM = "is for a program, and a server with `python` does not run one"


def read(name: str, reader: TomlTableReader, ours: TomlTableReader) -> Python:
    """Return the interpreter, packages, worker and run limits of a Python server.

    `ours` is the reader of the sub-table `mcpwrap`.
    """
    if len(name) > MAX_POOL_CHARS or name == LISTENER_POOL:
        reader.note(
            "",
            f"{name!r} cannot be the name of a Python server: accounts of its runs are named so",
            f"use at most {MAX_POOL_CHARS} characters, and not `{LISTENER_POOL}`",
            code="E-PYTHON-NAME",
        )
    for key in local_program.TABLE_KEYS:
        reader.refuse(key, _NO_PROGRAM, "remove it", code="E-PYTHON-PROGRAM-SETTING")
    python = Python(
        interpreter=reader.one("python", interpreter, ""),
        packages=ours.many("packages", requirement),
        worker=ours.one("worker", worker, None),
        worker_ca=ours.one("worker_ca", readable_file, ""),
        limits=run_limits(ours.table("runs")),
    )
    if python.worker_ca and not python.worker:
        ours.note(
            "worker_ca",
            "is for a worker on another machine, and `worker` is not set",
            "remove it",
            code="E-PYTHON-WORKER-CA",
        )
    if python.packages and python.worker:
        ours.note(
            "packages",
            "a worker on another machine has the packages of its own interpreter only",
            "install them on that machine, for every account, and remove `packages`",
            code="E-PYTHON-REMOTE-PACKAGES",
        )
    return python


def expect_no_program(server: Server, ours: TomlTableReader) -> None:
    """Note settings that only another program could use."""
    for key in local_program.changed_settings(
        server, keys_without(PythonSettings, ProgramSettings)
    ):
        ours.note(key, _NO_PROGRAM, "remove it", code="E-PYTHON-PROGRAM-SETTING")
    if isinstance(server.runs, Python) and server.runs.packages and not server.egress:
        ours.note(
            "packages",
            "there is no `egress` by which they could be downloaded",
            'write `egress = ["@pypi"]`',
            code="E-PYTHON-PACKAGES-NO-EGRESS",
        )


def listener(table: TomlTableReader) -> WorkerListener | None:
    """Return this machine's worker for other machines; None if a setting is missing or wrong."""
    listen = table.one("listen", value_parsers.direct, None)
    found = {key: table.has(key) for key in ("certificate", "key")}
    texts = {key: table.one(key, plain_path, "") for key in found}
    python = table.one("python", interpreter, "/usr/bin/python3")
    limits = run_limits(table.table("runs"))
    table.finish(keys_of(WorkerTable))
    for key, is_there in found.items():
        if not is_there:
            table.note(
                key,
                "is missing: other machines reach the worker by TLS only",
                f'write `{key} = "/etc/…"`, the path of a PEM file',
                code="E-WORKER-TLS",
            )
    if listen is None:
        table.note(
            "listen",
            "is missing or wrong",
            'write `listen = "10.0.0.5:9443"`, an address of this machine',
            code="E-WORKER-LISTEN",
        )
        return None
    return WorkerListener(
        listen=listen,
        interpreter=python,
        certificate=texts["certificate"],
        key=texts["key"],
        limits=limits,
    )


def run_limits(table: TomlTableReader) -> RunLimits:
    """Return the limits of each run."""
    usual = RunLimits()
    limits = RunLimits(
        memory_bytes=table.one("memory", quantities.size_bytes, usual.memory_bytes),
        cpu_percent=table.one("cpu", quantities.percent, usual.cpu_percent),
        tasks=table.count("tasks", usual.tasks, MAX_TASKS),
        seconds=table.count("seconds", usual.seconds, MAX_SECONDS),
        at_once=table.count("at_once", usual.at_once, MAX_AT_ONCE),
        code_bytes=table.one("code", quantities.small_size_bytes, usual.code_bytes),
        output_bytes=table.one("output", quantities.small_size_bytes, usual.output_bytes),
    )
    table.finish(keys_of(RunLimitsTable))
    return limits


def interpreter(value: str) -> str:
    """Parse the path of a Python interpreter, of which each run sees the folder."""
    path = plain_path(value)
    if not path.startswith(("/usr/", "/opt/")):
        raise BadValueError(
            f"{value!r} is not in /usr or /opt, and a run sees no other programs",
            'write `python = "/usr/bin/python3"`, or install another one under /opt',
            code="E-PYTHON-INTERPRETER",
        )
    return path


def plain_path(value: str) -> str:
    """Parse a path that stands in a unit file, where other characters would be directives."""
    path = value_parsers.absolute_path(value)
    if not _PLAIN_PATH.fullmatch(path):
        raise BadValueError(
            f"{value!r} has a character that a unit file cannot have in a path",
            "use a path of A-Z, a-z, 0-9 and . _ + - only",
            code="E-PYTHON-PATH",
        )
    return path


def requirement(value: str) -> str:
    """Parse a requirement: a name, with extras and versions."""
    try:
        return str(requirements.parse(value))
    except PackageError as error:
        raise BadValueError(error.problem, error.fix, code=error.code) from error


def worker(value: str) -> Direct:
    """Parse the URL of a worker on another machine: `https://10.0.0.5:9443`."""
    place = value.removeprefix("https://").removesuffix("/")
    if place == value:
        raise BadValueError(
            f"{value!r} is not an https URL of a worker",
            'write `worker = "https://10.0.0.5:9443"`',
            code="E-PYTHON-WORKER",
        )
    return value_parsers.direct(place)


def readable_file(value: str) -> str:
    """Parse the path of a file that a server may read."""
    path = value_parsers.absolute_path(value)
    if path.startswith(("/etc/mcpwrap/", "/home/", "/root/", "/run/", "/tmp/", "/var/")):  # noqa: S108
        raise BadValueError(
            f"{value!r} is in a folder that no server sees",
            "copy the certificate to /etc/ssl/certs or /usr/local/share/ca-certificates",
            code="E-PYTHON-WORKER-CA",
        )
    return path
