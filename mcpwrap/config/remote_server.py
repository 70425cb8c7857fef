"""Parser of a remote server's table (`url`). Settings that only a program can use are errors."""

import re

from mcpwrap.config import local_program, value_parsers
from mcpwrap.config.file_types.config_file import OAuthTable, ProgramSettings, RemoteSettings
from mcpwrap.config.file_types.fields import keys_of, keys_without
from mcpwrap.config.model import Destination, RemoteServer, Server, Template
from mcpwrap.config.toml_table import TomlTableReader
from mcpwrap.config.value_parsers import BadValueError
from mcpwrap.core.wire.server_files import OAuth

MAX_HEADERS = 64

_NO_PROGRAM = "is for a program, and a server with `url` does not run one"
_SCOPE = re.compile(r"[!#-\[\]-~]{1,256}")
_CLIENT_ID = re.compile(r"[ -~]{1,512}")
# RFC 9110 section 5.6.2.
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}")
# RFC 9110 section 5.5, but ASCII only: how a server reads other bytes is not specified.
_TEXT = re.compile(r"[\t -~]*")
# Headers that frame a message, belong to one connection (RFC 9110 sections 6, 7.6, 11.7), or are
# the transport's own: with a second one, two programs could read one request differently.
_OURS = frozenset({
    "accept", "accept-encoding", "connection", "content-encoding", "content-length", "content-type",
    "cookie", "expect", "host", "keep-alive", "last-event-id", "proxy-authenticate",
    "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip


def read(reader: TomlTableReader, ours: TomlTableReader) -> RemoteServer:
    """Return the server's URL, headers and login. `ours` is the reader of the sub-table."""
    remote = RemoteServer(
        url=reader.one("url", url, ""),
        bearer_token_env_var=reader.one("bearer_token_env_var", value_parsers.secret_key, ""),
        headers=_headers(reader.table("headers")),
        oauth=_oauth(ours),
    )
    if remote.bearer_token_env_var and _has_authorization(remote):
        reader.note(
            "bearer_token_env_var",
            "`headers` has an Authorization header, too",
            "keep one of the two",
            code="E-REMOTE-TWO-AUTHORIZATIONS",
        )
    if remote.oauth and (remote.bearer_token_env_var or _has_authorization(remote)):
        ours.note(
            "oauth",
            "`headers` or `bearer_token_env_var` sets an Authorization header, too",
            "keep one of the two",
            code="E-REMOTE-TWO-AUTHORIZATIONS",
        )
    for key in local_program.TABLE_KEYS:
        reader.refuse(
            key,
            _NO_PROGRAM,
            "remove it; write what the server needs into `headers`",
            code="E-REMOTE-PROGRAM-SETTING",
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
    table.finish(keys_of(OAuthTable))
    if found.client_id and found.client_id_metadata:
        table.note(
            "client_id_metadata",
            "`client_id` is set, too",
            "keep one of the two",
            code="E-OAUTH-TWO-CLIENT-IDS",
        )
    return found


def scope(value: str) -> str:
    """Parse one scope. Source: RFC 6749 section 3.3."""
    if not _SCOPE.fullmatch(value):
        raise BadValueError(
            f"{value!a} is not a valid scope",
            'write each scope as an entry of its own, without spaces: `["read", "write"]`',
            code="E-OAUTH-SCOPE",
        )
    return value


def client_id(value: str) -> str:
    """Parse mcpwrap's client id at an authorization server. Source: RFC 6749 appendix A.1."""
    if not _CLIENT_ID.fullmatch(value):
        raise BadValueError(
            "not a client id: empty, too long or not plain ASCII",
            "copy it from the authorization server's page again",
            code="E-OAUTH-CLIENT-ID",
        )
    return value


def client_id_metadata(value: str) -> str:
    """Parse the https URL of a client metadata document, with a path. It is the client id."""
    if not value_parsers.url(value).removeprefix("https://").partition("/")[2]:
        raise BadValueError(
            "the URL has no path",
            "write the whole URL of the document",
            code="E-OAUTH-CLIENT-METADATA",
        )
    return value


def reached(remote: RemoteServer) -> tuple[Destination, ...]:
    """Return the destination of the URL; empty if the URL was not valid."""
    return (destination(remote.url),) if remote.url else ()


def expect_no_program(server: Server, ours: TomlTableReader) -> None:
    """Note settings that only a program on this machine could use."""
    for key in local_program.changed_settings(
        server, keys_without(RemoteSettings, ProgramSettings)
    ):
        why = "a server with `url` is reached by its proxy only" if key == "transparent" else ""
        ours.note(key, why or _NO_PROGRAM, "remove it", code="E-REMOTE-PROGRAM-SETTING")


def url(value: str) -> str:
    """Parse the https URL of a server. Its host must be a name that Squid can admit."""
    if "${" in value:
        raise BadValueError(
            "a URL cannot hold a secret: every account can read it",
            "send the secret in a header, with `bearer_token_env_var` or `headers`",
            code="E-SECRET-IN-URL",
        )
    destination(value_parsers.url(value))
    return value


def destination(remote_url: str) -> Destination:
    """Return host and port of a URL that `url` has accepted."""
    host = remote_url.removeprefix("https://").partition("/")[0]
    return value_parsers.destination(host)


def header_name(value: str) -> str:
    """Parse the name of a header that an operator may set."""
    if not _TOKEN.fullmatch(value):
        raise BadValueError(
            f"{value!a} is not a valid header name",
            "use A-Z, a-z, 0-9 and -, at most 64 characters",
            code="E-REMOTE-HEADER-NAME",
        )
    if value.lower() in _OURS or value.lower().startswith("mcp-"):
        raise BadValueError(
            f"{value} is set by mcpwrap itself for each request",
            "remove it",
            code="E-REMOTE-HEADER-RESERVED",
        )
    return value


def header_value(value: str) -> Template:
    """Parse the value of a header. Its secrets are checked when they are filled in."""
    parts = value_parsers.template(value)
    text = "".join(part for part in parts if isinstance(part, str))
    if not parts or value != value.strip() or not _TEXT.fullmatch(text):
        raise BadValueError(
            "not a valid header value: empty, with space at an end, or not plain ASCII",
            'write `"${KEY}"`, or plain ASCII text without space around it',
            code="E-REMOTE-HEADER-VALUE",
        )
    return parts


def _headers(table: TomlTableReader) -> dict[str, Template]:
    if len(names := table.names()) > MAX_HEADERS:
        table.note(
            "", f"{len(names)} headers", f"write at most {MAX_HEADERS}", code="E-CONFIG-TOO-MANY"
        )
        return {}
    seen: set[str] = set()
    found: dict[str, Template] = {}
    for name in table.valid_names(header_name):
        if name.lower() in seen:
            table.note(
                name,
                "is set twice: header names ignore case",
                "keep one of the two",
                code="E-CONFIG-DUPLICATE",
            )
        seen.add(name.lower())
        found[name] = table.one(name, header_value, ())
    return found
