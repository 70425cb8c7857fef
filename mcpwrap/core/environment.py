"""Environment of a server, built from nothing so that nothing leaks in; allowlists for agents."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from mcpwrap.core.wire.server_files import Template

PATH = "/usr/local/bin:/usr/bin:/bin"
UV_PATHS = ("/usr/local/bin/uv", "/usr/bin/uv")  # not PATH: only root writes these


@dataclass(frozen=True, slots=True)
class VariableKind:
    """Variables that an agent may choose, and their allowed values: no file, program or host."""

    names: frozenset[str]
    values: re.Pattern[str]
    what: str  # name of a value, in a message


# gettext takes `/` in LANGUAGE for a folder of catalogs, as the C library took it in LANG.
# Source: locale(7), gettext(3).
_LOCALE = VariableKind(
    frozenset({
        "LANG", "LANGUAGE", "LC_ADDRESS", "LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_IDENTIFICATION",
        "LC_MEASUREMENT", "LC_MESSAGES", "LC_MONETARY", "LC_NAME", "LC_NUMERIC", "LC_PAPER",
        "LC_TELEPHONE", "LC_TIME",
    }),
    re.compile(r"(?:(?:[A-Za-z][A-Za-z0-9_.@+-]*)?:)*(?:[A-Za-z][A-Za-z0-9_.@+-]*)?"),
    "the name of a locale",
)  # fmt: skip
# A path, also behind a `:`, is read as a file of time zones, and musl takes a `.` for one. Names
# lie below /usr/share/zoneinfo. Source: tzset(3).
_TIME = VariableKind(
    frozenset({"TZ"}),
    re.compile(r":?(?:(?!.*\.\.)[A-Za-z0-9<+-][A-Za-z0-9<>+,./:_-]*)?"),
    "the name of a time zone",
)
# A path in TERM or WAYLAND_DISPLAY is a file, a host in DISPLAY sees what is shown.
_DISPLAY = VariableKind(
    frozenset({
        "CLICOLOR", "CLICOLOR_FORCE", "COLORTERM", "COLUMNS", "DISPLAY", "FORCE_COLOR", "LINES",
        "NO_COLOR", "TERM", "WAYLAND_DISPLAY",
    }),
    re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9+._-]*)?|(?:localhost)?:[0-9]{1,5}(?:\.[0-9]{1,3})?"),
    "a plain word, or a display of this machine",
)  # fmt: skip
KINDS = {"locale": _LOCALE, "time": _TIME, "display": _DISPLAY}


def kind_of(name: str) -> VariableKind | None:
    """Return the kind of a variable; None if it has no kind."""
    return next((kind for kind in KINDS.values() if name in kind.names), None)


def why_not(name: str, value: str) -> str:
    """Return why an agent may not choose this value of a variable in `inherits`; "" if it may."""
    kind = kind_of(name)
    if kind is None:
        return f"{name} is not of a kind that `inherits` accepts"
    return "" if kind.values.fullmatch(value) else f"the value of {name} is not {kind.what}"


def build(
    *,
    account: str,
    home: str,
    tmp: str,
    inherited: Mapping[str, str],
    declared: Mapping[str, str],
) -> dict[str, str]:
    """Return the whole environment. The variables of the configuration override all others."""
    always = {
        "PATH": PATH,
        "HOME": home,
        "USER": account,
        "LOGNAME": account,
        "TMPDIR": tmp,
        "LANG": "C.UTF-8",
    }
    return {**always, **inherited, **declared}


def filled_in(template: Template, text_by_key: Mapping[str, str]) -> str:
    """Return the value with each secret, or the path of its file, in its place.

    In one pass: the content of a secret is never expanded.
    """
    return "".join(part if isinstance(part, str) else text_by_key[part.secret] for part in template)
