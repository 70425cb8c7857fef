"""Arguments of the tool `run_python`: parsed, and checked against the limits of the server."""

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mcpwrap.core.execution import run_uris
from mcpwrap.core.execution.run_uris import RunUri
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.wire.execution import job_frames
from mcpwrap.core.wire.execution.worker_file import RunLimits

KEYS = ("code", "timeout", "packages", "files")
_SPACE = re.compile(r"\s+")
_MAX_QUOTED_CHARS = 80


class ArgumentError(ValueError):
    """Call that is refused for its arguments. The text is for the agent; nothing was executed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunArguments:
    """Parsed arguments of one call."""

    code: str
    timeout_s: int  # at most `seconds` of the limits
    lowered_from_s: int | None = None  # the requested timeout, if it was above the limit
    packages: tuple[str, ...] = ()  # requirements; `packages/requirements.merge` judges them
    files: Mapping[str, bytes | RunUri] = field(default_factory=dict)


def parse(arguments: Mapping[str, Json], limits: RunLimits) -> RunArguments:
    """Return the arguments; an optional one that is null counts as absent.

    Raises:
        ArgumentError: an argument is missing, unknown, of a wrong type, or above a limit.
    """
    for key in arguments:
        if key not in KEYS:
            raise ArgumentError(f"{_quoted(key)} is not an argument; they are {', '.join(KEYS)}")
    requested_s = _timeout(arguments.get("timeout"))
    timeout_s = min(requested_s or limits.seconds, limits.seconds)
    return RunArguments(
        code=_code(arguments.get("code"), limits.code_bytes),
        timeout_s=timeout_s,
        lowered_from_s=requested_s if requested_s and requested_s > timeout_s else None,
        packages=_packages(arguments.get("packages")),
        files=_files(arguments.get("files")),
    )


def check_size(files: Mapping[str, bytes]) -> None:
    """Check the size of all files of a call together, once their content is known.

    Raises:
        ArgumentError: they are too large.
    """
    size = sum(map(len, files.values()))
    if size > job_frames.MAX_IN_BYTES:
        raise ArgumentError(
            f"`files` has {size} bytes, and {job_frames.MAX_IN_BYTES} is the limit: pass fewer or "
            "smaller files"
        )


def _code(value: Json, limit: int) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ArgumentError("`code` must be a string with Python code")
    if (size := len(value.encode())) > limit:
        raise ArgumentError(
            f"`code` has {size} bytes, and {limit} is the limit (runs.code): pass data by `files`"
        )
    return value


def _timeout(value: Json) -> int | None:
    if value is None:
        return None
    # A model may write 30.0; true is an int to Python.
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ArgumentError("`timeout` must be a whole number of seconds")
    if value != int(value) or value < 1:
        raise ArgumentError("`timeout` must be a whole number of seconds, at least 1")
    return int(value)


def _packages(value: Json) -> tuple[str, ...]:
    if value is None:
        return ()
    found = [each for each in value if isinstance(each, str)] if isinstance(value, list) else None
    if found is None or found != value:
        raise ArgumentError('`packages` must be a list of strings, such as ["pandas>=2"]')
    return tuple(found)


def _files(value: Json) -> dict[str, bytes | RunUri]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ArgumentError("`files` must be an object: the content by file name")
    if len(value) > job_frames.MAX_FILES_IN:
        raise ArgumentError(
            f"`files` has {len(value)} files, and {job_frames.MAX_FILES_IN} is the limit"
        )
    for name in value:
        if not job_frames.is_file_name(name):
            raise ArgumentError(
                f"{_quoted(name)} in `files` cannot be a name in /in: use a plain file name, "
                "without folders, that does not begin with a dot"
            )
    return {name: _content(name, each) for name, each in value.items()}


def _content(name: str, value: Json) -> bytes | RunUri:
    if isinstance(value, str):
        # A file of several lines is text, whatever it begins with.
        is_uri = value.startswith(run_uris.SCHEME) and not _SPACE.search(value)
        return _uri(value) if is_uri else value.encode()
    if isinstance(value, dict) and len(value) == 1:
        [(kind, inner)] = value.items()
        if isinstance(inner, str) and kind in _CONTENT_BY_KIND:
            return _CONTENT_BY_KIND[kind](inner)
    raise ArgumentError(
        f"{_quoted(name)} in `files` must be text (a string), "
        '{"base64": "…"}, or {"uri": "run://…"} of a file of /out of an earlier run'
    )


def _uri(value: str) -> RunUri:
    uri = run_uris.parse(value)
    if uri is None:
        raise ArgumentError(
            f"{_quoted(value)} in `files` is not the URI of a file of an earlier run: copy it "
            "unchanged from `files` of that run's result"
        )
    return uri


def _base64(value: str) -> bytes:
    try:
        return base64.b64decode(_SPACE.sub("", value), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ArgumentError("a `base64` in `files` is not valid base64 (RFC 4648)") from error


_CONTENT_BY_KIND: Mapping[str, Callable[[str], bytes | RunUri]] = {"base64": _base64, "uri": _uri}


def _quoted(text: str) -> str:
    cut = text if len(text) <= _MAX_QUOTED_CHARS else text[:_MAX_QUOTED_CHARS] + "…"
    return repr(cut)
