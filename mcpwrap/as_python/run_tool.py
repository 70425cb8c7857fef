"""Tool `run_python`: from the arguments of a call to its result.

Nothing here executes code: packages are resolved by `packages/`, and the worker runs the code.
"""

import base64
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec

from mcpwrap.as_python.call_progress import CallInProgress
from mcpwrap.as_python.configured_packages import InstalledPackages, PackageInstaller
from mcpwrap.as_python.out_files import OutFiles
from mcpwrap.as_python.worker_client import WorkerClient
from mcpwrap.core.execution import arguments, hints, tool_result, worker_errors
from mcpwrap.core.execution.arguments import ArgumentError, RunArguments
from mcpwrap.core.execution.hints import FinishedRun
from mcpwrap.core.execution.packages import requirements, script_metadata
from mcpwrap.core.execution.run_uris import RunUri
from mcpwrap.core.execution.tool import RunEnvironment
from mcpwrap.core.execution.tool_result import RunFile
from mcpwrap.core.execution.worker_errors import WorkerError
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.wire.execution import job_frames
from mcpwrap.core.wire.execution.execute_api import ExecuteRequest, ExecuteResult
from mcpwrap.errors import McpwrapError
from mcpwrap.linux.systemd.stderr_log import log_line


@dataclass(frozen=True, slots=True)
class RunTool:
    """Tool of one server. Calls may use it from several threads."""

    worker: WorkerClient
    installer: PackageInstaller
    files: OutFiles
    environment: RunEnvironment

    def call(
        self,
        untrusted: Mapping[str, Json],
        call: CallInProgress,
        revision: str,
        *,
        is_later_call: bool,
    ) -> tuple[dict[str, Json], list[RunFile]]:
        """Return the result of a call, and the files of /out.

        Raises:
            CallCancelledError: it was cancelled.
        """
        try:
            given = arguments.parse(untrusted, self.environment.limits)
            inputs = self._inputs(given)
            with self._packages(given, call) as packages:
                call.report("waiting for the worker")
                result = self.worker.execute(_request(given, inputs, packages.name), call)
                installed = self._installed(packages)
        except ArgumentError as error:
            return tool_result.failure(f"{error}; {worker_errors.NOT_EXECUTED}"), []
        except McpwrapError as error:
            return tool_result.failure(_package_failure(error)), []
        except WorkerError as error:
            return tool_result.failure(str(error)), []
        result = _within_limits(result, self.environment.limits.output_bytes)
        out = self._kept(result)
        run = FinishedRun(
            code=given.code,
            stdout=result.stdout,
            stderr=result.stderr,
            exit_code=result.exit_code,
            has_value=result.value is not None,
            has_files=bool(out) or result.left_out > 0,
            is_later_call=is_later_call,
            names_in=frozenset(inputs),
            can_install=self.environment.can_install,
            installed=installed,
        )
        return tool_result.success(result, out, _hint(given, result, run), revision), out

    def _inputs(self, given: RunArguments) -> dict[str, bytes]:
        """Return the files for /in.

        Raises:
            ArgumentError: a URI names no file, or the files are too large together.
        """
        inputs: dict[str, bytes] = {}
        for name, each in given.files.items():
            inputs[name] = self._content(each) if isinstance(each, RunUri) else each
        arguments.check_size(inputs)
        return inputs

    def _content(self, uri: RunUri) -> bytes:
        content = self.files.read(uri)
        if content is None:
            raise ArgumentError(
                f"{uri} in `files` names no file: it was never kept, or it was evicted since; run "
                "the code that wrote it again"
            )
        return content

    @contextmanager
    def _packages(self, given: RunArguments, call: CallInProgress) -> Iterator[InstalledPackages]:
        """Hold the packages of a run: what it requires is installed, or there already."""
        configured, metadata = self.environment.packages, script_metadata.read(given.code)
        version = self.environment.python_version
        if version:
            requirements.expect_python(metadata.requires_python, version)
        wanted = (*metadata.dependencies, *given.packages)
        if self.environment.can_install:
            configured, wanted = (*configured, *wanted), ()
        required = set(requirements.merge(wanted)) - set(requirements.merge(configured))
        with self.installer.prepare(configured, call.report) as packages:
            requirements.expect_installed(required, self._installed(packages), version)
            yield packages

    def _installed(self, packages: InstalledPackages) -> Mapping[str, str] | None:
        """Return the versions of what a run has; None if they are not known here."""
        preinstalled = self.environment.version_by_preinstalled
        if preinstalled is None:
            return None
        return requirements.unite_versions(packages.distributions, preinstalled)

    def _kept(self, result: ExecuteResult) -> list[RunFile]:
        listed = [file for file in result.files if job_frames.is_file_name(file.name)]
        listed = listed[: job_frames.MAX_FILES_OUT]
        content_by_name = {
            file.name: content for file in listed if (content := _decoded(file.data)) is not None
        }
        try:
            uri_by_name = self.files.keep(list(content_by_name.items()))
        except OSError as error:
            log_line(f"mcpwrap-python: files of /out cannot be kept: {error.strerror}")
            uri_by_name = {}
        return [
            RunFile(
                name=file.name,
                size=file.size,
                uri=str(uri) if (uri := uri_by_name.get(file.name)) else None,
                content=content_by_name.get(file.name),
            )
            for file in listed
        ]


def _decoded(data: str | None) -> bytes | None:
    """Return the content of a file; None if there is none, or it is not base64."""
    try:
        return None if data is None else base64.b64decode(data, validate=True)
    except ValueError:
        return None


def _request(given: RunArguments, inputs: Mapping[str, bytes], packages: str) -> ExecuteRequest:
    return ExecuteRequest(
        code=given.code,
        timeout=given.timeout_s,
        files={name: base64.b64encode(content).decode() for name, content in inputs.items()},
        packages=packages,
    )


def _within_limits(result: ExecuteResult, output_bytes: int) -> ExecuteResult:
    """Cut what the worker has not cut: one on another machine may have other limits."""
    stdout = tool_result.cut(result.stdout, output_bytes)
    stderr = tool_result.cut(result.stderr, output_bytes)
    value = result.value and tool_result.cut(result.value, job_frames.MAX_VALUE_BYTES)
    if (stdout, stderr, value) == (result.stdout, result.stderr, result.value):
        return result
    return msgspec.structs.replace(
        result, stdout=stdout, stderr=stderr, value=value, truncated=True
    )


def _hint(given: RunArguments, result: ExecuteResult, run: FinishedRun) -> str:
    parts = []
    if given.lowered_from_s:
        parts.append(
            f"the timeout of {given.lowered_from_s} s was lowered to {given.timeout_s} s "
            "(runs.seconds)"
        )
    if result.left_out:
        parts.append(hints.of_left_out(result.left_out))
    # An error that names a limit has its own advice.
    if result.error is None and (hint := hints.hint_of(run)):
        parts.append(hint)
    return "; ".join(parts)


def _package_failure(error: McpwrapError) -> str:
    explanation = "".join(f"\n  {line}" for line in error.more)
    return f"{error.named_problem}{explanation}\n{error.fix}; {worker_errors.NOT_EXECUTED}"
