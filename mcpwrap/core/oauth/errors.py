"""OAuth errors, with texts that hold no token, no code and no URL with a query."""


class OAuthError(Exception):
    """Refusal or invalid data of the authorization server, or of the path that leads to it."""


class NotLoggedInError(OAuthError):
    """Missing login: a person has to log in first."""


def not_logged_in(name: str, why: str = "") -> NotLoggedInError:
    """Return what an agent is told when a person has to log in to the server `name`."""
    because = f" ({why})" if why else ""
    return NotLoggedInError(f"not logged in{because}: `mcpwrap login {name}`")
