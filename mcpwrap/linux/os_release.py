"""Distribution of this machine, by os-release(5)."""

from pathlib import Path

from mcpwrap.core.distribution import Distribution, OsRelease, distribution_of, parse_os_release

# The first one that exists counts: os-release(5).
FILES = ("/etc/os-release", "/usr/lib/os-release")
_MAX_CHARACTERS = 64 * 1024


def os_release() -> OsRelease:
    """Return the identity of this machine's distribution; an empty one if it has no such file."""
    for path in FILES:
        try:
            with Path(path).open(encoding="utf-8", errors="replace") as file:
                return parse_os_release(file.read(_MAX_CHARACTERS))
        except FileNotFoundError:
            continue
        except OSError:  # not a file, or an error of the disk
            break
    return OsRelease()


def distribution() -> Distribution:
    """Return the words and paths of this machine's distribution."""
    return distribution_of(os_release())
