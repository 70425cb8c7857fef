"""Hub of converted servers: a draft for root, with a namespace for each member."""

import re
from collections.abc import Sequence

from mcpwrap.config.migration.draft import Draft
from mcpwrap.config.model import Hub, HubMember, Server
from mcpwrap.config.parse import SourceFile, parse_part
from mcpwrap.config.toml_writer import toml_of
from mcpwrap.core.names import MAX_NAME_CHARS, is_server_name
from mcpwrap.errors import UsageError

USUAL_NAME = "tools"
_MORE_THAN_ONE = re.compile(r"__+")


def namespace_for(server: str) -> str:
    """Return the namespace of a member that has none of its own: its name, with single `_`."""
    return _MORE_THAN_ONE.sub("_", server).strip("_")


def expect_hub_name(name: str) -> None:
    """Refuse a name that no hub can have.

    Raises:
        UsageError: it cannot be the name of a server, or has `_`.
    """
    if not is_server_name(name) or "_" in name:
        raise UsageError(
            f"{name!a:.80} cannot be the name of a hub; nothing was changed",
            where="--hub",
            fix=f"begin with a-z, go on with a-z 0-9 -, use at most {MAX_NAME_CHARS} characters",
            code="E-HUB-NAME",
        )


def hub_draft(name: str, account: str, members: Sequence[HubMember]) -> Draft:
    """Return the draft of a hub that one account may use.

    Raises:
        UsageError: the name is not valid.
        ConfigError: with each problem of its members' namespaces.
    """
    expect_hub_name(name)
    ordered = tuple(sorted(members, key=lambda member: member.name))
    server = Server(name=name, runs=Hub(members=ordered), agents=(account,), transparent=False)
    parse_part([SourceFile("the new hub", toml_of(server).encode())])
    return Draft(
        server=server,
        notes=tuple(
            f"{member.name}: its tools are named {member.namespace}__TOOL"
            for member in ordered
            if member.namespace
        ),
    )
