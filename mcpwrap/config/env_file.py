r"""Parser of `mcp-secrets.env`: lines of `KEY=VALUE`, nearly as shells read them.

A line is blank, a comment that begins with `#`, or `KEY=VALUE` with or without `export` before it.
The value is one of

- bare: taken as it is, without the space around it. A ` #` in it does not begin a comment, since a
  password may have one;
- in single quotes: taken as it is;
- in double quotes: with `\n`, `\t`, `\"`, `\\` and `\$`.

A `$` is never expanded.
"""

import re

from mcpwrap.config.model import ConfigError, Problem
from mcpwrap.config.value_parsers import BadValueError, secret_key

_EXPORT = re.compile(r"^export[ \t]+")
_QUOTED = {"'": re.compile(r"'([^']*)'"), '"': re.compile(r'"((?:[^"\\]|\\.)*)"')}
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "$": "$"}
_SPACE = " \t\r"  # editors of other systems end a line with a carriage return


def parse_env_file(text: str, file: str) -> dict[str, str]:
    """Return the value of each key, in the order of the file. Errors name the file `file`.

    No message quotes the file, not even a refused key: the text before a `=` may be the second
    line of a secret value.

    Raises:
        ConfigError: with every problem of the file.
    """
    problems: list[Problem] = []
    value_by_key: dict[str, str] = {}
    line_by_key: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip(_SPACE) or line.strip(_SPACE).startswith("#"):
            continue
        key = ""
        try:
            key, raw = _assignment(line.strip(_SPACE))
            _expect_first(number, line_by_key.setdefault(key, number))
            value_by_key[key] = _value(raw)
        except BadValueError as wrong:
            place = f"line {number}"
            problems.append(Problem(file, place, key, wrong.problem, wrong.fix, code=wrong.code))
    if problems:
        raise ConfigError(problems)
    return value_by_key


def _expect_first(number: int, first: int) -> None:
    if number != first:
        raise BadValueError(
            f"is also set on line {first}", "keep one of the two", code="E-SECRET-FILE-DUPLICATE"
        )


def _assignment(line: str) -> tuple[str, str]:
    """Return the key, and the text after the first `=` without the space around it."""
    key, equals, raw = _EXPORT.sub("", line).partition("=")
    if not equals:
        raise BadValueError(
            "no `=`",
            "write `KEY=VALUE`; several lines of a value as one, in double quotes, with `\\n`",
            code="E-SECRET-FILE-LINE",
        )
    try:
        secret_key(key)
    except BadValueError:  # its message has the key
        raise BadValueError(
            "no valid secret name before the `=`",
            "use A-Z, 0-9 and _, without a space",
            code="E-SECRET-FILE-LINE",
        ) from None
    if not raw:  # the end of a value in base32 looks like this, so the key is not named here either
        raise BadValueError(
            "nothing after the `=`",
            "write the value, or remove the line",
            code="E-SECRET-FILE-EMPTY",
        )
    return key, raw.strip(_SPACE)


def _value(raw: str) -> str:
    if "\0" in raw:
        raise BadValueError(
            "a NUL, which a variable cannot hold",
            "write the file as plain text",
            code="E-SECRET-FILE-NUL",
        )
    value = _unquoted(raw)
    if not value:
        raise BadValueError(
            "nothing between the quotes",
            "write the value, or remove the line",
            code="E-SECRET-FILE-EMPTY",
        )
    return value


def _unquoted(raw: str) -> str:
    quoted = _QUOTED.get(raw[:1])
    if quoted is None:
        return raw
    found = quoted.match(raw)
    if not found:
        raise BadValueError(
            "a quote that is not closed on its line",
            "close it; write a newline in a value as `\\n` in double quotes",
            code="E-SECRET-FILE-QUOTES",
        )
    if found.end() != len(raw):
        raise BadValueError(
            "text after the closing quote",
            "write a comment on a line of its own",
            code="E-SECRET-FILE-QUOTES",
        )
    return _ESCAPE.sub(_meant, found[1]) if raw[0] == '"' else found[1]


def _meant(escape: re.Match[str]) -> str:
    if escape[1] not in _ESCAPED:
        raise BadValueError(
            'a backslash in double quotes before something other than n, t, ", \\ or $',
            "write `\\\\` for a backslash, or use single quotes",
            code="E-SECRET-FILE-QUOTES",
        )
    return _ESCAPED[escape[1]]
