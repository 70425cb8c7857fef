"""Sessions from chosen folders and by forged descriptors. Runs in the machine, as an agent."""

import array
import ctypes
import json
import os
import socket
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

GATE = "/run/mcpwrap/gate.sock"
SRC = "/home/alice/src"
FOLDER = os.O_RDONLY | os.O_DIRECTORY
_SEEN = f"import os; result = [os.getcwd(), sorted(os.listdir({SRC!r}))]"


def _call(code: str) -> bytes:
    params = {"name": "x", "arguments": {"code": code}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return json.dumps(message).encode() + b"\n"


def _send(sock: socket.socket, data: bytes, fds: Sequence[int]) -> None:
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    sock.sendmsg([data], rights)


def seen_with(server: str, fds: Sequence[int], within_s: float) -> Any:
    """Open a session with these descriptors as the current folder; return what its server sees.

    A refusal is returned as the gate's text.
    """
    gate = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    gate.settimeout(within_s)
    gate.connect(GATE)
    (its_in, to_it), (from_it, its_out) = os.pipe(), os.pipe()
    _send(gate, b"mcpwrap 1\0" + server.encode(), [its_in, its_out])
    os.close(its_out)
    while (packet := gate.recv(65536))[:1] not in {b"S", b"!"}:
        if packet[:1] == b"?":
            gate.send(b"\0")
        elif packet == b"D":
            _send(gate, b"D", fds)
    if packet[:1] == b"!":
        return packet.decode()
    os.write(to_it, _call(_SEEN))
    with os.fdopen(from_it) as answers:
        return json.loads(answers.readline())["result"]["told"]


def leave_at_once(server: str, count: int) -> None:
    """Pass a folder for a session this often, and leave before it has started."""
    for _ in range(count):
        gate = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        gate.connect(GATE)
        its_in, to_it = os.pipe()
        from_it, its_out = os.pipe()
        folder = os.open(f"{SRC}/a", FOLDER)
        _send(gate, b"mcpwrap 1\0" + server.encode(), [its_in, its_out])
        packet = gate.recv(65536)
        if packet[:1] == b"?":
            gate.send(b"\0")
            packet = gate.recv(65536)
        assert packet == b"D", packet
        _send(gate, b"D", [folder])
        gate.close()
        for fd in (its_in, to_it, from_it, its_out, folder):
            os.close(fd)


FORGED: dict[str, Callable[[], Sequence[int]]] = {
    "none": list,
    "file": lambda: [os.open(f"{SRC}/a/file", os.O_RDONLY)],
    "socket": lambda: [socket.socket(socket.AF_UNIX).detach()],
    "pipe": lambda: [os.pipe()[0]],
    "path": lambda: [os.open(f"{SRC}/a", os.O_PATH | os.O_DIRECTORY)],
    "proc": lambda: [os.open("/proc", FOLDER)],
    "two": lambda: [os.open(f"{SRC}/a", FOLDER)] * 2,
    "folder": lambda: [os.open(f"{SRC}/a", FOLDER)],
}


def forged(server: str, within_s: float) -> dict[str, Any]:
    """Return what a session sees with each of the forged descriptors, and with an honest one."""
    return {name: seen_with(server, make(), within_s) for name, make in FORGED.items()}


def seen_in_turn(server: str, names: Sequence[str], count: int) -> list[Any]:
    """Start a session in each of these projects in turn, as fast as they go.

    Returns each that sees something else than its own project.
    """
    wrong = []
    for number in range(count):
        name = names[number % len(names)]
        done = subprocess.run(
            ["mcpwrap-connect", server],
            input=_call(_SEEN),
            capture_output=True,
            cwd=f"{SRC}/{name}",
        )
        told = json.loads(done.stdout)["result"]["told"] if done.stdout else done.stderr.decode()
        if told != [f"{SRC}/{name}", [name]]:
            wrong.append((name, told))
    return wrong


def seen_in_long_path(server: str, folder: str, within_s: float) -> Any:
    """Make folders in each other until the path has over 4096 bytes; open a session there."""
    os.chdir(folder)
    for _ in range(45):
        Path("d" * 100).mkdir()
        os.chdir("d" * 100)
    return seen_with(server, [os.open(".", FOLDER)], within_s)


def attempts_on(sibling: str) -> dict[str, str]:
    """Try on a sibling project, by its path, what Landlock does not restrict; as the server."""
    inotify = ctypes.CDLL(None, use_errno=True)

    def watch() -> None:
        fd = inotify.inotify_init1(0)
        if inotify.inotify_add_watch(fd, sibling.encode(), 0xFFF) < 0:
            raise OSError(ctypes.get_errno(), "inotify")

    file = f"{sibling}/file"
    tried: dict[str, Callable[[], object]] = {
        "stat": Path(file).stat,
        "chdir": lambda: os.chdir(sibling),
        "path": lambda: os.open(sibling, os.O_PATH),
        "chmod": lambda: Path(file).chmod(0o644),
        "utime": lambda: os.utime(file),
        "setxattr": lambda: os.setxattr(file, "user.x", b"x"),
        "truncate": lambda: os.truncate(file, 5),
        "inotify": watch,
        "list": lambda: list(Path(sibling).iterdir()),
        "rename": lambda: Path(file).rename(f"{file}.x"),
    }
    found = {}
    for name, action in tried.items():
        try:
            action()
            found[name] = "done"
        except OSError as error:
            found[name] = f"OSError {error.errno}"
    return found


def read_through(pids: Sequence[int], paths: Sequence[str]) -> list[list[str]]:
    """Return, for each process, which of these paths in its folder of /proc can be read."""
    return [[path for path in paths if _is_read(f"/proc/{pid}/{path}")] for pid in pids]


def _is_read(path: str) -> bool:
    try:
        return bool(Path(path).read_text())
    except OSError:
        return False
