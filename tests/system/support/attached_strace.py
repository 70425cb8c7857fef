"""Kill of a running service at a chosen system call, by a strace that is attached to it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tests.shared import pace
from tests.system.bed.machine import Machine

TRACE = "/root/attached"


@dataclass(frozen=True)
class Call:
    """System call of the service, or of a process that it starts."""

    kind: str  # as in `trace=` of strace, with alternatives
    number: int  # 1 is the first of its kind in its process: strace counts for each


def calls(machine: Machine, pid: int, kinds: Sequence[str], command: str) -> list[Call]:
    """Run a command as root; return the calls of these kinds that the service makes meanwhile."""
    with _attached(machine, pid, f"-o {TRACE} -e trace={','.join(kinds)}"):
        machine.as_root(command)
    kind_of = {name: kind for kind in kinds for name in kind.split(",")}
    count: Counter[tuple[str, str]] = Counter()
    found: dict[Call, None] = {}
    for line in machine.read(TRACE).splitlines():
        who, _, rest = line.partition(" ")
        kind = kind_of.get(rest.lstrip().partition("(")[0])
        if kind:
            count[who, kind] += 1
            found.setdefault(Call(kind, count[who, kind]))
    return list(found)


def kill_at(machine: Machine, pid: int, call: Call, command: str) -> None:
    """Run a command as root, and kill the process that makes this call first, right before it."""
    inject = f"inject={call.kind}:signal=SIGKILL:when={call.number}"
    with _attached(machine, pid, f"-o /dev/null -e trace={call.kind} -e {inject}"):
        machine.as_root(command)


@contextmanager
def _attached(machine: Machine, pid: int, options: str) -> Iterator[None]:
    strace = f"exec strace -f -qq -e signal=none {options} -p {pid}"
    with machine.session("", user="root", command=strace):
        pace.until(lambda: _tracer(machine, pid) != "0")
        yield
        tracer = _tracer(machine, pid)
        if tracer not in {"", "0"}:  # the service has not been killed
            machine.as_root(f"kill -INT {tracer}")


def _tracer(machine: Machine, pid: int) -> str:
    """Return the process that traces it; "" where it has ended."""
    return machine.look(
        f"awk '/^TracerPid/ {{print $2}}' /proc/{pid}/status 2>/dev/null || true"
    ).strip()
