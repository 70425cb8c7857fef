"""A machine, as the operator and the agents on it see it."""

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.system.bed import agent, typist
from tests.system.bed.nspawn import Container, Profile
from tests.system.bed.session import Session

CLIENT = "/opt/mcp/client/bin/python"
ENV = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
COMMAND_S = 120
WARNING = 4  # syslog(3)
# systemd on cgroup v1 says this of any unit whose last process is not yet reaped; it goes on.
HARMLESS = re.compile(r"Failed to delete controller cgroups .*, ignoring: Device or resource busy")

PIDS = """
import glob, json, os, pwd, re
uid, found = pwd.getpwnam({account!r}).pw_uid, []
for folder in glob.glob("/proc/[0-9]*"):
    try:
        pid = int(folder[6:])
        if os.stat(folder).st_uid not in (uid, 0) or pid == {main}: continue
        status = open(folder + "/status").read()
        if int(re.search(r"Uid:\\s+(\\d+)", status)[1]) != uid: continue
        group = re.search(r"/s-[0-9a-f]+$", open(folder + "/cgroup").read(), re.M)
        groups = glob.glob("/sys/fs/cgroup/**" + group[0], recursive=True) if group else []
        if not groups or any(glob.glob(path + "/agent-*") for path in groups): found.append(pid)
    except OSError: pass
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    status: int
    out: str
    err: str


class CommandFailedError(AssertionError):
    """A command inside ended with another status than the test says."""


class Machine:
    """One machine of the bed. Commands run as units inside it, so its own rules hold for them."""

    def __init__(self, suite: str, container: Container) -> None:
        self.suite = suite
        self._container = container
        self._announced: list[str] = []
        self._read_until = ""
        container.boot()

    # ------------------------------------------------------------------ what one does
    def as_root(self, command: str, *, stdin: str = "", status: int = 0) -> Done:
        """Run a shell command as root; it must end with `status`."""
        return self._run(["sh", "-c", command], user="root", stdin=stdin, status=status)

    def as_user(self, user: str, command: str, *, stdin: str = "", status: int = 0) -> Done:
        """Run a shell command as this account, in its home, with its groups."""
        return self._run(["sh", "-c", command], user=user, stdin=stdin, status=status)

    def typed(self, command: str, answers: list[tuple[str, str]]) -> tuple[int, str]:
        """Run a shell command at a terminal of alice's; return its status, and what was shown.

        Of each pair of `answers` the first is a pattern, after which the second is typed.
        """
        asked = json.dumps({"argv": ["bash", "-c", command], "answers": answers})
        argv = ["/usr/bin/python3", "-c", Path(typist.__file__).read_text(), asked]
        done = self._run(argv, user="alice", stdin="", status=0)
        status, shown = json.loads(done.out)
        return status, shown

    def probe(self, script: str, *, user: str = "root", status: int = 0) -> Any:
        """Run a Python script with the system's Python and return the JSON that it prints."""
        done = self._run(["/usr/bin/python3", "-c", script], user=user, stdin="", status=status)
        return json.loads(done.out)

    def _run(self, argv: list[str], *, user: str, stdin: str, status: int) -> Done:
        done = subprocess.run(
            self._container.enter(self._argv(argv, user)),
            input=stdin.encode(), capture_output=True, timeout=COMMAND_S, env=ENV,
        )  # fmt: skip
        out, err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        if done.returncode != status:
            text = f"{user}$ {shlex.join(argv)[-2000:]}\nended with {done.returncode}, not {status}"
            raise CommandFailedError(f"{text}\n{out}\n{err}")
        return Done(done.returncode, out, err)

    @staticmethod
    def _argv(argv: list[str], user: str) -> list[str]:
        """Return the command as a unit of its own; outside one it would be in no cgroup."""
        home = "/root" if user == "root" else f"/home/{user}"
        unit = ["systemd-run", "--quiet", "--wait", "--pipe", "--collect", f"--uid={user}"]
        unit += [f"--setenv=HOME={home}", f"--working-directory={home}", "--service-type=exec"]
        # What is left of it is not waited for: on cgroup v1 systemd 252 sometimes (one in twenty)
        # does not see that a child ended after its parent, and would wait for 90 s.
        unit += ["--property=KillMode=process"]
        return [*unit, "--", *argv]

    def add_person(self, name: str, *, groups: str = "") -> int:
        """Make an account as an administrator does, and return its UID."""
        more = f"-G {groups}" if groups else ""
        self.as_root(f"useradd -m -s /bin/bash {more} {name}")
        return int(self.as_root(f"id -u {name}").out)

    def configure(self, toml: str) -> None:
        """Put this text into /etc/mcpwrap/config.toml."""
        self.write("/etc/mcpwrap/config.toml", toml)

    def apply(self) -> str:
        """Run `mcpwrap apply` and return what it printed."""
        return self.as_root("mcpwrap apply").out

    def call_tool(
        self,
        server: str,
        tool: str,
        arguments: dict[str, Any] | None = None,
        *,
        user: str = "alice",
    ) -> str:
        """Call one tool with the official client, as an agent of `user`'s, and return its text."""
        return str(
            self.agent("call_tool", user=user, server=server, tool=tool, arguments=arguments or {})
        )

    def agent(self, story: str, *, user: str = "alice", **values: Any) -> Any:
        """Play one of the stories of `agent.py`, as an agent of `user`'s; return what it saw."""
        argv = [CLIENT, "-c", agent.script(story, **values)]
        done = self._run(argv, user=user, stdin="", status=0)
        return json.loads(done.out.splitlines()[-1])

    def session(self, name: str, *, user: str = "alice", command: str = "") -> Session:
        """Start a stub and hold its session open, as an agent does."""
        argv = self._argv(["sh", "-c", command or f"exec mcpwrap-connect {name}"], user)
        process = subprocess.Popen(
            self._container.enter(argv),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENV,
        )  # fmt: skip
        return Session(process)

    @contextmanager
    def unwatched(self) -> Iterator[None]:
        """Leave the packet rules as somebody makes them, for the time of the block."""
        self.as_root("systemctl stop mcpwrap-watch")
        try:
            yield
        finally:
            self.as_root("systemctl start mcpwrap-watch")  # which puts them back first

    def reboot(self) -> None:
        """Shut down and boot again, with the same disk."""
        self._container.power_off()
        self._container.boot()

    def shut_down(self) -> Path:
        """Shut down, and return the folder with all that has changed on the disk."""
        self._container.power_off()
        return self._container.upper

    def remove(self) -> None:
        """Take the machine off the host."""
        self._container.remove()

    @contextmanager
    def patched(self, module: str, line: str, instead: str) -> Iterator[None]:
        """Replace a piece of the installed code, for the time of the block."""
        file = f"/usr/lib/mcpwrap/mcpwrap/{module}.py"
        text = self.read(file)
        assert text.count(line) == 1, f"{module} has it {text.count(line)} times: {line}"
        restart = "systemctl stop 'mcpwrap@*.service'; systemctl restart mcpwrap-gate.service"
        self.write(file, text.replace(line, instead))
        self.as_root(restart)
        try:
            yield
        finally:
            self.write(file, text)
            self.as_root(restart)

    # ------------------------------------------------------------------ what one sees
    @property
    def profile(self) -> Profile:
        """Which limits of this host the machine has."""
        return self._container.profile

    @property
    def leader(self) -> int:
        """The first process of it, by the host's number; its namespaces are the machine's."""
        return self._container.leader

    def path(self, inside: str) -> Path:
        """Return where a file of the machine is on the host."""
        return Path(f"/proc/{self.leader}/root{inside}")

    def write(self, inside: str, text: str, *, mode: int = 0o644) -> None:
        """Put a file there, root's own."""
        path = self.path(inside)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)

    def read(self, inside: str) -> str:
        """Return the text of a file, as root sees it."""
        return self.path(inside).read_text()

    def uid_of(self, account: str) -> int:
        """Return the UID of an account."""
        return int(self.as_root(f"id -u {account}").out)

    def pids(self, name: str) -> list[int]:
        """Return the processes of server `name`, but its supervisor and what waits for a session.

        The latter is alone in a control group that has no agent's label.
        """
        main = self.show(f"mcpwrap@{name}.service", "MainPID")["MainPID"]
        found: list[int] = self.probe(PIDS.format(account=f"mcpw-{name}", main=main))
        return found

    def await_end_of(self, name: str, within_s: float = 2.0) -> None:
        """Wait until no process of server `name` is left but its supervisor.

        Raises:
            AssertionError: some are, after `within_s`.
        """
        self._await_end(self.pids(name), within_s)
        if self.pids(name):  # what clears up after them
            self.await_end_of(name, within_s / 2)

    def await_admission(self, name: str, *, user: str = "alice") -> None:
        """Try until the gate no longer holds a server back that could not be started before."""
        self.as_user(user, f"until mcpwrap-connect {name} </dev/null 2>/dev/null; do :; done")

    def await_idle_gate(self) -> None:
        """Wait until no child of the gate's is left."""
        gate = self.show("mcpwrap-gate.service", "MainPID")["MainPID"]
        children = self.as_root(f"pgrep -P {gate} || true").out.split()
        self._await_end([int(pid) for pid in children], within_s=10.0)

    def _await_end(self, pids: list[int], within_s: float) -> None:
        watch = f"""
import json, os, select
poll, left = select.poll(), []
for pid in {pids}:
    try: poll.register(os.pidfd_open(pid), select.POLLIN); left.append(pid)
    except ProcessLookupError: pass
while left and poll.poll({within_s * 1000}):
    for fd, _ in poll.poll(0): poll.unregister(fd); left.pop()
print(json.dumps(len(left)))
"""
        assert self.probe(watch) == 0, "processes are left"

    def show(self, unit: str, *names: str) -> dict[str, str]:
        """Return properties of a unit."""
        out = self.as_root(f"systemctl show -p {','.join(names)} '{unit}'").out
        return dict(line.split("=", 1) for line in out.splitlines())

    def journal(self, *matches: str) -> list[dict[str, Any]]:
        """Return the entries of this boot that match."""
        out = self.as_root(f"journalctl -b -o json --no-pager {shlex.join(matches)}").out
        return [json.loads(line) for line in out.splitlines()]

    # ------------------------------------------------------------------ what must not happen unseen
    def announce(self, pattern: str) -> None:
        """Say that the test is about to make such a line appear in the journal."""
        self._announced.append(pattern)

    def unannounced(self) -> list[str]:
        """Return what the journal has of ours at warning or above since last asked."""
        after = f"--after-cursor='{self._read_until}'" if self._read_until else "-b"
        out = self.as_root(f"journalctl {after} -o json --no-pager --show-cursor").out
        lines = out.splitlines()
        if lines and lines[-1].startswith("-- cursor: "):
            self._read_until = lines.pop().removeprefix("-- cursor: ")
        entries = [json.loads(line) for line in lines if line.startswith("{")]
        found = [text for entry in entries if (text := complaint(entry))]
        left = [text for text in found if not any(re.search(p, text) for p in self._announced)]
        self._announced.clear()
        return left


def complaint(entry: dict[str, Any]) -> str:
    """Return the text of an entry that is ours and bad; otherwise nothing."""
    unit = str(entry.get("UNIT") or entry.get("_SYSTEMD_UNIT") or "")
    message = str(entry.get("MESSAGE"))
    is_ours = unit.startswith("mcpwrap") or "mcpwrap" in str(entry.get("SYSLOG_IDENTIFIER"))
    is_dump = "core-dump" in message or "dumped core" in message
    is_bad = int(entry.get("PRIORITY", 6)) <= WARNING or "Traceback" in message or is_dump
    return f"{unit}: {message}" if is_ours and is_bad and not HARMLESS.search(message) else ""
