"""Argument NAME of commands: the name of a server of this machine."""

from collections.abc import Container

from mcpwrap.errors import UsageError


def expect_server(name: str, known: Container[str], command: str) -> None:
    """Refuse a name that no server has; `command` is what was typed, such as `mcpwrap status`.

    Raises:
        UsageError: `known` does not have the name.
    """
    if name not in known:
        raise UsageError(
            f"no server {name!r}",
            where=command,
            fix="`mcpwrap status` lists the servers",
            code="E-USAGE-NO-SERVER",
        )
