"""mcpwrap: each MCP server runs under a Unix account of its own, behind one gate."""

import sys

__version__ = "0.2.0.dev0"

# pip does not install it on an older one, unless it is told to ignore that. Here no import has
# failed yet, of which the error would not name the cause.
if sys.version_info < (3, 11):  # noqa: UP036
    raise SystemExit(
        f"mcpwrap: Python 3.{sys.version_info.minor} is too old: "
        "install mcpwrap with Python 3.11 or a later one [E-SYSTEM-PYTHON]"
    )
