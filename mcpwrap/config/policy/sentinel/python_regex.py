r"""Conversion of regular expressions of Python into RE2's.

Both read most patterns alike. Converted are `\Z` and `$`, which in Python also holds before a
newline at the end, and `{,3}`. What RE2 does not have is an error.
"""

import re
import warnings

from mcpwrap.config.policy.value_parsers import pattern as expect_re2
from mcpwrap.config.value_parsers import BadValueError

_CLASS = r"\[\^?\]?(?:\\.|[^\]\\])*\]"
_TOKEN = re.compile(rf"(?s){_CLASS}|\\.|\$|\{{,(?=[0-9]*\}})|.")
_CONVERTED = {"\\Z": "\\z", "$": "\\n?$", "{,": "{0,"}
_ASCII_IN_RE2 = re.compile(r"\\[dDwWsSbB]")


def re2_of(text: str) -> str:
    """Return the pattern of RE2 that matches where this pattern of Python does.

    Raises:
        BadValueError: it is not a pattern of Python, or RE2 cannot express it.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)  # sets of characters within sets
            re.compile(text)
    except (re.error, OverflowError, RecursionError, FutureWarning) as error:
        raise BadValueError(
            f"not a pattern of Python: {error}; in Sentinel the condition never holds",
            "correct the pattern, or remove the condition",
            code="E-POLICY-SENTINEL-REGEX",
        ) from error
    converted = "".join(_CONVERTED.get(token, token) for token in _TOKEN.findall(text))
    return expect_re2(converted or "^")


def is_ascii_in_re2(text: str) -> bool:
    r"""Return whether a pattern has `\d`, `\w`, `\s` or `\b`, which RE2 limits to ASCII."""
    return _ASCII_IN_RE2.search(text.replace("\\\\", "")) is not None


def literal(text: str) -> str:
    """Return the pattern of RE2 for a text; one that matches everywhere for the empty text."""
    return re.sub(r"[\\.+*?()|\[\]{}^$]", r"\\\g<0>", text) or "^"
