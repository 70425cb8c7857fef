"""Detection of secrets in the texts of an entry: all that are not evidently something else."""

import re
from fnmatch import fnmatchcase

from mcpwrap.core.policy.regex import Patterns
from mcpwrap.core.secrets.patterns import NAMES, VALUES

_MORE_NAMES = (
    *("key", "*_key", "pass", "*_pass", "pat", "*_pat", "auth", "*_auth", "*dsn*", "*token*"),
    *("*pass", "*_pwd", "*passcode*", "pin", "*_pin", "*jwt*", "*cookie*", "*mnemonic*"),
    "*webhook*",  # its URL is all that is needed to post
)
_PATTERNS = Patterns(VALUES)
# Numbers and times, words, versions and regions; a path; a URL without user and query.
_PLAIN = re.compile(
    r"-?[0-9]+(\.[0-9]+)*[a-z]{0,2}|v[0-9]+(\.[0-9]+)*|[A-Za-z][A-Za-z ./_:,@-]{0,39}"
    r"|[A-Za-z]{1,16}([-_.]([A-Za-z]{1,16}|[0-9]{1,4})){1,4}|(~|\.\.?)?/[^\0\n]*|\."
    r"|https?://[A-Za-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9._~/-]*)?"
)
_OPTION = re.compile(r"--?(?P<name>[A-Za-z0-9_-]+)(=(?P<value>.+))?", re.DOTALL)
# `KEY=value`, `Header: value`, `"key": "value"`. A path, as in `KEY=/file`, is not a secret.
_ASSIGNED = re.compile(
    r"""(?P<name>[A-Za-z][A-Za-z0-9_-]*)["']?\s*[=:]\s*["']?(?P<value>[^\s"',;&/$][^\s"',;&]*)"""
)
# A random part of a URL's path. Those of a UUID are shorter: most of these are not secret.
_RANDOM = re.compile(r"(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{16,}")
_USER = re.compile(r"[^:/?#]*://[^/?#]*@")  # a token may be a user without a password
_QUERY = re.compile(r"[?&](?P<name>[^=&#]+)=(?P<value>[^&#]+)")


def is_secret_name(name: str) -> bool:
    """Return whether the value of this name is a secret, whatever its form."""
    lower = name.lower().replace("-", "_")
    return any(fnmatchcase(lower, glob) for glob in (*NAMES, *_MORE_NAMES))


def is_secret(name: str, value: str) -> bool:
    """Return whether the value of a variable or a header is to be kept secret."""
    if not value:
        return False
    if is_marked(name, value) or not _PLAIN.fullmatch(value):
        return True
    return value.startswith("http") and _has_random_part(value)


def is_marked(name: str, value: str) -> bool:
    """Return whether a text is a secret by its name, or has the form of a known kind of secret."""
    return is_secret_name(name) or _holds_secret(value)


def secret_arguments(args: tuple[str, ...]) -> list[int]:
    """Return the numbers, from 1, of arguments with a secret. Few are recognized without a name."""
    return [
        number
        for number, arg in enumerate(args, start=1)
        if _holds_secret(arg)
        or any(is_secret_name(found["name"]) for found in _ASSIGNED.finditer(arg))
        or _is_named_secret(args[number - 2] if number > 1 else "", arg)
    ]


def holds_secret_url(url: str) -> bool:
    """Return whether a URL has a secret in its query, as a user or in its path."""
    named = any(is_secret(found["name"], found["value"]) for found in _QUERY.finditer(url))
    return named or _USER.match(url) is not None or _holds_secret(url) or _has_random_part(url)


def _has_random_part(url: str) -> bool:
    _, _, path = url.partition("://")[2].partition("/")
    return _RANDOM.search(path) is not None


def _holds_secret(text: str) -> bool:
    try:
        return bool(_PATTERNS.found_in(text))
    except UnicodeEncodeError:
        return True


def _is_named_secret(before: str, arg: str) -> bool:
    own, option = _OPTION.fullmatch(arg), _OPTION.fullmatch(before)
    if own and own["value"]:
        return is_secret_name(own["name"]) and not own["value"].startswith("/")
    named = option is not None and not option["value"]
    is_value = not arg.startswith(("-", "/"))
    return bool(named and is_value and option and is_secret_name(option["name"]))
