"""Printable parts of a server entry: no part that could be a secret."""

from typing import Literal
from urllib.parse import urlsplit

from mcpwrap.config.agent_files.parsed_file import ListedServer
from mcpwrap.config.agent_files.transport import HttpTransport, StdioTransport, Transport


def project_of(listed: ListedServer) -> str:
    """Return the folder to which the file restricts an entry; "" if it restricts it to none."""
    return listed.at[1] if listed.at[0] == "projects" else ""


def kind_of(launch: Transport) -> Literal["stdio", "remote", ""]:
    """Return whether it is a program or a URL; "" for an unknown transport."""
    match launch:
        case StdioTransport():
            return "stdio"
        case HttpTransport():
            return "remote"
        case _:
            return ""


def runs_of(launch: Transport) -> str:
    """Return the command, or the origin of the URL; no part that could be a secret."""
    match launch:
        case StdioTransport(command=name):
            return name
        case HttpTransport(url=url):
            return _origin(url)
        case _:
            return ""


def _origin(url: str) -> str:
    """Return scheme, host and port. User, path and query are left out: they can hold a token."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
