"""File that the supervisor writes for an OAuth session: key, store and client settings."""

import msgspec


class OAuthSessionFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """OAuth file of a session, written by the wrapper: `secrets/oauth.json` in its folder."""

    name: str
    key: str  # 32 bytes as base64, of `/var/lib/mcpwrap/sealed/NAME/MCPWRAP_OAUTH_KEY.sealed`
    store: str  # the path of the token store
    scopes: tuple[str, ...] = ()
    client_id: str = ""
    client_id_metadata: str = ""


def read_oauth_session_file(text: bytes) -> OAuthSessionFile:
    """Parse the file of the wrapper.

    Raises:
        msgspec.MsgspecError: the content is not valid.
    """
    return msgspec.json.decode(text, type=OAuthSessionFile)
