"""Default name of a server that was started without `--name`, from its command."""

import re
from collections.abc import Sequence

from mcpwrap.core.names import MAX_NAME_CHARS

_NAMELESS = "server"
# They run what an argument names; some by a word of their own before it.
_LAUNCHERS = re.compile(
    r"npx|npm|bunx?|pnpm|pnpx|yarn|deno|node|nodejs|tsx|uvx?|pipx|env|python(3(\.\d+)?)?"
)
_ASSIGNMENT = re.compile(r"\w+=(?!=).*")  # env(1); `a==1` is a version
_VERBS = frozenset({"run", "exec", "x", "dlx", "tool"})
_VERSION = re.compile(r"(?<=.)(@|==|>=|~=).*")
_ENDING = re.compile(r"\.(c|m)?(js|ts)$|\.py$")
_NOT_ALLOWED = re.compile(r"[^a-z0-9_-]+")


def name_of(command: Sequence[str]) -> str:
    """Return a name that a server can have: of the program, or of what a launcher is to run."""
    program, *arguments = command
    named = _last_part(program)
    while _LAUNCHERS.fullmatch(named) and arguments:
        word, *arguments = arguments
        if not word.startswith("-") and not _ASSIGNMENT.match(word) and word not in _VERBS:
            named = _last_part(word)
    text = _NOT_ALLOWED.sub("-", _ENDING.sub("", named.lower()))
    return text.lstrip("-_0123456789")[:MAX_NAME_CHARS].rstrip("-") or _NAMELESS


def _last_part(word: str) -> str:
    return _VERSION.sub("", word.rstrip("/").rpartition("/")[2])
