"""Reader of unit files, as systemd parses them."""

import re
from pathlib import Path

UNITS = Path(__file__).parents[2] / "units"


def settings(unit: str) -> dict[str, list[str]]:
    """Return the values of each directive of a unit, as `[Section] Name`."""
    found: dict[str, list[str]] = {}
    section = ""
    for line in (UNITS / unit).read_text().splitlines():
        if line.startswith("["):
            section = line
        elif line and not line.startswith("#"):
            name, _, value = line.partition("=")
            found.setdefault(f"{section} {name}", []).append(value)
    return found


def unescaped(instance: str) -> str:
    """Return what `%I` is of an instance. Source: systemd.unit(5), "String escaping"."""
    slashes = instance.replace("-", "/")
    return re.sub(r"\\x([0-9a-f]{2})", lambda found: chr(int(found[1], 16)), slashes)
