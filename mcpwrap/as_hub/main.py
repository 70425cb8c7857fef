"""Program `/usr/libexec/mcpwrap/mcpwrap-hub`: runs in the place of a server that offers others."""

import mmap
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence

import msgspec

from mcpwrap import __version__
from mcpwrap.as_hub.session import HubSession
from mcpwrap.core.hub.message_hub import MessageHub
from mcpwrap.core.wire.hub import hub_catalogue, hub_channel
from mcpwrap.core.wire.server_files import HubSpec
from mcpwrap.errors import EXIT_OK, EXIT_USAGE
from mcpwrap.linux.isolation import prctl
from mcpwrap.linux.systemd.stderr_log import log_line


def main() -> int:
    """Serve from standard input to standard output until the agent closes its end.

    Exit status: 0 the session is over; 2 it was not started by a wrapper.
    """
    prctl.forbid_dumps()  # messages of all members pass through its memory
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    try:
        hub = _hub(sys.argv[1:], dict(os.environ))  # noqa: TID251 - a main()
        channel = socket.socket(fileno=hub_channel.CHANNEL_FD)
    except (OSError, ValueError) as error:  # MsgspecError is a ValueError
        log_line(f"mcpwrap-hub: {error}: its server's wrapper starts it")
        return EXIT_USAGE
    HubSession(hub, channel, from_agent_fd=0, to_agent_fd=1).serve()
    return EXIT_OK


def _hub(args: Sequence[str], environ: Mapping[str, str]) -> MessageHub:
    if len(args) != 1:
        raise ValueError("it has one argument, the name of its server")
    spec = msgspec.json.decode(environ.get(hub_channel.VARIABLE, ""), type=HubSpec)
    with mmap.mmap(hub_channel.CATALOGUE_FD, 0, prot=mmap.PROT_READ) as content:
        catalogue = hub_catalogue.decode(content[:])
    os.close(hub_channel.CATALOGUE_FD)
    return MessageHub(args[0], __version__, spec, catalogue)


if __name__ == "__main__":
    sys.exit(main())
