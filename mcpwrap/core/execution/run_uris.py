"""URIs of files that runs left in /out: `run://ID/NAME`.

ID is 128 random bits in hexadecimal, made by the Python server for each run. A URI is a capability:
an agent that has it can read the file, until the file is evicted.
"""

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote

from mcpwrap.core.text import uris
from mcpwrap.core.wire.execution import job_frames

SCHEME = "run://"
ID_BYTES = 16
RUN_ID = re.compile(r"[0-9a-f]{32}")
_URI = re.compile(rf"{SCHEME}({RUN_ID.pattern})/([^/?#]+)")


@dataclass(frozen=True, slots=True)
class RunUri:
    """File of an earlier run."""

    run_id: str
    name: str

    def __str__(self) -> str:
        return f"{SCHEME}{self.run_id}/{quote(self.name, safe='')}"


def parse(untrusted_uri: str) -> RunUri | None:
    """Return the file that a URI names; None unless it is spelled as `RunUri` writes it."""
    found = _URI.fullmatch(untrusted_uri)
    if found is None:
        return None
    uri = RunUri(found[1], unquote(found[2]))
    return uri if job_frames.is_file_name(uri.name) and str(uri) == untrusted_uri else None


def can_name(name: str) -> bool:
    """Return whether a file of this name can have a URI.

    The gate refuses URIs that parsers spell differently, such as one with an escaped backslash.
    """
    return job_frames.is_file_name(name) and uris.is_normal(str(RunUri("0" * 32, name)))
