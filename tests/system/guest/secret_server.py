"""Server that writes its secrets in many forms, and inspects their places. Runs in the machine.

The test imports FORMS too, as its list of the written forms.
"""

import base64
import hashlib
import json
import os
import stat
import urllib.parse
from collections.abc import Callable
from pathlib import Path

FORMS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "JSON": json.dumps,
    "JSON as it is": lambda it: json.dumps(it, ensure_ascii=False),
    "JSON in JSON": lambda it: json.dumps(json.dumps(it)),
    "base64": lambda it: base64.b64encode(it.encode()).decode(),
    "base64 after 1": lambda it: base64.b64encode(b"x" + it.encode()).decode(),
    "base64 after 2": lambda it: base64.b64encode(b"xx" + it.encode()).decode(),
    "base64 for URLs": lambda it: base64.urlsafe_b64encode(it.encode()).decode(),
    "hexadecimal": lambda it: it.encode().hex(),
    "HEXADECIMAL": lambda it: it.encode().hex().upper(),
    "URL": urllib.parse.quote,
    "part of a URL": lambda it: urllib.parse.quote(it, safe=""),
    "form": urllib.parse.quote_plus,
}


def write_token(form: str) -> None:
    """Write the token in this form to stdout and stderr: at once, and byte by byte."""
    written = FORMS[form](os.environ["TOKEN"]).encode() + b"\n"
    for fd in (1, 2):
        os.write(fd, b"whole " + written)
        for number in b"cut " + written:
            os.write(fd, bytes([number]))


def write_file() -> list[str | bool]:
    """Write the secret file to stdout; return its path, mode, whether it is its own, digest, text.

    The text passes the redactor on its way to the test; the digest shows the text before that.
    """
    path = Path(os.environ["FILE"])
    info, text = path.stat(), path.read_text()
    os.write(1, text.encode())
    digest = hashlib.sha256(text.encode()).hexdigest()
    return [str(path), stat.filemode(info.st_mode), info.st_uid == os.getuid(), digest, text]


def digest_of_token() -> str:
    """Return the digest of the token, by which the test identifies its value."""
    return hashlib.sha256(os.environ["TOKEN"].encode()).hexdigest()


def opened(paths: list[str]) -> list[str]:
    """Return for each file whether it can be opened, or why not."""
    return [_opened(path) for path in paths]


def _opened(path: str) -> str:
    try:
        os.close(os.open(path, os.O_RDONLY))
    except OSError as error:
        return os.strerror(error.errno or 0)
    return "opened"
