"""Replacement of a bridge program (`mcp-remote`) by a remote server with the bridge's URL."""

import posixpath

from mcpwrap.config.agent_files.transport import HttpTransport, StdioTransport
from mcpwrap.config.migration.variable_expansion import filled_in

_STARTED_BY = {"npx", "pnpx", "bunx"}
_BRIDGE = "mcp-remote"
# What it is told of itself: with a value, and alone. A number is the port of its login.
_WITH_VALUE = {"--transport", "--host", "--auth-timeout"}
_ALONE = {"--debug", "--silent", "--enable-proxy"}


def bridged(launch: StdioTransport) -> HttpTransport | None:
    """Return the URL to which `npx mcp-remote URL` is a bridge; None is none, or not that alone.

    The bridge itself fills its entry's own variables into a header. What else is to be filled in is
    left, for whoever looks at what of it is a secret of the person's own.
    """
    args = [_given_to(launch, arg) for arg in launch.args]
    names = [arg.partition("@")[0] for arg in args]
    if _BRIDGE not in names or posixpath.basename(launch.command) not in _STARTED_BY:
        return None
    urls, headers = [], []
    rest = iter(args[names.index(_BRIDGE) + 1 :])
    for arg in rest:
        if arg == "--header":
            headers.append(next(rest, ""))
        elif arg in _WITH_VALUE:
            next(rest, "")
        elif "://" in arg and not arg.startswith("-"):
            urls.append(arg)
        elif arg not in _ALONE and not arg.isdecimal():
            return None
    if len(urls) != 1:
        return None
    pairs = [header.partition(":") for header in headers]
    return HttpTransport(urls[0], {name.strip(): value.strip() for name, _, value in pairs})


def _given_to(launch: StdioTransport, text: str) -> str:
    known = filled_in(text, launch.env)
    return text if known is None else known
