"""Facts of this machine for a bug report, as programs and files state them. Needs root.

None of them is printed as it is: `core/bug_report.py` takes over what has a known form.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

import mcpwrap
from mcpwrap.core.bug_report import JournalEntry
from mcpwrap.linux import os_release
from mcpwrap.linux.isolation import landlock
from mcpwrap.linux.systemd.systemctl import SYSTEMCTL, ToolError, properties, run
from mcpwrap.machine.doctor.machine_checks import SQUID
from mcpwrap.machine.nft_table import NFT

JOURNALCTL = "/usr/bin/journalctl"
_OURS = "mcpwrap*"
_UNIT_FILES = Path("/usr/lib/systemd/system")
_STATES = ("ActiveState", "SubState", "Result", "NRestarts")
_PACKAGE = Path(mcpwrap.__file__).parent
_ERROR = re.compile(r"\bE(?:-[A-Z0-9]+)+\b")
_CGROUP = Path("/sys/fs/cgroup")


class _Entry(msgspec.Struct):
    """Entry in the JSON of journalctl(1). A text that is not UTF-8 is a list of numbers."""

    message: str | list[int] | None = msgspec.field(default=None, name="MESSAGE")
    of_process: str = msgspec.field(default="", name="_SYSTEMD_UNIT")
    of_systemd: str = msgspec.field(default="", name="UNIT")
    result: str = msgspec.field(default="", name="UNIT_RESULT")
    at_us: str = msgspec.field(default="0", name="__REALTIME_TIMESTAMP")


def versions() -> dict[str, str]:
    """Return versions and features by name; "" is not known."""
    release, uname = os_release.os_release(), os.uname()
    squid = _printed(SQUID, "-v")
    found = {
        "distribution": f"{release.id} {release.version}".strip(),
        "kernel": uname.release,
        "architecture": uname.machine,
        "systemd": _first(r"^systemd ([0-9.]+)", _printed(SYSTEMCTL, "--version")),
        "nft": _first(r"v([0-9.]+)", _printed(NFT, "--version")),
        "Squid": _first(r"Version ([0-9.]+)", squid),
        "Squid with OpenSSL": "yes" if "--with-openssl" in squid else "no",
        "Squid's certificate helper": _is_there(os_release.distribution().certgen),
        "cgroup": _cgroup(),
        "LSMs": _text("/sys/kernel/security/lsm"),
        "Landlock": str(landlock.version()),
    }
    if enforce := _text("/sys/fs/selinux/enforce"):
        found["SELinux"] = "enforcing" if enforce == "1" else "permissive"
    return found


def _printed(*argv: str) -> str:
    try:
        return run(*argv)
    except ToolError:
        return ""


def _first(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    return found[1] if found else ""


def _text(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace").strip()
    except OSError:
        return ""


def _is_there(path: str) -> str:
    return "there" if Path(path).exists() else "missing"


def _cgroup() -> str:
    """Return the version of cgroups(7) that systemd uses."""
    if (_CGROUP / "cgroup.controllers").exists():
        return "v2"
    return "hybrid" if (_CGROUP / "unified").exists() else "v1"


def units() -> dict[str, dict[str, str]]:
    """Return the states of the units of mcpwrap that systemd has loaded.

    Raises:
        ToolError: systemctl failed.
    """
    listed = run(SYSTEMCTL, "list-units", "--all", "--plain", "--no-legend", "--full", _OURS)
    return properties([line.split()[0] for line in listed.splitlines() if line], _STATES)


def unit_files() -> frozenset[str]:
    """Return the names of the unit files of the package."""
    return frozenset(path.name for path in _UNIT_FILES.glob(_OURS))


def journal() -> Iterator[JournalEntry]:
    """Yield the warnings and errors of the units of mcpwrap, of the last week: 2,000 at most.

    Raises:
        ToolError: journalctl failed.
    """
    fields = "MESSAGE,_SYSTEMD_UNIT,UNIT,UNIT_RESULT"
    printed = run(
        JOURNALCTL, "--no-pager", "--quiet", "--output=json", f"--output-fields={fields}",
        "--priority=warning", "--since=-7d", "--lines=2000", f"--unit={_OURS}",
    )  # fmt: skip
    for line in printed.splitlines():
        try:
            entry = msgspec.json.decode(line, type=_Entry)
        except msgspec.MsgspecError:
            continue
        yield JournalEntry(
            unit=entry.of_systemd or entry.of_process,
            message=entry.message if isinstance(entry.message, str) else "",
            result=entry.result,
            at_s=int(entry.at_us) / 1e6,
        )


def own_words() -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of errors in mcpwrap's code, and the names of its modules."""
    sources = {path: path.read_text() for path in _PACKAGE.rglob("*.py")}
    errors = frozenset(name for text in sources.values() for name in _ERROR.findall(text))
    modules = frozenset(path.relative_to(_PACKAGE.parent).as_posix() for path in sources)
    return errors, modules
