"""Emergency stop of a server, in root's files; one that cannot be read stops all servers."""

from contextlib import suppress
from pathlib import Path

from mcpwrap.as_gate.state.refusal import RefusalError
from mcpwrap.core.wire import panic_file, session_socket
from mcpwrap.errors import UsageError
from mcpwrap.linux.root_files import expect_roots_file

PANIC = (Path("/run/mcpwrap/panic.json"), Path("/var/lib/mcpwrap/panic.json"))
SERVERS = Path("/var/lib/mcpwrap/servers")


def expect_no_panic(name: str) -> None:
    """Refuse a server under an emergency stop; a file that cannot be read stops all servers."""
    _expect_roots_own(name)
    for file in PANIC:
        with suppress(FileNotFoundError):
            if panic_file.decode(file.read_bytes()).stops(name):
                why = "stopped in an emergency, until `sudo mcpwrap resume` [E-SESSION-PANIC]"
                raise RefusalError(session_socket.Exit.UNAVAILABLE, why)


def _expect_roots_own(name: str) -> None:
    """Refuse a server if others than root could have changed its definition or emergency stop."""
    for file in (SERVERS / f"{name}.json", *PANIC):
        try:
            expect_roots_file(str(file))
        except FileNotFoundError:
            continue
        except UsageError as error:
            why = f"{error.where}: {error.problem}; see `mcpwrap status` [E-SESSION-ROOT-FILE]"
            raise RefusalError(session_socket.Exit.UNAVAILABLE, why) from error
