"""Program `/usr/libexec/mcpwrap/mcpwrap-remote`: runs in the place of a server that has a URL."""

import os
import sys
from functools import partial
from pathlib import Path

from mcpwrap.core.wire import session_socket
from mcpwrap.session.remote import program
from mcpwrap.session.remote.credentials import Credentials
from mcpwrap.session.remote.variables import HEADERS_FILE


def main() -> int:
    """Serve from standard input to standard output until one of them ends.

    Exit status: 0 the agent has closed the session; 1 the session cannot go on, and the reason is
    on standard error.
    """
    return program.run(_serve, "mcpwrap-remote")


def _serve() -> str:
    environ = os.environ  # noqa: TID251 - a main()
    headers = environ.get(HEADERS_FILE)
    upstream = program.prepared(environ, Credentials(Path(headers) if headers else None))
    oauth = environ.get("MCPWRAP_OAUTH")
    if not oauth:
        return program.serve(upstream)
    from mcpwrap.as_wrapper.remote import oauth_session  # noqa: PLC0415 - libsodium, oauthlib

    given = oauth_session.read_session_file(oauth)
    if verb := environ.get(session_socket.LOGIN):
        return oauth_session.run(verb, given, upstream.target, upstream.verify)
    bearer = partial(oauth_session.bearer, given, upstream.target, upstream.credentials)
    return program.serve(upstream, bearer)


if __name__ == "__main__":
    sys.exit(main())
