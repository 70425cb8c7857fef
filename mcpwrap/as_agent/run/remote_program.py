"""Client of `mcpwrap run --url`, which runs in the sandbox in the place of a server."""

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from mcpwrap.core.http.upstream_errors import RemoteError
from mcpwrap.session.remote import program
from mcpwrap.session.remote.credentials import Credentials
from mcpwrap.session.remote.variables import HEADERS

if TYPE_CHECKING:
    from aiohttp import ClientResponse

_LOG_IN = "a login needs the installed package; without it, give a token by `--bearer-from VAR`"
_UNAUTHORIZED = f"The remote server requires a login (HTTP 401): {_LOG_IN} [E-RUN-URL-LOGIN]"
_REFUSED = (
    "The remote server refuses the credential (HTTP 401): set a new one in the variable that "
    f"`--bearer-from` or `--header-from` names; {_LOG_IN} [E-RUN-URL-LOGIN]"
)
_FORBIDDEN = (
    "The remote server forbids this (HTTP 403): the credential may lack a permission; give one "
    "that has it by `--bearer-from VAR` or `--header-from NAME=VAR` [E-RUN-URL-FORBIDDEN]"
)


def main() -> int:
    """Serve from standard input to standard output until one of them ends.

    Exit status: 0 the agent has closed the session; 1 the session cannot go on, and the reason is
    on standard error.
    """
    return program.run(_serve, "mcpwrap run")


def _serve() -> str:
    environ = os.environ  # noqa: TID251 - a main()
    headers = msgspec.json.decode(environ.pop(HEADERS, "{}"), type=dict[str, str])
    upstream = program.prepared(environ, Credentials.fixed(headers))
    target = replace(upstream.target, shown_host=upstream.target.url.host or "")
    bearer = CallersToken(has_headers=bool(headers))
    return program.serve(replace(upstream, target=target), lambda _: bearer)


class CallersToken:
    """Source of no token of a login: it says what the caller can do where one is required."""

    def __init__(self, *, has_headers: bool) -> None:
        self._has_headers = has_headers

    async def header(self) -> Mapping[str, str]:
        """Return no header: the caller's are sent in any case."""
        return {}

    async def instead_of(self, _refused: Mapping[str, str]) -> Mapping[str, str]:
        """Raise the error for a request without a valid credential.

        Raises:
            RemoteError: always.
        """
        raise RemoteError(_REFUSED if self._has_headers else _UNAUTHORIZED, status=401)

    def expect_enough(self, answer: "ClientResponse") -> None:
        """Raise the error for a request that the server forbids without an own message.

        Raises:
            RemoteError: it does.
        """
        if answer.status == 403 and not answer.content_type.endswith("json"):
            raise RemoteError(_FORBIDDEN, status=403)

    async def finish(self) -> None:
        """Wait for nothing."""


if __name__ == "__main__":
    sys.exit(main())
