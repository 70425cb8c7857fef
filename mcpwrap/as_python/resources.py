"""Resources of a session: the files that its runs left in /out."""

import base64
import threading
from collections import deque
from collections.abc import Iterable

from mcpwrap.as_python.out_files import OutFiles
from mcpwrap.core.execution import file_types, run_uris, server_protocol
from mcpwrap.core.execution.tool_result import RunFile
from mcpwrap.core.protocol import server_revisions
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import INVALID_PARAMS
from mcpwrap.core.protocol.server_revisions import McpRequestError

_MAX_LISTED = 256  # the last ones; a URI of an earlier one can still be read


class SessionResources:
    """Files of the runs of one session. A file of another session is read by its URI alone."""

    def __init__(self, files: OutFiles) -> None:
        self._files = files
        self._listed: deque[dict[str, Json]] = deque(maxlen=_MAX_LISTED)
        self._lock = threading.Lock()

    def add(self, files: Iterable[RunFile]) -> None:
        """List the files of a run that were kept."""
        with self._lock:
            self._listed.extend(
                {"uri": file.uri, "name": file.name, "mimeType": file.mime_type, "size": file.size}
                for file in files
                if file.uri
            )

    def list_result(self, revision: str) -> dict[str, Json]:
        """Return the result of `resources/list`."""
        with self._lock:
            return server_protocol.cacheable({"resources": [*self._listed]}, revision, ttl_ms=0)

    def read_result(self, uri: Json, revision: str) -> dict[str, Json]:
        """Return the result of `resources/read`. The content of a URI never changes.

        Raises:
            McpRequestError: there is no such file, or none any more.
        """
        if not isinstance(uri, str):
            raise McpRequestError(INVALID_PARAMS, "uri must be a string")
        found = run_uris.parse(uri)
        content = self._files.read(found) if found else None
        if found is None or content is None:
            raise server_revisions.resource_not_found(uri, revision)
        kind = file_types.mime_type(found.name, content)
        text = file_types.text_of(kind, content)
        body: dict[str, Json] = (
            {"blob": base64.b64encode(content).decode()} if text is None else {"text": text}
        )
        contents: Json = [{"uri": uri, "mimeType": kind, **body}]
        return server_protocol.cacheable({"contents": contents}, revision)
