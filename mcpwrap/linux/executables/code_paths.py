"""Paths of code in the arguments of a command line, or in the value of a variable."""

import os
import re

PATHS = re.compile(r"/[^\s'\"`;|&()<>:,=]*")
_FILE_URL = re.compile(r"(git\+)?file:(//)?(?=/)|@(?=/)")  # `@`: java reads arguments from it
_NAME = re.compile(rf"(^|(?<==))(@|\w+:)?\w[\w.~-]*{PATHS.pattern}")  # `@scope/package`
_CODE = re.compile(
    r".+\.([cm]?[jt]sx?|py[cz]?|pyw|sh|jar|rb|php|p[lm]|lua|jl|[rR]|dll|exe|wasm|so(\.\d+)*|node)"
)


def paths(text: str) -> list[str]:
    """Return the paths in a word; the host of a URL and a name with a scope are not paths."""
    found = PATHS.findall(_NAME.sub("", text))
    return [path for path in found if not re.match("//[^/]", path)]


def whole(word: str, cwd: str) -> str:
    """Return the absolute path that a word may be; "" if it cannot be a path."""
    word = _FILE_URL.sub("", word, count=1) if _FILE_URL.match(word) else word
    if word.startswith("/"):
        return word
    return os.path.join(cwd, word) if cwd and word and "\n" not in word else ""


def is_code(path: str) -> bool:
    """Return whether a file contains code, by its name or its mode.

    By its name a missing file counts too: it may exist when the server starts.
    """
    if _CODE.fullmatch(os.path.basename(path)):
        return not os.path.isdir(path)
    return os.path.isfile(path) and os.access(path, os.X_OK)
