"""Program `/usr/lib/mcpwrap/mcpwrap-remote`: runs in the place of a server that has a URL."""

import asyncio
import logging
import os
import sys
import traceback
from functools import partial
from pathlib import Path

from mcpwrap.core.http.upstream_errors import RemoteError
from mcpwrap.core.wire import session_socket
from mcpwrap.linux.isolation import prctl
from mcpwrap.linux.systemd.stderr_log import log_line

_CA_FILE = "SSL_CERT_FILE"  # read by OpenSSL


def main() -> int:
    """Serve from standard input to standard output until one of them ends.

    Exit status: 0 the agent has closed the session; 1 the session cannot go on, and the reason is
    on standard error.
    """
    prctl.forbid_dumps()  # the credential passes through
    logging.disable(logging.CRITICAL)  # log records of libraries may quote their arguments
    try:
        why = _serve()
    except RemoteError as error:
        why = str(error)
    except Exception as bug:  # noqa: BLE001 - its text may quote the credential
        traceback.print_tb(bug.__traceback__)
        why = f"a bug in mcpwrap: {type(bug).__name__}"
    if why:
        log_line(f"mcpwrap-remote: {why}")
    return 1 if why else 0


def _serve() -> str:
    # While aiohttp is imported it reads all certificate authorities twice, 40 ms each time, for TLS
    # contexts that are not used here. Without authorities these refuse every certificate.
    environ = os.environ  # noqa: TID251 - a main()
    ca_file = environ.get(_CA_FILE)
    environ[_CA_FILE] = os.devnull
    from mcpwrap.as_wrapper.remote import dispatcher  # noqa: PLC0415
    from mcpwrap.as_wrapper.remote.credentials import Credentials  # noqa: PLC0415
    from mcpwrap.as_wrapper.remote.http_client import trusted, upstream_target  # noqa: PLC0415

    environ.pop(_CA_FILE)
    here = upstream_target(environ.get("MCPWRAP_REMOTE", ""))
    headers = environ.get("MCPWRAP_HEADERS")
    credentials = Credentials(Path(headers) if headers else None)
    verify = trusted(ca_file) if here.url.scheme == "https" else None
    bearer_for: dispatcher.BearerFor | None = None
    if oauth := environ.get("MCPWRAP_OAUTH"):
        from mcpwrap.as_wrapper.remote import oauth_session  # noqa: PLC0415 - libsodium, oauthlib

        given = oauth_session.read_session_file(oauth)
        if verb := environ.get(session_socket.LOGIN):
            return oauth_session.run(verb, given, here, verify)
        bearer_for = partial(oauth_session.bearer, given, here, credentials)
    return asyncio.run(dispatcher.serve(here, credentials, verify, (0, 1), bearer_for))


if __name__ == "__main__":
    sys.exit(main())
