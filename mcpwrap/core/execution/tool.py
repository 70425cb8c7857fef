"""Definition of the tool `run_python`: its description and schemas, from the server's settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import get_args

from mcpwrap.core.execution import endings, run_uris, server_protocol
from mcpwrap.core.execution.packages import requirements
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.wire.execution import job_frames
from mcpwrap.core.wire.execution.execute_api import Ending
from mcpwrap.core.wire.execution.worker_file import RunLimits

NAME = "run_python"
_FEW = 40  # more names than that are not listed: the description is in each prompt of the model

_NO_OTHERS = "No other packages can be added."
_DESCRIPTION = """\
Every call starts empty; carry files by `files`: no variables, imports or files of earlier calls.
Runs Python{version} code as a script (main.py), in an account of its own without network: fetch \
with your other tools, and pass the bytes by `files`.
Files of `files` are in /in, read-only. Files written to /out come back as resources with `run://` \
URIs, which `files` of a later call takes. /tmp is scratch. Open matplotlib figures, and images in \
/out, are shown.
`value` is the repr of a last expression. Standard input is empty.
{packages}
Limits: {seconds} s, {memory} of memory, {cpu} % of one processor, {tasks} processes and threads, \
code {code}, output {output} (head and tail are kept), `files` {files}, {at_once} runs at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnvironment:
    """Environment of runs, as it is described to the model."""

    limits: RunLimits
    python_version: str  # "" if it is not known here, as with a worker on another machine
    packages: tuple[str, ...] = ()  # the configured requirements
    version_by_package: Mapping[str, str] = field(default_factory=dict)  # resolved from them
    # Those of the interpreter; None: it is on another machine, and not known here.
    version_by_preinstalled: Mapping[str, str] | None = field(default_factory=dict)
    can_install: bool = False  # calls may name further packages


def definition(environment: RunEnvironment, revision: str) -> dict[str, Json]:
    """Return the tool as `tools/list` has it."""
    tool: dict[str, Json] = {
        "name": NAME,
        "description": description(environment),
        "inputSchema": input_schema(environment),
        # It changes nothing that outlives the call, and has no network. Not idempotent: code may
        # use time and random numbers.
        "annotations": {
            "title": "Run Python",
            "readOnlyHint": False,
            "destructiveHint": False,
            "idempotentHint": False,
            "openWorldHint": False,
        },
    }
    if server_protocol.has_structured_results(revision):
        tool["outputSchema"] = OUTPUT_SCHEMA
    return tool


def description(environment: RunEnvironment) -> str:
    """Return the description. Its first sentence is the one that models get wrong most often."""
    limits = environment.limits
    return _DESCRIPTION.format(
        version=f" {environment.python_version}" if environment.python_version else "",
        packages=_packages(environment),
        seconds=limits.seconds,
        memory=endings.size(limits.memory_bytes),
        cpu=limits.cpu_percent,
        tasks=limits.tasks,
        code=endings.size(limits.code_bytes),
        output=endings.size(limits.output_bytes),
        files=endings.size(job_frames.MAX_IN_BYTES),
        at_once=limits.at_once,
    )


def _packages(environment: RunEnvironment) -> str:
    added, preinstalled = environment.version_by_package, environment.version_by_preinstalled
    if preinstalled is None:
        return (
            "Installed: the standard library, and packages of another machine's interpreter, which "
            f"importlib.metadata lists. {_NO_OTHERS}"
        )
    united = requirements.unite_versions(added, preinstalled)
    others = {name: version for name, version in united.items() if name not in added}
    longest = max(len(added), len(others))
    names = _listed(added) or ", ".join(environment.packages)
    names = ", ".join(part for part in (names, _listed(others)) if part)
    there = f"Installed: the standard library{', ' if names else ''}{names}."
    if longest > _FEW:
        there += " importlib.metadata lists all."
    if environment.can_install:
        return (
            f"{there} `packages` adds others for one call, from wheels; so does a block of script "
            "metadata (PEP 723)."
        )
    return f"{there} {_NO_OTHERS}"


