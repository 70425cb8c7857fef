"""Notifications to alice about changes of her agents' files. Runs inside the machine, as root.

Her service manager and the units are as they are, but for shorter pauses; notify-send records its
arguments.
"""

import json
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HOME = Path("/home/alice")
SHOWN = HOME / "shown"
NOTIFY_SEND = f"#!/bin/sh\nprintf '%s\\0' \"$@\" end >> {SHOWN}\n"
# A failed run is retried after a minute: longer than a wait of this story may take.
PAUSE = "[Service]\nExecStartPre=\nExecStartPre=/usr/bin/sleep 2\nRestartSec=1\n"
# pam_systemd would set it; libpam-systemd is not in this machine.
RUNTIME = "[Service]\nEnvironment=XDG_RUNTIME_DIR=/run/user/%i\n"
STUB = {"command": "/usr/bin/mcpwrap-connect", "args": ["probe"]}
RAW = {"command": "npx", "args": ["--token", "s3cr3t"], "env": {"TOKEN": "s3cr3t"}}
LOOK_EVERY_S = 0.1  # there is no event for the runs of her units
UNIT = "mcpwrap-drift.path"
EXTENSIONS = ".gemini/extensions"
_within_s = [60.0]  # the bound of each wait; the last one holds


def sh(command: str) -> str:
    return subprocess.run(command, shell=True, check=True, capture_output=True, text=True).stdout


def of_alice(command: str) -> str:
    return sh(f"runuser -u alice -- env HOME={HOME} XDG_RUNTIME_DIR=/run/user/1000 {command}")


def wait_for(what: Callable[[], bool]) -> None:
    give_up_at_s = time.monotonic() + _within_s[-1]
    while not what():
        if time.monotonic() > give_up_at_s:
            raise SystemExit(f"not within {_within_s[-1]} s: {shown()}\n{told_by_units()}")
        time.sleep(LOOK_EVERY_S)


def told_by_units() -> str:
    return sh("journalctl -b --no-pager _UID=1000 | tail -n 40")


def shown() -> list[list[str]]:
    text = SHOWN.read_text() if SHOWN.exists() else ""
    return [one.split("\0")[:-1] for one in text.split("end\0")[:-1]]


def looks() -> int:
    """Return the number of finished runs."""
    return sh("journalctl -b --no-pager _UID=1000").count("Finished mcpwrap-drift.service")


def failed_looks() -> list[str]:
    """Return the journal's lines about failed runs and their retries, with their reason."""
    lines = sh("journalctl -b --no-pager -o cat _UID=1000").splitlines()
    found = [number for number, line in enumerate(lines) if "mcpwrap-drift.service: Main" in line]
    return [line for number in found for line in lines[max(0, number - 5) : number + 1]]


def paths() -> list[str]:
    """Return the state of each of our path units that is there."""
    listed = of_alice("systemctl --user list-units 'mcpwrap-drift*.path' --output=json")
    return [one["active"] for one in json.loads(listed)]


def at_rest() -> bool:
    """Return whether each path unit waits: changes before that are not reported."""
    listed = of_alice("systemctl --user list-units 'mcpwrap-drift*.path' --output=json")
    return {one["sub"] for one in json.loads(listed)} == {"waiting"}


def replace(path: str, **servers: object) -> None:
    """Replace a file as agents do: a new file beside the old one, and a rename."""
    new = HOME / f"{path}.tmp"
    if not new.parent.exists():
        of_alice(f"mkdir -p {new.parent}")
    new.write_text(json.dumps({"mcpServers": servers}))
    shutil.chown(new, "alice", "alice")
    new.rename(HOME / path)


def is_next(path: str, **servers: object) -> list[str]:
    """Return the notification for a file with these servers."""
    wait_for(at_rest)
    before = len(shown())
    replace(path, **servers)
    wait_for(lambda: len(shown()) > before)
    return shown()[-1]


def is_quiet(path: str, **servers: object) -> bool:
    """Return whether it runs without a notification when a file has these servers."""
    wait_for(at_rest)
    before, looked = len(shown()), looks()
    replace(path, **servers)
    wait_for(lambda: looks() > looked)
    return len(shown()) == before


def begin() -> None:
    Path("/usr/bin/notify-send").write_text(NOTIFY_SEND)
    sh("chmod 755 /usr/bin/notify-send; id alice || useradd -m -u 1000 -s /bin/bash alice")
    sh("mcpwrap apply")
    for unit, text in (("system/user@", RUNTIME), ("user/mcpwrap-drift", PAUSE)):
        drop_in = Path(f"/etc/systemd/{unit}.service.d/bed.conf")
        drop_in.parent.mkdir(parents=True)
        drop_in.write_text(text)
    sh("systemctl daemon-reload; systemctl start user@1000.service")
    wait_for(Path("/run/user/1000/systemd/private").exists)


def play(within_s: float) -> dict[str, Any]:
    """Change files as agents do; return alice's notifications, and the states of the units."""
    _within_s.append(within_s)
    begin()
    enabled = sh(f"systemctl --global is-enabled {UNIT} mcpwrap-notify.service || true").split()
    seen: dict[str, Any] = {"enabled": enabled}
    replace(".claude.json", old=RAW)
    of_alice(f"mkdir -p {HOME / EXTENSIONS}")
    of_alice(f"systemctl --user enable --now {UNIT}")
    wait_for(lambda: len(shown()) >= 1)
    seen["when it is enabled"] = shown()[0]
    wait_for(lambda: looks() >= 1)
    seen["is quiet of what is wrapped"] = is_quiet(".claude.json", old=STUB)
    with (HOME / ".claude.json").open():  # an agent that has it open
        seen["raw again, and added"] = is_next(".claude.json", old=RAW, added=RAW)
    wait_for(lambda: looks() >= 3)
    extension = f"{EXTENSIONS}/docs/gemini-extension.json"
    seen["in an extension"] = is_next(extension, brought=RAW)
    wait_for(lambda: looks() >= 4)
    for _ in range(300):
        replace(".claude.json", old=RAW, added=RAW)
    seen["in a new folder"] = is_next(".cursor/mcp.json", other=RAW)
    seen["paths"] = paths()
    of_alice(f"systemctl --user disable --now {UNIT}")
    seen["paths when it is disabled"] = paths()
    seen["shown"] = len(shown())
    seen["failed looks"] = failed_looks()
    return seen
