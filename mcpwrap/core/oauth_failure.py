"""Why there is no token, in words for whoever asked: no token, no code, no URL with a query."""


class OAuthError(Exception):
    """The authorization server or what leads to it is not as it has to be; or it refuses."""


class NotLoggedInError(OAuthError):
    """A person has to log in first."""


def not_logged_in(name: str, why: str = "") -> NotLoggedInError:
    """Return what an agent is told when a person has to log in to the server `name`."""
    because = f" ({why})" if why else ""
    return NotLoggedInError(f"not logged in{because}: `mcpwrap login {name}`")
