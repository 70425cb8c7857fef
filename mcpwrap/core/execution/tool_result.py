"""Result of the tool `run_python`: text, structured content, images and links to files."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass

from mcpwrap.core.execution import file_types, server_protocol
from mcpwrap.core.execution.output_window import OutputWindow
from mcpwrap.core.protocol import strict_json
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.wire.execution.execute_api import ExecuteResult

MAX_IMAGES = 8
MAX_IMAGE_BYTES = 256 * 1024
# Larger images are scaled down for models, so their bytes are spent for nothing.
MAX_IMAGE_SIDE_PX = 1568
# The worker has cut the output already, and its line about the cut is added to the limit.
_CUT_LINE_BYTES = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFile:
    """File of /out, as it was received."""

    name: str
    size: int
    uri: str | None  # None: it was not kept
    content: bytes | None

    @property
    def mime_type(self) -> str:
        """Return the type: of an image by its content, else by the name."""
        return file_types.mime_type(self.name, self.content or b"")


def success(
    result: ExecuteResult, files: Sequence[RunFile], hint: str, revision: str
) -> dict[str, Json]:
    """Return the result of a call whose code was executed, whatever its outcome."""
    structured = structured_content(result, files, hint)
    content: list[Json] = [{"type": "text", "text": strict_json.encode(structured).decode()}]
    shown: set[str] = set()
    for file in files:
        if file.content is not None and len(shown) < MAX_IMAGES and _is_shown(file.content):
            shown.add(file.name)
            data = base64.b64encode(file.content).decode()
            content.append({"type": "image", "data": data, "mimeType": file.mime_type})
    if not server_protocol.has_structured_results(revision):
        return {"content": content, "isError": False}
    content += [_link(file) for file in files if file.uri and file.name not in shown]
    return {"content": content, "structuredContent": structured, "isError": False}


def failure(text: str) -> dict[str, Json]:
    """Return the result of a call whose code was not executed, or whose result is lost."""
    return {"content": [{"type": "text", "text": text}], "isError": True}


def structured_content(
    result: ExecuteResult, files: Sequence[RunFile], hint: str
) -> dict[str, Json]:
    """Return the result as an object of `tool.OUTPUT_SCHEMA`."""
    listed: list[Json] = [
        {"name": file.name, "uri": file.uri, "size": file.size, "mimeType": file.mime_type}
        for file in files
    ]
    content: dict[str, Json] = {
        "stdout": result.stdout,
        "stderr": result.stderr,
        "exit_code": result.exit_code,
        "error": result.error,
        "truncated": result.truncated,
        "duration_ms": result.duration_ms,
        "killed": result.killed,
        "value": result.value,
        "files": listed,
        "peak_memory": result.peak_memory_bytes or None,
        "cpu_ms": result.cpu_ms,
        "run": result.run,
        "ending": result.ending,
        "timeout": result.timeout,
    }
    return {**content, "hint": hint} if hint else content


def cut(text: str, limit_bytes: int) -> str:
    """Return a text as `OutputWindow` cuts it, if the worker cannot have done so already."""
    whole = text.encode()
    # The worker has cut it by bytes: each that is not UTF-8 has become a character of three.
    if len(whole) <= 3 * limit_bytes + _CUT_LINE_BYTES:
        return text
    window = OutputWindow(limit_bytes)
    window.feed(whole)
    return window.text()


def _is_shown(content: bytes) -> bool:
    if len(content) > MAX_IMAGE_BYTES:
        return False
    image = file_types.image_in(content)
    return image is not None and image.longest_side_px <= MAX_IMAGE_SIDE_PX


def _link(file: RunFile) -> dict[str, Json]:
    link: dict[str, Json] = {
        "type": "resource_link",
        "uri": file.uri,
        "name": file.name,
        "mimeType": file.mime_type,
        "size": file.size,
    }
    image = file_types.image_in(file.content or b"")
    if image is None:
        return link
    size = f"{image.width_px}×{image.height_px} px, {file.size} bytes"  # noqa: RUF001 - a product
    return {**link, "description": f"image, not shown: {size}"}
