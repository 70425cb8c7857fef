"""View of a session's process: what the supervisor asks for, and how the program starts in it."""

import dataclasses
from collections.abc import Mapping

import msgspec

from mcpwrap.as_wrapper.project import agent_folder, view
from mcpwrap.as_wrapper.project.agent_folder import AgentFolder
from mcpwrap.as_wrapper.project.lookup import ProjectQuery
from mcpwrap.as_wrapper.project.view import ViewReport
from mcpwrap.core import project
from mcpwrap.core.project import NoProjectError, Project
from mcpwrap.core.wire.server_files import Workspaces
from mcpwrap.session.launch.spawn import Program, SpawnError


class ViewRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Request to show a project."""

    query: ProjectQuery | None = None
    why: str = ""  # there is no project to look for
    variables: dict[str, str] = {}  # of the agent, which may name the project


# Made in the supervisor, from which a session's process has them.
_REQUESTS, _REPORTS = msgspec.json.Decoder(ViewRequest), msgspec.json.Decoder(ViewReport)


class SessionView:
    """View of the sessions of one server."""

    def __init__(self, server: str, workspaces: Workspaces) -> None:
        self._server = server
        self._workspaces = workspaces

    def enter(self) -> None:
        """Enter the session's mount namespace, before a session is requested."""
        view.enter()

    def show(self, program: Program, request: bytes) -> tuple[Program | None, bytes, list[int]]:
        """Show the project; return the program as it starts there, the report, descriptors.

        Raises:
            OSError: the kernel refused.
        """
        asked = _REQUESTS.decode(request)
        shown = view.show(self._server, asked.query or asked.why, self._workspaces)
        seen = shown.report.project
        is_lacking = seen is None and project.names_project(program.args)
        started = None if is_lacking else started_in(program, seen, asked.variables)
        return started, msgspec.json.encode(shown.report), list(shown.fds)


def started_in(program: Program, seen: Project | None, variables: Mapping[str, str]) -> Program:
    """Return the program as it starts in the project, or without one."""
    if seen is None:
        return program
    return dataclasses.replace(
        program,
        cwd=seen.cwd,
        args=project.filled_in(program.args, seen.path),
        env={**program.env, **project.variables(seen, variables)},
    )


def request(
    folder: AgentFolder, owner_by_list: Mapping[str, int], variables: Mapping[str, str]
) -> ViewRequest:
    """Return the request to show the project of an agent's folder, or none.

    Raises:
        ValueError: its descriptor is not of a folder that is open for reading.
    """
    try:
        found = agent_folder.query(folder, owner_by_list)
    except NoProjectError as error:
        return ViewRequest(why=str(error))
    return ViewRequest(query=found, variables=dict(variables))


def decode_report(text: bytes) -> ViewReport:
    """Return the report of a session's process."""
    return _REPORTS.decode(text)


def lacking(why: str) -> SpawnError:
    """Return the refusal of a program whose arguments name the project, without one."""
    return SpawnError(f"it cannot start without a project: {why} [E-SESSION-NO-PROJECT]")
