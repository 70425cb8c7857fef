"""Invalid names of servers."""

from mcpwrap.core import names

BAD_NAMES = [
    "",
    ".",
    "..",
    "A",
    "gitHub",
    "-x",
    "_x",
    "1x",
    "a@b",
    "a.b",
    "a b",
    "a/b",
    "a%i",
    "é",
    "aé",
    "a\u0661",  # a digit, but not of 0-9
    "git\n",  # `$` would let it pass
    "git\0",
    "a" * (names.MAX_NAME_CHARS + 1),
    "a" * 300,
]
