"""What of a URI may be written down: not who asks, nor with which key. Source: RFC 3986."""


def bare(text: str) -> str:
    """Return a URI without user, password, query and fragment; any other text as it is."""
    scheme, mark, rest = text.partition("://")
    if not mark:
        return text
    rest = rest.partition("?")[0].partition("#")[0]
    authority, slash, path = rest.partition("/")
    return f"{scheme}{mark}{authority.rpartition('@')[2]}{slash}{path}"