def _listed(version_by_name: Mapping[str, str]) -> str:
    names = sorted(version_by_name, key=str.lower)[:_FEW]
    return ", ".join(f"{name} {version_by_name[name]}" for name in names)


def input_schema(environment: RunEnvironment) -> dict[str, Json]:
    """Return the schema of the arguments; `arguments.parse` is what decides."""
    limits = environment.limits
    properties: dict[str, Json] = {
        "code": {
            "type": "string",
            "minLength": 1,
            "description": f"Python source, at most {limits.code_bytes} bytes.",
        },
        "timeout": {
            "type": "integer",
            "minimum": 1,
            "description": f"Seconds; above {limits.seconds} it is lowered. Default: "
            f"{limits.seconds}.",
        },
        "files": {
            "type": "object",
            "maxProperties": job_frames.MAX_FILES_IN,
            "description": "Files for /in: content by plain file name. A string is text, but a "
            "`run://` URI of an earlier result is that file; bytes are "
            '{"base64": "…"}.',
            "additionalProperties": {"anyOf": _FILE_FORMS},
        },
    }
    if environment.can_install:
        properties["packages"] = {
            "type": "array",
            "maxItems": requirements.MAX_REQUIREMENTS,
            "items": {"type": "string", "maxLength": requirements.MAX_CHARACTERS},
            "description": 'Names with optional versions, such as ["pandas>=2", "pillow"].',
        }
    return {
        "type": "object",
        "properties": properties,
        "required": ["code"],
        "additionalProperties": False,
    }


_FILE_FORMS: list[Json] = [
    {"type": "string"},
    {
        "type": "object",
        "properties": {"base64": {"type": "string"}},
        "required": ["base64"],
        "additionalProperties": False,
    },
    {
        "type": "object",
        "properties": {"uri": {"type": "string", "pattern": f"^{run_uris.SCHEME}"}},
        "required": ["uri"],
        "additionalProperties": False,
    },
]
_NUMBER: Json = {"type": "integer"}
_TEXT: Json = {"type": "string"}
_PROPERTIES: dict[str, Json] = {
    "stdout": _TEXT,
    "stderr": _TEXT,
    "exit_code": {"type": "integer", "description": "128+N is signal N."},
    "error": {"type": ["string", "null"], "description": "A limit or signal that ended the run."},
    "truncated": {"type": "boolean", "description": "The middle of stdout or stderr is missing."},
    "duration_ms": _NUMBER,
    "killed": {"type": "boolean", "description": "A limit ended the run."},
    "value": {"type": ["string", "null"], "description": "repr of the last expression."},
    "files": {
        "type": "array",
        "description": "Files of /out.",
        "items": {
            "type": "object",
            "properties": {
                "name": _TEXT,
                "uri": {
                    "type": ["string", "null"],
                    "description": "For `files` of a later call; null: too large to be kept.",
                },
                "size": _NUMBER,
                "mimeType": _TEXT,
            },
            "required": ["name", "uri", "size", "mimeType"],
            "additionalProperties": False,
        },
    },
    "peak_memory": {
        "type": ["integer", "null"],
        "description": "Bytes; null if unknown.",
    },
    "cpu_ms": _NUMBER,
    "run": {"type": "string", "description": "ID, as in the journal of the worker."},
    "ending": {
        "type": "string",
        "enum": list(get_args(Ending)),
        "description": "What ended the run: `exit` if it ended by itself.",
    },
    "timeout": {"type": "integer", "description": "Seconds that were in force."},
    "hint": {"type": "string", "description": "Advice for the next call."},
}
OUTPUT_SCHEMA: dict[str, Json] = {
    "type": "object",
    "properties": _PROPERTIES,
    "required": [key for key in _PROPERTIES if key != "hint"],
    "additionalProperties": False,
}
