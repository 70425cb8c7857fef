"""Remote server of `mcpwrap run --url`: its URL, headers with credentials, and its client.

The client is mcpwrap's own code, and runs in the sandbox in the place of a server: it parses what a
stranger sends. The values of headers come from variables of the caller, and are in no argument and
no file.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

import mcpwrap
from mcpwrap.as_agent.run import environment
from mcpwrap.as_agent.run.toolchain import CommandContext
from mcpwrap.config import remote_server
from mcpwrap.config.value_parsers import BadValueError
from mcpwrap.core.http import header_values
from mcpwrap.core.names import server_name_for
from mcpwrap.errors import McpwrapError, UsageError
from mcpwrap.session.remote.variables import CA_FILE, HEADERS, URL

_MODULE = "mcpwrap.as_agent.run.remote_program"
_AUTHORIZATION = "Authorization"
_LOOPBACK = re.compile(
    r"http://(?:localhost|127\.0\.0\.1|\[::1\])(?::(?P<port>[1-9]\d{0,4}))?(?:/[!\"$-~]*)?"
)
_MAX_PORT = 65535
# The way to a host outside. A loopback address has none: a proxy would get the token in plain text.
_INHERITED = ("HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy")
# Of the system the client reads Python, certificate authorities, and what resolves names.
_SYSTEM = tuple(
    path for path in environment.SYSTEM if path not in {"/etc", "/opt", "/snap", "/sys"}
)
_SETTINGS = (
    "/etc/ca-certificates", "/etc/crypto-policies", "/etc/gai.conf", "/etc/host.conf", "/etc/hosts",
    "/etc/ld.so.cache", "/etc/localtime", "/etc/nsswitch.conf", "/etc/pki", "/etc/ssl",
)  # fmt: skip
_LIBRARIES = ("mcpwrap", "aiohttp", "msgspec")  # their folders have the others, too


@dataclass(frozen=True, slots=True)
class RemoteTarget:
    """URL, the headers of each request, and the variables that lead there."""

    url: str
    headers: Mapping[str, str]
    variables: Mapping[str, str]

    @property
    def default_name(self) -> str:
        """Return a name of a server, from the host: `mcp-example-com`."""
        return server_name_for(re.split("[/:]", self.url.partition("://")[2])[0])

    @staticmethod
    def command() -> tuple[str, ...]:
        """Return the command of the client: without the user's site and the working folder."""
        return sys.executable, "-s", "-P", "-m", _MODULE

    @staticmethod
    def system(home: Path) -> list[str]:
        """Return the folders of the system that the client reads."""
        return [*environment.system(home, _SYSTEM)]

    def to_read(self) -> tuple[str, ...]:
        """Return the other files and folders that the client reads."""
        own_authorities = filter(None, [self.variables.get(CA_FILE)])
        return (*map(str, _code()), *_SETTINGS, *own_authorities)

    def environment(self, context: CommandContext) -> dict[str, str]:
        """Return the variables of the client.

        Raises:
            McpwrapError: its code is in a folder that it must not see.
        """
        _expect_code_apart(context)
        return {
            **self.variables,
            URL: self.url,
            HEADERS: msgspec.json.encode(self.headers).decode(),
            "PYTHONPATH": ":".join(map(str, _code())),
        }


def _code() -> list[Path]:
    """Return the folders from which the client imports, beside Python's own."""
    own = Path(mcpwrap.__file__).resolve().parents[1]
    listed = [Path(name).resolve() for name in sys.path if name.startswith("/")]
    found = [path for path in listed if any((path / name).is_dir() for name in _LIBRARIES)]
    return [*dict.fromkeys((own, *found))]


def _expect_code_apart(context: CommandContext) -> None:
    for path in _code():
        if context.is_too_wide(path):
            raise McpwrapError(
                "has mcpwrap or its libraries, and files of others: the client of --url would see"
                " them",
                where=str(path),
                fix="install mcpwrap into a folder of its own: `python3 -m venv ~/mcpwrap`",
                code="E-RUN-URL-CODE",
            )


def parsed(
    url: str, bearer_from: str | None, header_from: Sequence[str], environ: Mapping[str, str]
) -> RemoteTarget:
    """Return the server that the options name.

    Raises:
        UsageError: an option is not valid, or a variable is not set.
    """
    headers: dict[str, str] = {}
    for name, value in _headers(bearer_from, header_from, environ):
        if name.lower() in map(str.lower, headers):
            raise UsageError(
                f"the header {name} is set twice",
                where="--header-from, --bearer-from",
                fix="keep one of the two",
                code="E-RUN-HEADER",
            )
        headers[name] = value
    variables = {name: environ[name] for name in _INHERITED if environ.get(name)}
    if authorities := environ.get(CA_FILE):
        variables[CA_FILE] = str(Path(authorities).absolute())  # it works in another folder
    return RemoteTarget(_url(url), headers, variables)


def _url(text: str) -> str:
    found = _LOOPBACK.fullmatch(text)
    if found and int(found["port"] or 0) <= _MAX_PORT:
        return text
    try:
        return remote_server.url(text)
    except BadValueError as error:
        fix = f"{error.fix}; `http://` is for `localhost`, `127.0.0.1` and `[::1]`"
        raise UsageError(error.problem, where="--url", fix=fix, code=error.code) from error


def _headers(
    bearer_from: str | None, header_from: Sequence[str], environ: Mapping[str, str]
) -> list[tuple[str, str]]:
    found = []
    for word in header_from:
        where = f"--header-from {word}"
        name, equals, variable = word.partition("=")
        if not equals:
            raise UsageError(
                "has no `=`",
                where=where,
                fix="write the name of the header, `=`, and the name of your variable",
                code="E-RUN-HEADER",
            )
        found.append((_header_name(name, where), _value(variable, where, environ)))
    if bearer_from is not None:
        where = f"--bearer-from {bearer_from}"
        found.append((_AUTHORIZATION, f"Bearer {_token(bearer_from, where, environ)}"))
    return found


def _header_name(name: str, where: str) -> str:
    try:
        return remote_server.header_name(name)
    except BadValueError as error:
        raise UsageError(error.problem, where=where, fix=error.fix, code=error.code) from error


def _value(variable: str, where: str, environ: Mapping[str, str]) -> str:
    value = environ.get(variable, "").strip()
    if value and header_values.is_plain(value):
        return value
    raise UsageError(
        "the variable has a character that no header can have"
        if value
        else f"the variable {variable!a} is not set, or empty",
        where=where,
        fix="set it in the `env` of the agent's entry, or name another one",
        code="E-RUN-HEADER",
    )


def _token(variable: str, where: str, environ: Mapping[str, str]) -> str:
    value = _value(variable, where, environ)
    if " " in value:
        raise UsageError(
            "the variable is not a token: it has a space",
            where=where,
            fix="leave out `Bearer`, or give all of it by `--header-from Authorization=VAR`",
            code="E-RUN-HEADER",
        )
    return value
