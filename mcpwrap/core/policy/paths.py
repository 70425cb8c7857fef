"""Containment check of an agent's path in a folder, by its text alone."""

import re
from unicodedata import normalize

from mcpwrap.core.policy.tristate import UNJUDGEABLE, Tristate, holds
from mcpwrap.core.text.sanitise import visible

_TRIMMED_BY_SOME = (" ", '"', "'")
# `..` beside what some split at or take off (`{a,..}`, `..;`); what decodes to a dot or a slash.
_HIDDEN_UP = re.compile(r"(?<![\w.])\.\.(?![\w.])|%(?:2e|2f|5c)", re.IGNORECASE)
_MAX_CHARS = 4096  # PATH_MAX of Linux


def inside(untrusted_path: str, folder: str) -> Tristate:
    r"""Say whether the path is in `folder`, which is absolute and in its shortest form.

    Links are not looked at: what a server can reach is for the kernel to say. Not judged is what
    programs understand in different ways: a relative path, `~` and `file://` among them; `..`,
    which after a link leads elsewhere than its text, also as `%2e%2e` or `{a,..}`; `\`, which some
    take for `/`; control and other characters that are not seen; quotes or spaces at the end, which
    some take off; and what is longer than any path may be.
    """
    if (
        not untrusted_path.startswith("/")
        or len(untrusted_path) > _MAX_CHARS
        or not untrusted_path.isprintable()
        or (not untrusted_path.isascii() and visible(untrusted_path) != untrusted_path)
        or _HIDDEN_UP.search(normalize("NFKC", untrusted_path))
        or "\\" in untrusted_path
        or untrusted_path.endswith(_TRIMMED_BY_SOME)
    ):
        return UNJUDGEABLE
    path = f"{untrusted_path}/"
    if "//" in path or "/." in path:
        parts = [part for part in path.split("/") if part not in {"", "."}]
        if ".." in parts:
            return UNJUDGEABLE
        path = "/".join(["", *parts, ""])
    return holds(path.startswith(f"{folder.rstrip('/')}/"))
