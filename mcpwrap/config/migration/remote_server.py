"""Conversion of a URL that an agent uses into a remote server's definition."""

from collections.abc import Mapping

from mcpwrap.config import remote_server
from mcpwrap.config.agent_files.transport import HttpTransport
from mcpwrap.config.migration.draft import Draft, EntryContext, MigrationError
from mcpwrap.config.migration.secret_detection import holds_secret_url, is_secret_name
from mcpwrap.config.migration.variable_expansion import (
    ExtractedSecrets,
    filled_in,
    header,
    secret_variable,
)
from mcpwrap.config.model import Destination, Group, RemoteServer, SecretRef, Server, Template
from mcpwrap.config.value_parsers import BadValueError
from mcpwrap.core.wire.server_files import OAuth

_LOGIN = {"oauth", "auth", "scopes", "oauth_resource"}
_FROM_VARIABLES = {"bearer_token_env_var", "env_http_headers"}


def draft(
    name: str,
    launch: HttpTransport,
    entry: Mapping[str, object],
    context: EntryContext,
    egress: tuple[Destination | Group, ...] = (),
) -> Draft:
    """Return the server that an entry becomes. `entry` has all its keys.

    Raises:
        MigrationError: the entry cannot be converted.
    """
    if variable := secret_variable(launch.url, context.variables):
        raise MigrationError(
            f"its URL has your variable {variable}, which can be a secret; "
            "send it in a header, if the server takes one",
            code="E-MIGRATE-URL-SECRET",
        )
    url = filled_in(launch.url, context.variables)
    if url is None:
        raise MigrationError(
            "its URL has a reference that only the agent can resolve; write the value",
            code="E-MIGRATE-REFERENCE",
        )
    if holds_secret_url(url):
        raise MigrationError(
            "its URL holds a secret; send it in a header, if the server takes one",
            code="E-MIGRATE-URL-SECRET",
        )
    for key in launch.further:
        if key not in _LOGIN | _FROM_VARIABLES:
            raise MigrationError(
                f"its key `{key}` changes how it is reached, and mcpwrap has no equivalent",
                code="E-MIGRATE-KEY",
            )
    kept = ExtractedSecrets()
    headers = {k: header(k, text, context.variables, kept) for k, text in launch.headers.items()}
    headers |= _from_variables(entry, context, kept)
    bearer = headers.pop("Authorization", ()) if _is_bearer(headers.get("Authorization")) else ()
    remote = RemoteServer(
        url=_checked(url),
        bearer_token_env_var=next((p.key for p in bearer if isinstance(p, SecretRef)), ""),
        headers=headers,
        oauth=None if bearer else _oauth(launch, entry),
    )
    server = Server(
        name=name, runs=remote, agents=(context.account,), transparent=False,
        egress=tuple(dict.fromkeys([*remote_server.reached(remote), *egress])),
    )  # fmt: skip
    return Draft(
        server=server, value_by_key=kept.value_by_key, missing=tuple(kept.missing),
        variables_by_key=kept.variables_by_key, notes=_notes(remote),
    )  # fmt: skip


def _oauth(launch: HttpTransport, entry: Mapping[str, object]) -> OAuth | None:
    """Return the OAuth settings, if the agent authenticates by a login.

    Raises:
        MigrationError: its client has a secret, which mcpwrap does not store.
    """
    values = [entry[key] for key in launch.further if key in _LOGIN and entry[key]]
    settings = {k: v for found in values if isinstance(found, dict) for k, v in found.items() if v}
    if any(is_secret_name(key) for key in settings):
        raise MigrationError(
            "its OAuth client has a secret, and mcpwrap is a public client, without one; "
            "register a client without a secret",
            code="E-MIGRATE-OAUTH-SECRET",
        )
    ids = [str(settings[key]) for key in ("clientId", "CLIENT_ID", "client_id") if key in settings]
    scopes = settings.get("scopes", entry.get("scopes"))
    listed = scopes if isinstance(scopes, list) else str(scopes or "").split()
    return OAuth(client_id="".join(ids), scopes=tuple(map(str, listed))) if values else None


def _is_bearer(value: Template | None) -> bool:
    return value is not None and len(value) == 2 and value[0] == "Bearer "


def _checked(url: str) -> str:
    try:
        return remote_server.url(url)
    except BadValueError as error:
        raise MigrationError(
            f"mcpwrap does not accept its URL: {error.problem}; {error.fix}", code=error.code
        ) from error


def _from_variables(
    entry: Mapping[str, object], context: EntryContext, kept: ExtractedSecrets
) -> dict[str, Template]:
    """Return the headers whose values Codex takes from its environment."""
    found: dict[str, Template] = {}
    by_name = entry.get("env_http_headers")
    for name, variable in by_name.items() if isinstance(by_name, dict) else ():
        found[name] = (_own(str(variable), context, kept),)
    if variable := entry.get("bearer_token_env_var"):
        found["Authorization"] = ("Bearer ", _own(str(variable), context, kept))
    return found


def _own(variable: str, context: EntryContext, kept: ExtractedSecrets) -> SecretRef:
    """Store the value of one of the person's own variables as a secret."""
    value = context.variables.get(variable)
    return kept.put(variable, value, () if value is None else (variable,))


def _notes(remote: RemoteServer) -> tuple[str, ...]:
    if remote.oauth:
        return ("it needs a login: run `sudo mcpwrap login NAME` when it is applied",)
    if not remote.bearer_token_env_var and not remote.headers:
        return (
            "it gets no token. If it needs a login: write `oauth = true` below `agents` in",
            "/etc/mcpwrap/conf.d/NAME.toml, `sudo mcpwrap apply` and `sudo mcpwrap login NAME`",
        )
    return ()
