"""File that the supervisor writes for an OAuth session: its key and what it may do."""

import msgspec


class OAuthSessionFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """OAuth file of a session, written by the wrapper: `secrets/oauth.json` in its folder."""

    name: str
    key: str  # 32 bytes as base64, of `/var/lib/mcpwrap/sealed/NAME/MCPWRAP_OAUTH_KEY.sealed`
    store: str  # the path of what is kept
    scopes: tuple[str, ...] = ()
    client_id: str = ""
    client_id_metadata: str = ""


def read_oauth_session_file(text: bytes) -> OAuthSessionFile:
    """Return what the wrapper gives.

    Raises:
        msgspec.MsgspecError: it is not that.
    """
    return msgspec.json.decode(text, type=OAuthSessionFile)
