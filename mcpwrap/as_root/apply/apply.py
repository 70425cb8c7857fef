"""`mcpwrap apply`: plan the steps, print them and carry them out.

Before the first step, all workspaces are opened and mapped as at the next start of their wrapper.
This is a dry run, which leaves nothing behind.
"""

import os

from mcpwrap.as_root.apply.step_executor import carry_out
from mcpwrap.as_root.workspaces import idmapped_folder
from mcpwrap.as_root.workspaces.idmapped_folder import MissingError
from mcpwrap.core.wire.server_files import Folder, Workspaces
from mcpwrap.errors import McpwrapError, UsageError, file_error
from mcpwrap.linux import tty
from mcpwrap.machine import planning
from mcpwrap.plan.desired import Desired
from mcpwrap.plan.diff.diff import RetirementPolicy
from mcpwrap.plan.steps import Step


def apply(retired: RetirementPolicy) -> None:
    """Plan, and carry out the steps. The caller holds the lock.

    Raises:
        McpwrapError: the configuration is wrong, or a step failed.
    """
    planned = planning.planned(retired)
    notes = [*check_workspaces(planned.wanted), *planned.notes]
    todo = planned.steps
    for line in planning.vanished():
        tty.say(f"note: {line}")
    if not todo:
        tty.say("nothing to do")
    for number, step in enumerate(todo, start=1):
        tty.say(f"{number:3}/{len(todo)}  {step.describe()}")
        _do(step, number - 1)
    if todo:
        tty.say("done")
    for note in [*notes, *planning.notes()]:
        tty.say(f"note: {note}")


def check_workspaces(wanted: Desired) -> list[str]:
    """Open and map every workspace; return a line for each that does not exist yet.

    Raises:
        UsageError: a server cannot be given its workspace.
    """
    notes = []
    for name, workspaces in wanted.workspaces.items():
        for folder in (*workspaces.folders, *workspaces.projects):
            try:
                os.close(
                    idmapped_folder.open_idmapped(
                        folder, workspaces, wanted.uid_by_name[name]
                    ).mount_fd
                )
            except MissingError as error:
                notes.append(f"{name} does not start: {error.problem}; {error.fix}")
            except McpwrapError as error:
                raise UsageError(
                    f"{error.problem}; nothing was changed",
                    where=f"[mcp_servers.{name}.mcpwrap], {_key(folder, workspaces)}",
                    fix=error.fix,
                    code=error.code,
                ) from error
    return notes


def _key(folder: Folder, workspaces: Workspaces) -> str:
    return "workspace" if folder in workspaces.folders else "projects"


def _do(step: Step, done: int) -> None:
    try:
        carry_out(step)
    except OSError as error:
        failure = file_error(error)
        problem = f"{failure.where}: {failure.problem}"
        cause = McpwrapError(problem, where="", fix=failure.fix, code=failure.code)
        raise _interrupted(cause, step, done) from error
    except McpwrapError as error:
        raise _interrupted(error, step, done) from error


def _interrupted(error: McpwrapError, step: Step, done: int) -> McpwrapError:
    return McpwrapError(
        error.problem,
        where=step.describe(),
        fix=f"{error.fix}; then run `mcpwrap apply` again: it continues from this step",
        more=[*error.more, f"{done} steps before this one are done and stay done"],
        code=error.code,
    )
