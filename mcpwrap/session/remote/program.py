"""Program that runs in the place of a server with a URL: from standard input to standard output."""

import asyncio
import logging
import os
import ssl
import traceback
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mcpwrap.core.http.upstream_errors import RemoteError
from mcpwrap.linux.isolation import prctl
from mcpwrap.linux.systemd.stderr_log import log_line
from mcpwrap.session.remote.credentials import Credentials
from mcpwrap.session.remote.variables import CA_FILE, URL

if TYPE_CHECKING:
    from mcpwrap.session.remote.dispatcher import BearerFor
    from mcpwrap.session.remote.http_client import UpstreamTarget


def run(serve: Callable[[], str], name: str) -> int:
    """Run `serve`, which returns why the session broke; log that, and return the exit status.

    Exit status: 0 the agent has closed the session; 1 the session cannot go on.
    """
    prctl.forbid_dumps()  # the credential passes through
    logging.disable(logging.CRITICAL)  # log records of libraries may quote their arguments
    try:
        why = serve()
    except RemoteError as error:
        why = str(error)
    except Exception as bug:  # noqa: BLE001 - its text may quote the credential
        traceback.print_tb(bug.__traceback__)
        why = f"a bug in mcpwrap: {type(bug).__name__}"
    if why:
        log_line(f"{name}: {why}")
    return 1 if why else 0


@dataclass(frozen=True, slots=True)
class PreparedUpstream:
    """Target of a session, its credentials, and the authorities that vouch for it over TLS."""

    target: "UpstreamTarget"
    credentials: Credentials
    verify: ssl.SSLContext | None


def prepared(environ: MutableMapping[str, str], credentials: Credentials) -> PreparedUpstream:
    """Return what a session with the URL of the environment needs. It is that of the process.

    Raises:
        RemoteError: it is not an HTTP URL, or the authorities cannot be read.
    """
    # While aiohttp is imported it reads all certificate authorities twice, 40 ms each time, for TLS
    # contexts that are not used here. Without authorities these refuse every certificate.
    ca_file = environ.get(CA_FILE)
    environ[CA_FILE] = os.devnull
    from mcpwrap.session.remote.http_client import trusted, upstream_target  # noqa: PLC0415

    del environ[CA_FILE]
    target = upstream_target(environ.get(URL, ""))
    verify = trusted(ca_file) if target.url.scheme == "https" else None
    return PreparedUpstream(target, credentials, verify)


def serve(upstream: PreparedUpstream, bearer_for: "BearerFor | None" = None) -> str:
    """Serve from standard input to standard output; return why the session broke, or ""."""
    from mcpwrap.session.remote import dispatcher  # noqa: PLC0415 - with aiohttp: see `prepared`

    relay = dispatcher.serve(
        upstream.target, upstream.credentials, upstream.verify, (0, 1), bearer_for
    )
    return asyncio.run(relay)
