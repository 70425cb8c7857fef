"""JSON schema of `mcpwrap wrap --json`. No value of a secret is in it."""

from typing import Literal

import msgspec

from mcpwrap.config.agent_files.wrap_status import WrapState
from mcpwrap.config.migration.draft import Draft
from mcpwrap.config.toml_writer import toml_of


class WrapServerRow(msgspec.Struct, frozen=True, kw_only=True):
    """Server of a file. The same words as in `mcpwrap clients --json` mean the same."""

    name: str
    project: str
    state: WrapState  # now
    server: str  # the one of ours that it leads to, or will; "": it is left as it is
    is_new: bool  # root does not have that server, or did not
    why: str  # it is left
    kind: Literal["stdio", "remote", ""]
    runs: str


class WrapFileRow(msgspec.Struct, frozen=True, kw_only=True):
    """File that was chosen."""

    agents: list[str]
    scope: str
    path: str
    sha256: str  # of a project's file that was read: for `--sha256`
    problem: str  # why it stays as it is
    is_written: bool
    backup: str  # of what it was; "": it was not rewritten
    left_over: list[str]  # secrets that still stand elsewhere in it: `KEY of SERVER`
    servers: list[WrapServerRow]  # none, if it was not gone through


class NewServer(msgspec.Struct, frozen=True, kw_only=True):
    """New server that root is asked for; of its secrets the keys."""

    name: str
    definition: str  # TOML, as in the proposal
    secrets: list[str]  # whose values stand in the file, and are sealed
    from_variables: dict[str, list[str]]  # those that get the values of the caller's own variables
    missing: list[str]  # those that somebody has to set
    notes: list[str]


class ProposalRow(msgspec.Struct, frozen=True, kw_only=True):
    """Proposal that root has not taken yet."""

    sha256: str
    path: str
    command: str  # for root
    is_written: bool


class WrapReport(msgspec.Struct, frozen=True, kw_only=True):
    """Whole output of `--json`."""

    done: bool  # every server of these files is wrapped
    files: list[WrapFileRow]
    new: list[NewServer]
    notes: list[str]
    proposal: ProposalRow | None


def new_server(draft: Draft) -> NewServer:
    """Return what there is to say of a server that root does not have yet."""
    own = draft.variables_by_key
    return NewServer(
        name=draft.server.name,
        definition=toml_of(draft.server),
        secrets=[key for key in draft.value_by_key if key not in own],
        from_variables={key: list(names) for key, names in own.items()},
        missing=list(draft.missing),
        notes=[note.replace("NAME", draft.server.name) for note in draft.notes],
    )
