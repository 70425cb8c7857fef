"""Machines that stories share: booted once for all modules that name the same one.

A module declares `STAGE = vault.booted`: a function of a release that boots and prepares a machine,
for the time of a `with` block. It may yield the machine, or an object that has it as its attribute
`machine`. Modules with one stage run one after the other in one process, and a story leaves the
machine as it found it; a story that cannot requests a machine of its own by `boot`.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from tests.system.bed.machine import Machine

Make = Callable[..., AbstractContextManager[Any]]


class Stages:
    """The one stage that is up in this process."""

    def __init__(self) -> None:
        self.is_spoiled = False
        self._key: tuple[object, ...] = ()
        self._up: Any = None
        self._stack = ExitStack()

    def lend(self, make: Make, *values: Any) -> Any:
        """Return the result of `make(*values)`; another stage that is up is ended first."""
        key = (make, *values)
        if key != self._key or self.is_spoiled:
            self.take_down()
            self._up = self._stack.enter_context(make(*values))
            self._key = key
        return self._up

    def take_down(self) -> None:
        """End the stage that is up."""
        self.is_spoiled = False
        self._key, self._up = (), None
        self._stack.close()


def machine_of(stage: Any) -> Machine:
    """Return the machine of a stage."""
    machine: Machine = stage if isinstance(stage, Machine) else stage.machine
    return machine
