"""View of a server's pins at the start of a session, read by the session's process."""

from mcpwrap.as_gate.pins.files import PinsFiles
from mcpwrap.as_gate.state.refusal import RefusalError
from mcpwrap.core.pins.pins_file import DamagedPinsError
from mcpwrap.core.pins.pins_view import PinsView, view_of
from mcpwrap.core.wire import session_socket


def read(server: str) -> PinsView:
    """Return the view of a server's pins, as they are in force.

    For a session of the server it is read after the monitor knows that: each later change is sent.

    Raises:
        RefusalError: they are damaged, so that what was accepted is not known.
    """
    files = PinsFiles(server)
    try:
        pins, _ = files.read()
        return view_of(pins, files.read_held())
    except (DamagedPinsError, OSError) as error:
        why = (
            f"the pins of {server!r} cannot be read: {error}: an administrator finds out with "
            "`sudo mcpwrap audit verify` [E-PINS-DAMAGED]"
        )
        raise RefusalError(session_socket.Exit.UNAVAILABLE, why) from error
