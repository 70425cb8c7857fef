"""AppArmor profile by which this program may make its user namespace, where Ubuntu requires one.

Since Ubuntu 23.10 a program without a profile gets a user namespace without capabilities, so it can
make no other namespace in it. The profile allows all that a program without one may do, and
`userns`. It is attached to the path of this program, a script, and not to its interpreter: a
profile of python3 would give every Python program a user namespace.

Source: apparmor.d(5); Ubuntu's own profiles, such as that of flatpak.
"""

import os
import re
from pathlib import Path

_RESTRICTED = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
# Its own label, and in parentheses the mode of its profile. Source: apparmor(7).
_LABEL = Path("/proc/self/attr/apparmor/current")
_WITHOUT_PROFILE = "unconfined"
_FOLDER = "/etc/apparmor.d"
_GLOB = re.compile(r'([\\"{}\[\]*?^])')


def is_missing() -> bool:
    """Return whether this kernel requires such a profile, and this process has none."""
    try:
        is_required = _RESTRICTED.read_text(encoding="ascii").strip() not in {"", "0"}
        label = _LABEL.read_text(encoding="utf-8", errors="replace").strip("\n\0")
    except OSError:  # another kernel, or without AppArmor
        return False
    return is_required and label == _WITHOUT_PROFILE


def own_program(argv0: str) -> str:
    """Return the path to which AppArmor attaches a profile of this program: without links."""
    return os.path.realpath(argv0)


def profile(program: str) -> list[str]:
    """Return the lines of a profile for a program by its absolute path."""
    return [
        "abi <abi/4.0>,",
        "include <tunables/global>",
        "",
        '"' + _GLOB.sub(r"\\\1", program) + '" flags=(unconfined) {',
        "  userns,",
        "}",
    ]


def file_of(program: str) -> str:
    """Return the file in which an administrator would look for the profile."""
    return f"{_FOLDER}/{re.sub(r'[^A-Za-z0-9_.-]', '.', program.lstrip('/'))}"
