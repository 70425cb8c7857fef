"""Detection of secrets among the texts of an entry: all that are not evidently something else."""

import re
from fnmatch import fnmatchcase

from mcpwrap.core.policy.regex import Patterns
from mcpwrap.core.secrets.patterns import NAMES, VALUES

_MORE_NAMES = (
    *("key", "*_key", "pass", "*_pass", "pat", "*_pat", "auth", "*_auth", "*dsn*", "*token*"),
    *("*pass", "*_pwd", "*passcode*", "pin", "*_pin", "*jwt*", "*cookie*", "*mnemonic*"),
    "*webhook*",  # whoever knows its URL may post
)
_PATTERNS = Patterns(VALUES)
# Numbers and times, words, versions and regions; a path; a URL without user and query.
_PLAIN = re.compile(
    r"-?[0-9]+(\.[0-9]+)*[a-z]{0,2}|v[0-9]+(\.[0-9]+)*|[A-Za-z][A-Za-z ./_:,@-]{0,39}"
    r"|[A-Za-z]{1,16}([-_.]([A-Za-z]{1,16}|[0-9]{1,4})){1,4}|~?/[^\0\n]*"
    r"|https?://[A-Za-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9._~/-]*)?"
)
_OPTION = re.compile(r"--?(?P<name>[A-Za-z0-9_-]+)(=(?P<value>.+))?", re.DOTALL)
# `KEY=value`, `Header: value`, `"key": "value"`; where a value is, as in `KEY=/file`, is no secret.
_ASSIGNED = re.compile(
    r"""(?P<name>[A-Za-z][A-Za-z0-9_-]*)["']?\s*[=:]\s*["']?(?P<value>[^\s"',;&/$][^\s"',;&]*)"""
)
# A part of a URL's path that nobody made up. Those of a UUID are shorter: most are no secret.
_RANDOM = re.compile(r"(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{16,}")
_USER = re.compile(r"[^:/?#]*://[^/?#]*@")  # a token may be a user without a password
_QUERY = re.compile(r"[?&](?P<name>[^=&#]+)=(?P<value>[^&#]+)")


def is_secret_name(name: str) -> bool:
    """Say whether what stands under this name is a secret, however it looks."""
    lower = name.lower().replace("-", "_")
    return any(fnmatchcase(lower, glob) for glob in (*NAMES, *_MORE_NAMES))


def is_secret(name: str, value: str) -> bool:
    """Say whether the value of a variable or a header is to be kept secret."""
    if not value:
        return False
    if is_marked(name, value) or not _PLAIN.fullmatch(value):
        return True
    return value.startswith("http") and _has_random_part(value)


def is_marked(name: str, value: str) -> bool:
    """Say whether a text is a secret by its name, or has the form of one that is known."""
    return is_secret_name(name) or _holds_secret(value)


def secret_arguments(args: tuple[str, ...]) -> list[int]:
    """Return the numbers of arguments, from 1, that hold a secret. Without a name few are known."""
    return [
        number
        for number, arg in enumerate(args, start=1)
        if _holds_secret(arg)
        or any(is_secret_name(found["name"]) for found in _ASSIGNED.finditer(arg))
        or _is_named_secret(args[number - 2] if number > 1 else "", arg)
    ]


def holds_secret_url(url: str) -> bool:
    """Say whether a URL carries a secret in a query, as a user or in its path."""
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
