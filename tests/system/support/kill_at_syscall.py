"""Kill of root's program at a chosen system call, by strace."""

from dataclasses import dataclass

from tests.system.bed.machine import Machine

ROOTS_PROGRAM = "/usr/libexec/mcpwrap/mcpwrap-root"
FORK = "vfork,clone,clone3"  # by which it starts a command: Python and the C library choose
CHANGES = ("rename", "unlink")
TRACE = "/root/calls"
# Without -f: calls of the commands that it starts are not traced.
STRACE = "strace -qq -e signal=none"


@dataclass(frozen=True)
class Call:
    """One system call of a run."""

    kind: str  # as in `trace=` of strace
    number: int  # 1 is the first of its kind
    lines_before: int  # number of lines that the program had printed by then


def calls(machine: Machine, command: str, *, stdin: str = "") -> list[Call]:
    """Run root's program to its end; return its calls that start commands or change files."""
    trace = f"trace={FORK},{','.join(CHANGES)},write"
    machine.as_root(f"{STRACE} -o {TRACE} -e {trace} {ROOTS_PROGRAM} {command}", stdin=stdin)
    found: list[Call] = []
    lines = 0
    for line in machine.read(TRACE).splitlines():
        name = line.partition("(")[0]
        if name == "write":
            lines += line.startswith("write(1, ")
            continue
        kind = name if name in CHANGES else FORK
        number = 1 + sum(call.kind == kind for call in found)
        found.append(Call(kind, number, lines))
    return found


def without_looks(found: list[Call]) -> list[Call]:
    """Leave out the commands that are started before the first file is changed, but the last.

    All of them find the machine unchanged, so a kill at one is a kill at each.
    """
    first = next(n for n, call in enumerate(found) if call.kind in CHANGES)
    return found[max(first - 1, 0) :]


def few(found: list[Call]) -> list[Call]:
    """Return the first, the last and one between them, always the same: for `make test`."""
    return [found[at] for at in sorted({0, len(found) // 2, len(found) - 1})]


def kill_at(machine: Machine, call: Call, command: str, *, stdin: str = "") -> list[str]:
    """Run root's program again, kill it right before this call, and return its output."""
    inject = f"inject={call.kind}:signal=SIGKILL:when={call.number}"
    strace = f"{STRACE} -o /dev/null -e trace={call.kind} -e {inject}"
    done = machine.as_root(f"{strace} {ROOTS_PROGRAM} {command}; echo $?", stdin=stdin)
    *said, status = done.out.splitlines()
    assert status == "137", f"{call}: not killed, but ended with {status}"
    assert len(said) == call.lines_before, f"{call}: killed elsewhere, after {said[-1:]}"
    return said
