"""Search for a value in each path an account can read. Runs inside the machine, as any account.

It takes its texts reversed, so that the search does not find itself.
"""

import base64
import os
import stat
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

MAX_FILE_BYTES = 64 * 1024**2
# Not files with content: present memory, and files that answer only to a write.
NO_CONTENT = {"kcore", "kmsg", "kpagecount", "kpageflags", "kpagecgroup", "mem", "pagemap"}
# A server must not list the root, nor /run.
TOPS = ["/etc", "/home", "/opt", "/run/credentials", "/run/mcpwrap/rt", "/tmp", "/usr", "/var"]
COMMANDS = [
    ["journalctl", "--no-pager", "--all", "--output=export"],
    ["systemctl", "show", "--no-pager", "--all", "*"],
    ["systemctl", "status", "--no-pager", "--full", "--lines=1000", "mcpwrap*"],
    ["systemctl", "cat", "--no-pager", "mcpwrap*"],
    ["loginctl", "list-sessions"],
    ["ps", "axeww", "-o", "user,args,cgroup"],
    ["mcpwrap", "status", "--json"],
    ["mcpwrap", "secret", "list", "--json"],
    ["mcpwrap", "plan", "--json"],
]


def forms(text: str) -> list[bytes]:
    """Return the searched forms; of base64 the part that does not depend on adjacent bytes."""
    raw = text.encode()
    found = [raw, raw.hex().encode(), raw.hex().upper().encode()]
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + raw)
        inner = encoded[-(-8 * before // 6) : 8 * (before + len(raw)) // 6]
        found += [inner, inner.replace(b"+", b"-").replace(b"/", b"_")]
    return found


def holds(content: bytes, text: str) -> bool:
    """Return whether a text is in there, in any of its forms."""
    return any(form in content for form in forms(text))


def entries(folder: str) -> set[str]:
    """Return the names in a folder."""
    with os.scandir(folder) as found:
        return {entry.name for entry in found}


def content(path: str) -> bytes:
    """Return the content of a plain file; nothing for another kind, or an unreadable one."""
    with suppress(OSError):
        if stat.S_ISREG(os.lstat(path).st_mode):
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
            with os.fdopen(fd, "rb") as file:
                return file.read(MAX_FILE_BYTES)
    with suppress(OSError):
        return str(Path(path).readlink()).encode()
    return b""


def new_files(top: str, since: float) -> Iterator[tuple[str, bytes]]:
    """Yield all names, and the content of files that have changed since the machine was started."""
    for folder, folders, names in os.walk(top):
        for name in [*folders, *names]:
            path = f"{folder}/{name}"
            yield path, name.encode()
            with suppress(OSError):
                if os.lstat(path).st_ctime >= since:
                    yield path, content(path)


def processes() -> Iterator[tuple[str, bytes]]:
    """Yield the files and links of every process, and the folders that only it may have."""
    for pid in filter(str.isdigit, entries("/proc")):
        with suppress(OSError):
            for name in entries(f"/proc/{pid}") - NO_CONTENT:
                yield f"/proc/{pid}/{name}", content(f"/proc/{pid}/{name}")
        with suppress(OSError):
            for name in entries(f"/proc/{pid}/fd"):
                yield f"/proc/{pid}/fd/{name}", content(f"/proc/{pid}/fd/{name}")
        if _namespace(pid) not in {None, _namespace("self")}:
            for place in ("run/mcpwrap", "run/credentials", "tmp", "var/tmp", "dev/shm"):
                yield from new_files(f"/proc/{pid}/root/{place}", 0)


def _namespace(pid: str) -> str | None:
    with suppress(OSError):
        return str(Path(f"/proc/{pid}/ns/mnt").readlink())
    return None


def everything(since: float, within_s: float) -> Iterator[tuple[str, bytes]]:
    """Yield every place with its content, but of files from before the machine's start the name.

    Each command may take `within_s`.
    """
    tops = set(TOPS)
    with suppress(PermissionError):
        tops |= {f"/{name}" for name in entries("/") - {"proc", "sys"}}
    tops -= {top for top in tops if Path(top).is_symlink()}  # /lib, as /usr/lib
    for top in tops:
        yield from new_files(top, since)
    yield from new_files("/sys/fs/cgroup", float("inf"))  # the names of control groups
    yield from new_files("/proc/sys", 0)
    for name in entries("/proc") - NO_CONTENT:
        yield f"/proc/{name}", content(f"/proc/{name}")
    yield from processes()
    for command in COMMANDS:
        with suppress(OSError):
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=within_s,
                check=False,
            )
            yield " ".join(command), done.stdout + done.stderr


def places(since: float, within_s: float, texts_backwards: list[str]) -> list[list[str]]:
    """Return the places that have each text, plain, as hexadecimal or as base64."""
    wanted = [forms(text[::-1]) for text in texts_backwards]
    shortest_bytes = min(len(form) for some in wanted for form in some)
    found: list[set[str]] = [set() for _ in wanted]
    for place, what in everything(since, within_s):
        if len(what) < shortest_bytes:
            continue
        for number, some in enumerate(wanted):
            if any(form in what for form in some):
                found[number].add(place)
    return [sorted(one) for one in found]
