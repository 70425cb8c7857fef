"""Parser of the table of a remote server (`url`); settings of a program in it are errors."""

import re

from mcpwrap.config import value_parsers
from mcpwrap.config.model import Destination, RemoteServer, Server, Template
from mcpwrap.config.toml_table import TomlTableReader
from mcpwrap.config.value_parsers import BadValueError
from mcpwrap.core.wire.server_files import OAuth

OAUTH_KEYS = ("scopes", "client_id", "client_id_metadata")
REMOTE_KEYS = ("url", "bearer_token_env_var", "headers", "mcpwrap")
MAX_HEADERS = 64

_PROGRAMS = ("args", "cwd", "env", "inherits", "inherits_any")
_PROGRAMS_OURS = (
    "direct", "workspace", "writable_command", "umask", "state", "cache", "secret_files",
)  # fmt: skip
_PLAIN = Server(name="", runs=RemoteServer(url=""))  # as `parse` has it where nothing is written
_SCOPE = re.compile(r"[!#-\[\]-~]{1,256}")
_CLIENT_ID = re.compile(r"[ -~]{1,512}")
# RFC 9110 section 5.6.2.
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}")
# RFC 9110 section 5.5, without what is not ASCII: nobody says how a server reads that.
_TEXT = re.compile(r"[\t -~]*")
# What frames a message, belongs to one connection (RFC 9110 sections 6, 7.6, 11.7), or is the
# transport's own: a second one would have two programs read one request in two ways.
_OURS = frozenset({
    "accept", "accept-encoding", "connection", "content-encoding", "content-length", "content-type",
    "cookie", "expect", "host", "keep-alive", "last-event-id", "proxy-authenticate",
    "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip


def read(reader: TomlTableReader, ours: TomlTableReader) -> RemoteServer:
    """Return where the server is, and what each request to it is given. `ours`: the sub-table."""
    remote = RemoteServer(
        url=reader.one("url", url, ""),
        bearer_token_env_var=reader.one("bearer_token_env_var", value_parsers.secret_key, ""),
        headers=_headers(reader.table("headers")),
        oauth=_oauth(ours),
    )
    if remote.bearer_token_env_var and _has_authorization(remote):
        reader.note(
            "bearer_token_env_var", "`headers` has an Authorization too", "keep one of the two"
        )
    if remote.oauth and (remote.bearer_token_env_var or _has_authorization(remote)):
        ours.note("oauth", "the server is given another Authorization", "keep one of the two")
    for key in _PROGRAMS:
        reader.refuse(
            key,
            "is for a program, and a server with `url` runs none of yours",
            "take it out; what the server is to be told goes into `headers`",
        )
    return remote


def _has_authorization(remote: RemoteServer) -> bool:
    return "authorization" in map(str.lower, remote.headers)


def _oauth(ours: TomlTableReader) -> OAuth | None:
    table = ours.flag_or_table("oauth")
    if table is None:
        return None
    found = OAuth(
        scopes=table.many("scopes", scope),
        client_id=table.one("client_id", client_id, ""),
        client_id_metadata=table.one("client_id_metadata", client_id_metadata, ""),
    )
    table.finish(OAUTH_KEYS)
    if found.client_id and found.client_id_metadata:
        table.note("client_id_metadata", "there is a `client_id` too", "keep one of the two")
    return found


def scope(value: str) -> str:
    """Return one scope. Source: RFC 6749 section 3.3."""
    if not _SCOPE.fullmatch(value):
        raise BadValueError(f"{value!a} cannot be a scope", "write one in each text, without space")
    return value


def client_id(value: str) -> str:
    """Return the name under which an authorization server knows mcpwrap. RFC 6749 appendix A.1."""
    if not _CLIENT_ID.fullmatch(value):
        raise BadValueError("not a client id: empty, too long or not plain ASCII", "copy it again")
    return value


def client_id_metadata(value: str) -> str:
    """Return the https URL of a document with a path, which is a client id itself."""
    if not value_parsers.url(value).removeprefix("https://").partition("/")[2]:
        raise BadValueError("the URL has no path", "write where the document is")
    return value


def reached(remote: RemoteServer) -> tuple[Destination, ...]:
    """Return where the URL leads; nothing if it was not understood."""
    return (destination(remote.url),) if remote.url else ()


def expect_no_program(server: Server, ours: TomlTableReader) -> None:
    """Note what only a program on this machine could use: whoever wrote it relies on it."""
    for key in _PROGRAMS_OURS:
        if getattr(server, key) != getattr(_PLAIN, key):
            ours.note(key, "is for a program, and a server with `url` runs none of yours", _OUT)
    if server.transparent:
        ours.note("transparent", "a server with `url` is reached through its proxy alone", _OUT)


_OUT = "take it out"


def url(value: str) -> str:
    """Return the https URL of a server, which has a name that Squid can admit."""
    if "${" in value:
        raise BadValueError(
            "a URL is no place for a secret: everybody can read it",
            "give it as a header, with `bearer_token_env_var` or `headers`",
        )
    destination(value_parsers.url(value))
    return value


def destination(remote_url: str) -> Destination:
    """Return host and port of a URL that `values.url` has understood."""
    host = remote_url.removeprefix("https://").partition("/")[0]
    return value_parsers.destination(host)


def header_name(value: str) -> str:
    """Return the name of a header that an operator may set."""
    if not _TOKEN.fullmatch(value):
        raise BadValueError(
            f"{value!a} cannot be the name of a header", "use A-Z, a-z, 0-9 and -, at most 64"
        )
    if value.lower() in _OURS or value.lower().startswith("mcp-"):
        raise BadValueError(
            f"{value} is written by mcpwrap, for each request as it is", "take it out"
        )
    return value


def header_value(value: str) -> Template:
    """Return the parts of a header's value. Its secrets are looked at when they are put in."""
    parts = value_parsers.template(value)
    text = "".join(part for part in parts if isinstance(part, str))
    if not parts or value != value.strip() or not _TEXT.fullmatch(text):
        raise BadValueError(
            "not the value of a header: empty, with space at an end, or not plain ASCII",
            'write `"${KEY}"`, or text of letters, digits and signs',
        )
    return parts


def _headers(table: TomlTableReader) -> dict[str, Template]:
    names = table.names()
    if len(names) > MAX_HEADERS:
        table.note("", f"{len(names)} headers", f"write at most {MAX_HEADERS}")
        return {}
    seen: set[str] = set()
    found: dict[str, Template] = {}
    for name in names:
        if not _is_name(table, name):
            continue
        if name.lower() in seen:
            table.note(name, "stands twice: case makes no difference", "keep one of the two")
        seen.add(name.lower())
        found[name] = table.one(name, header_value, ())
    return found


def _is_name(table: TomlTableReader, name: str) -> bool:
    try:
        header_name(name)
    except BadValueError as problem:
        table.note(ascii(name), problem.problem, problem.fix)
        return False
    return True
