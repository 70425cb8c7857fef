"""Paths of code in the words of a command line, or in the value of a variable."""

import os
import re

PATHS = re.compile(r"/[^\s'\"`;|&()<>:,=]*")
_FILE_URL = re.compile(r"(git\+)?file:(//)?(?=/)|@(?=/)")  # `@` has java read arguments
_NAME = re.compile(rf"(^|(?<==))(@|\w+:)?\w[\w.~-]*{PATHS.pattern}")  # `@scope/package`
_CODE = re.compile(
    r".+\.([cm]?[jt]sx?|py[cz]?|pyw|sh|jar|rb|php|p[lm]|lua|jl|[rR]|dll|exe|wasm|so(\.\d+)*|node)"
)


def paths(text: str) -> list[str]:
    """Return the paths in a word that may be a URL, whose host is none, or a name in a scope."""
    found = PATHS.findall(_NAME.sub("", text))
    return [path for path in found if not re.match("//[^/]", path)]


def whole(word: str, cwd: str) -> str:
    """Return the absolute path that a word may be; "" if it can be none."""
    word = _FILE_URL.sub("", word, count=1) if _FILE_URL.match(word) else word
    if word.startswith("/"):
        return word
    return os.path.join(cwd, word) if cwd and word and "\n" not in word else ""


def is_code(path: str) -> bool:
    """Say whether a file is one that is run, by its name or its mode.

    By its name also what is not there: it may be by then.
    """
    if _CODE.fullmatch(os.path.basename(path)):
        return not os.path.isdir(path)
    return os.path.isfile(path) and os.access(path, os.X_OK)
