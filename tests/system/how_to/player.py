"""Play of a page: its files are written, its commands typed, and their output compared."""

import base64
import json
import threading
from collections.abc import Mapping, Sequence

from tests.shared import pace
from tests.system.bed.machine import Machine
from tests.system.support.how_to import (
    PERSON,
    Command,
    Copies,
    File,
    LeftOut,
    Step,
    is_shown,
    pattern_of,
    plain,
)


class PageDiffersError(AssertionError):
    """A command that did not do what the page shows."""

    def __init__(self, command: Command, status: int, shown: str) -> None:
        wanted = f"{command.output or '(anything)'}status {command.status}"
        came = f"{plain(shown)}status {status}"
        where = f"line {command.line}, as {command.account}"
        super().__init__(f"{where}\n{command.script}--- the page\n{wanted}\n--- came\n{came}")


class Player:
    """Player of one page. `machine_by_name` has the machines; the first one has no name."""

    def __init__(self, machine_by_name: Mapping[str, Machine]) -> None:
        self._machine_by_name = machine_by_name
        self._beside: list[_Beside] = []

    def play(self, steps: Sequence[Step]) -> None:
        """Take all steps.

        Raises:
            PageDiffersError: an output or an exit status differs from the page.
        """
        for step in steps:
            match step:
                case File():
                    self._write(step)
                case Command():
                    self._type(step)
                case Copies():
                    self._copy(step)
                case LeftOut():
                    pass
        for beside in self._beside:
            beside.expect_end()

    def _write(self, file: File) -> None:
        machine = self._machine_by_name[file.machine]
        write = f'mkdir -p "$(dirname {file.path})"; cat > {file.path}'
        machine.as_user(file.account, write, stdin=file.text)

    def _copy(self, copies: Copies) -> None:
        for name in copies.names:
            file = f"/home/{PERSON}/{name}"
            content = base64.b64encode(self._machine_by_name[""].path(file).read_bytes()).decode()
            write = f"umask 077; base64 -d > {file}"
            self._machine_by_name[copies.machine].as_user(PERSON, write, stdin=content)

    def _type(self, command: Command) -> None:
        machine = self._machine_by_name[command.machine]
        if command.marks & {"meanwhile", "Ctrl-C"}:
            self._beside.append(_Beside(machine, command))
            return
        awaited = [one for one in self._beside if one.takes_ctrl_c and one.is_alive()]
        if awaited:
            pace.until(lambda: self._repeat(machine, command, awaited[-1]))
        elif "until" in command.marks:
            self._type_until(machine, command)
        elif differs := _differs(command, *typed(machine, command)):
            raise differs

    @staticmethod
    def _type_until(machine: Machine, command: Command) -> None:
        """Type a command until its output is that of the page."""
        differs: list[AssertionError | None] = []

        def is_as_written() -> bool:
            differs.append(_differs(command, *typed(machine, command)))
            return differs[-1] is None

        try:
            pace.until(is_as_written)
        except AssertionError as error:
            raise error from differs[-1]

    @staticmethod
    def _repeat(machine: Machine, command: Command, beside: "_Beside") -> bool:
        """Type a command once; return whether the one at the other terminal has ended."""
        if differs := _differs(command, *typed(machine, command)):
            raise differs
        return not beside.is_alive()


class _Beside(threading.Thread):
    """Command at another terminal."""

    def __init__(self, machine: Machine, command: Command) -> None:
        super().__init__(daemon=True)
        self._machine, self._command = machine, command
        self._result: tuple[int, str] | None = None
        self.takes_ctrl_c = "Ctrl-C" in command.marks
        self.start()

    def run(self) -> None:
        self._result = typed(self._machine, self._command)

    def expect_end(self) -> None:
        """Wait for its end, and compare."""
        self.join()
        assert self._result is not None, self._command
        status, shown = self._result
        if self.takes_ctrl_c:
            status = self._command.status
        if differs := _differs(self._command, status, shown):
            raise differs


def typed(machine: Machine, command: Command) -> tuple[int, str]:
    """Type a command at a terminal of its account; return its status, and what was shown."""
    until = pattern_of(command.output or "") if "Ctrl-C" in command.marks else ""
    wanted = {
        "script": command.script,
        "typed": command.typed,
        "opens": "opens" in command.marks,
        "until": until,
    }
    program = machine.guest_command("page_terminal", "play")
    # By standard input: systemd-run expands `${X}` in arguments.
    done = machine.as_user(command.account, program, stdin=json.dumps(wanted))
    status, shown = json.loads(done.out)
    return int(status), str(shown)


def _differs(command: Command, status: int, shown: str) -> PageDiffersError | None:
    is_as_shown = command.output is None or is_shown(command.output, shown)
    if is_as_shown and status == command.status:
        return None
    return PageDiffersError(command, status, shown)
