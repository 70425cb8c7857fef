"""Main program of the bed's internet: a command a line, each answered with the recorded traffic.

It ends when its input does. `internet.py` starts it in a network namespace that has no interface
yet; the sockets listen on every address, also on those that are added later.
"""

import asyncio
import resource
import sys

import msgspec
from aiohttp import web

from tests.system.bed.origins import names, registry, wire
from tests.system.bed.origins.app import make_app
from tests.system.bed.origins.certificates import Certificates
from tests.system.bed.origins.held_files import HeldFiles
from tests.system.bed.origins.listen import Listeners, by_port
from tests.system.bed.origins.names import Names
from tests.system.bed.origins.record import AddName, AddPointer, Command, Forget, Report, Seen

# Turns of the loop after which all data that had arrived has been read: a hello, a request.
TURNS = 10


def say(line: bytes) -> None:
    """Send a reply to the host."""
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


async def commands() -> asyncio.StreamReader:
    """Return standard input, which is a pipe."""
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    return reader


async def serve(tasks: asyncio.TaskGroup) -> None:
    """Serve until there are no more commands."""
    loop, seen, certificates = asyncio.get_running_loop(), Seen(), Certificates()
    known, udp, packets = Names(seen), names.udp_socket(), wire.open_wire()
    published = registry.published()
    held = HeldFiles(file.path for file in published if file.is_held)
    app = make_app(registry.files(published), held, seen)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    assert runner.server is not None
    listeners = Listeners(seen, tasks, by_port(certificates, runner.server, known))
    loop.add_reader(udp, names.answer_udp, known, udp)
    loop.add_reader(packets, wire.read_wire, packets, seen.packets)
    say(msgspec.json.encode(certificates.ca_pem))
    reader = await commands()
    while line := await reader.readline():
        listeners.accept()
        for _ in range(TURNS):
            await asyncio.sleep(0)
        wire.read_wire(packets, seen.packets)
        carry_out(msgspec.json.decode(line, type=Command), seen, known)
        say(msgspec.json.encode(seen))


def carry_out(command: Command, seen: Seen, known: Names) -> None:
    """Carry out a command of the host."""
    match command:
        case Report():
            pass
        case Forget():
            seen.clear()
        case AddName():
            known.add(command)
        case AddPointer():
            known.add_pointer(command)


async def main() -> None:
    """Serve, then close connections that are still open."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(serve(tasks))
        await asyncio.wait([serving])
        raise SystemExit


if __name__ == "__main__":
    asyncio.run(main())
