"""OAuth errors, with texts that hold no token, no code and no URL with a query."""


class OAuthError(Exception):
    """Refusal by the authorization server, invalid data from it, or failure to reach it."""


class NotLoggedInError(OAuthError):
    """Missing login: a person has to log in first."""


def not_logged_in(name: str, why: str = "") -> NotLoggedInError:
    """Return the error for an agent when a person has to log in to the server `name`."""
    because = f" ({why})" if why else ""
    return NotLoggedInError(f"not logged in{because}: `mcpwrap login {name}`")
