"""Program `/usr/libexec/mcpwrap/mcpwrap-python`: in the place of a server that executes code."""

import os
import re
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from mcpwrap.as_python.call_progress import CallTicker
from mcpwrap.as_python.configured_packages import ConfiguredPackages
from mcpwrap.as_python.out_files import MAX_BYTES, OutFiles
from mcpwrap.as_python.packages.environments import PackageEnvironments
from mcpwrap.as_python.replies import ReplyWriter
from mcpwrap.as_python.run_tool import RunTool
from mcpwrap.as_python.session import END_S, PythonSession
from mcpwrap.as_python.worker_client import WorkerClient
from mcpwrap.core.execution.tool import RunEnvironment
from mcpwrap.core.wire.execution import execute_api, worker_file
from mcpwrap.core.wire.server_files import PythonSpec
from mcpwrap.errors import EXIT_FAILED, EXIT_OK, EXIT_USAGE, McpwrapError, UsageError, file_error
from mcpwrap.linux.isolation import prctl
from mcpwrap.linux.systemd.stderr_log import log_line

SPEC = "MCPWRAP_PYTHON"
_CACHE = "XDG_CACHE_HOME"
_TOKEN = re.compile(r"[\x21-\x7e]+")  # of a header's value: RFC 6750 section 2.1, and more


def main() -> int:
    """Serve from standard input to standard output until the agent closes its end.

    Exit status: 0 the agent has closed the session; 1 it broke; 2 the settings are not valid. The
    reason is on standard error.
    """
    prctl.forbid_dumps()  # it holds the worker's token
    # Runs' accounts read installed packages; all else has a mode of its own.
    os.umask(0o022)
    for number in (signal.SIGINT, signal.SIGTERM):  # the run ends with its connection
        signal.signal(number, signal.SIG_DFL)
    environ = os.environ  # noqa: TID251 - a main()
    token = environ.pop(execute_api.TOKEN, "")
    try:
        why = _serve(dict(environ), token)
    except UsageError as error:
        log_line(f"mcpwrap-python: {error}")
        return EXIT_USAGE
    except OSError as error:  # of the cache folder
        log_line(f"mcpwrap-python: {file_error(error)}")
        return EXIT_FAILED
    if why:
        log_line(f"mcpwrap-python: {why}")
        return EXIT_FAILED
    return EXIT_OK


def _serve(environ: Mapping[str, str], token: str) -> str:
    """Serve one session with these settings; return why it broke, or "".

    Raises:
        UsageError: one is missing or not valid. No text quotes the token.
    """
    spec = _spec(environ.get(SPEC, ""))
    if not _TOKEN.fullmatch(token):
        raise UsageError(
            f"the secret {execute_api.TOKEN} is missing or not a token",
            where="mcpwrap-python",
            fix="run `sudo mcpwrap apply`, which makes one",
            code="E-WORKER-TOKEN",
        )
    if not (cache := environ.get(_CACHE)):
        raise _invalid(f"{_CACHE} is not set")
    installer = PackageEnvironments(
        Path(cache), spec.python, max(0, spec.cache_bytes - MAX_BYTES) // 2, environ
    )
    environment = _environment(spec, installer)
    worker = WorkerClient(
        url=spec.worker or f"http://{worker_file.ADDRESS}:{worker_file.PORT}",
        token=token,
        limits=spec.limits,
        ca_file=spec.ca,
    )
    run_tool = RunTool(worker, installer, OutFiles(Path(cache) / "out"), environment)
    configured = ConfiguredPackages(installer, environment)
    session = PythonSession(run_tool, configured.environment, ReplyWriter(1), CallTicker())
    try:
        return session.serve(0)
    finally:
        configured.stop(END_S)


def _spec(text: str) -> PythonSpec:
    try:
        spec = msgspec.json.decode(text, type=PythonSpec)
    except msgspec.MsgspecError as error:
        raise _invalid(f"{SPEC}: {error}") from error
    if spec.worker and spec.packages:
        raise _invalid("`packages` are on this machine, and the worker is on another one")
    return spec


def _invalid(problem: str) -> UsageError:
    return UsageError(
        problem,
        where="mcpwrap-python",
        fix="run `sudo mcpwrap apply`, and let the server's wrapper start this program",
        code="E-PYTHON-SETTINGS",
    )


def _environment(spec: PythonSpec, installer: PackageEnvironments) -> RunEnvironment:
    if spec.worker:  # its interpreter and its packages are not known here
        return RunEnvironment(limits=spec.limits, python_version="", version_by_preinstalled=None)
    try:
        interpreter = installer.interpreter
    except McpwrapError as error:
        raise _invalid(error.problem) from error
    return RunEnvironment(
        limits=spec.limits,
        python_version=interpreter.version,
        packages=spec.packages,
        version_by_preinstalled=interpreter.distributions,
        can_install=spec.installs and installer.has_uv,
    )


if __name__ == "__main__":
    sys.exit(main())
