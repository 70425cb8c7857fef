"""`mcpwrap apply`: plan the steps, print them and carry them out."""

from mcpwrap.as_root.apply import trial
from mcpwrap.as_root.apply.step_executor import carry_out
from mcpwrap.errors import McpwrapError, file_error
from mcpwrap.linux import tty
from mcpwrap.machine import planning
from mcpwrap.plan.diff.diff import RetirementPolicy
from mcpwrap.plan.steps import Step


def apply(retired: RetirementPolicy) -> None:
    """Plan, and carry it out; who calls holds the lock.

    Raises:
        McpwrapError: the configuration is wrong, or a step failed.
    """
    planned = planning.planned(retired)
    notes = [*trial.of_workspaces(planned.wanted), *planned.notes]
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


def _do(step: Step, done: int) -> None:
    try:
        carry_out(step)
    except OSError as error:
        told = file_error(error)
        problem = f"{told.where}: {told.problem}"
        raise _broken_off(McpwrapError(problem, where="", fix=told.fix), step, done) from error
    except McpwrapError as error:
        raise _broken_off(error, step, done) from error


def _broken_off(error: McpwrapError, step: Step, done: int) -> McpwrapError:
    return McpwrapError(
        error.problem,
        where=step.describe(),
        fix=f"{error.fix}; then run `mcpwrap apply` again: it goes on from there",
        more=[*error.more, f"{done} steps before it were done and stay done"],
    )
