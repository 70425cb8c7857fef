"""Machine of the bed, with the interface of its operator and its agents."""

import json
import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.shared import pace
from tests.system.bed.nspawn import Container, Profile
from tests.system.bed.session import Session
from tests.system.guest import agent, typist

CLIENT = "/opt/mcp/client/bin/python"
ENV = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
# The files that run inside are there from the start, under the names by which they are imported.
GUEST = Path(__file__).parents[1] / "guest"
BED_AT = "/opt/bed"
GUEST_AT = f"{BED_AT} /opt/probe.py"
WARNING = 4  # syslog(3)
# systemd logs the first on cgroup v1 for any unit whose last process is not yet reaped, and the
# second, in version 262, where a cgroup has no controllers; it continues.
HARMLESS = re.compile(
    r"Failed to delete controller cgroups .*, ignoring: Device or resource busy"
    r"|Failed to read pids\.max for control group .*, ignoring"
)
# The line by which `apply` tells that no limit acts, also within the JSON of a terminal's output.
NO_LIMITS = re.compile(
    r"note: this machine lacks the cgroup controllers .*? not enforced(\\r)?(\\n|\n)"
)


# A gate that an agent has started serves before its unit is active; a stop at that time would end
# its ExecStartPost=, which is a failure of the unit.
GATE_IS_UP = """case $(systemctl show -P ActiveState mcpwrap-gate.service) in
activating) systemctl start mcpwrap-gate.service ;; esac"""


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    status: int
    out: str
    err: str


class CommandFailedError(AssertionError):
    """Command inside the machine that ended with another status than the test expects."""


class Machine:
    """Machine of the bed. Commands run as units inside it, so that its own rules apply to them."""

    def __init__(self, suite: str, container: Container) -> None:
        self.suite = suite
        self._container = container
        self._announced: list[str] = []
        self._read_until = ""
        self._bring_guest_files()
        container.boot()

    def _bring_guest_files(self) -> None:
        folder = self._container.root / f"{BED_AT[1:]}/tests/system/guest"
        shutil.rmtree(folder, ignore_errors=True)
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(GUEST, folder, ignore=ignored, copy_function=_copy_readable)
        for package in (folder.parents[1], folder.parent):
            (package / "__init__.py").touch()
        _copy_readable(GUEST / "probe.py", self._container.root / "opt/probe.py")

    # ------------------------------------------------------------------ actions
    def as_root(self, command: str, *, stdin: str = "", status: int = 0) -> Done:
        """Run a shell command as root; it must end with `status`."""
        return self._run(["sh", "-c", command], user="root", stdin=stdin, status=status)

    def as_user(self, user: str, command: str, *, stdin: str = "", status: int = 0) -> Done:
        """Run a shell command as this account, in its home, with its groups."""
        return self._run(["sh", "-c", command], user=user, stdin=stdin, status=status)

    def typed(
        self, command: str, answers: Sequence[typist.Answer], *, user: str = "alice"
    ) -> tuple[int, str]:
        """Run a shell command at a terminal of a person's; return its status, and its output.

        Of each of `answers` the first is a pattern, after which the second is typed; the third, if
        any, is for how long a person reads before.
        """
        asked = json.dumps({"argv": ["bash", "-c", command], "answers": answers})
        argv = ["/usr/bin/python3", "-c", Path(typist.__file__).read_text(), asked]
        done = self._run(argv, user=user, stdin="", status=0)
        status, shown = json.loads(done.out)
        return status, shown

    def probe(self, script: str, *, user: str = "root", status: int = 0) -> Any:
        """Run a Python script with the system's Python and return the JSON that it prints."""
        done = self._run(["/usr/bin/python3", "-c", script], user=user, stdin="", status=status)
        return json.loads(done.out)

    @staticmethod
    def guest_command(module: str, function: str, *arguments: Any) -> str:
        """Return the shell command that calls a function of a file of `guest/`, in the machine."""
        call = ["-m", "tests.system.guest.call", module, function, json.dumps(arguments)]
        return shlex.join(["env", f"PYTHONPATH={BED_AT}", "/usr/bin/python3", "-B", *call])

    def call(self, module: str, function: str, *arguments: Any, user: str = "root") -> Any:
        """Call a function of a file of `guest/` as this account; return its result."""
        return json.loads(self.as_user(user, self.guest_command(module, function, *arguments)).out)

    def look_by(self, module: str, function: str, *arguments: Any) -> Any:
        """Call a function that changes nothing, as root and without a unit."""
        return json.loads(self.look(self.guest_command(module, function, *arguments)))

    def look(self, command: str) -> str:
        """Run a shell command as root that changes nothing, and return its output.

        It is not a unit, which takes five times as long: it is in no control group of the machine.
        """
        return self._finish(self._container.enter(["sh", "-c", command]), command).out

    def _run(self, argv: list[str], *, user: str, stdin: str, status: int) -> Done:
        text = f"{user}$ {shlex.join(argv)[-2000:]}"
        entered = self._container.enter(self._argv(argv, user))
        return self._finish(entered, text, stdin=stdin, status=status)

    def _finish(self, argv: list[str], text: str, *, stdin: str = "", status: int = 0) -> Done:
        done = subprocess.run(
            argv, input=stdin.encode(), capture_output=True, timeout=2 * pace.WAIT_S, env=ENV
        )
        out, err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        if done.returncode != status:
            ended = f"{text}\nended with {done.returncode}, not {status}"
            raise CommandFailedError(f"{ended}\n{out}\n{err}")
        if not self._container.has_controllers:
            out = NO_LIMITS.sub("", out)
        return Done(done.returncode, out, err)

    @staticmethod
    def _argv(argv: list[str], user: str) -> list[str]:
        """Return the command as a unit of its own; outside a unit it would be in no cgroup."""
        home = "/root" if user == "root" else f"/home/{user}"
        unit = ["systemd-run", "--quiet", "--wait", "--pipe", "--collect", f"--uid={user}"]
        unit += [f"--setenv=HOME={home}", f"--working-directory={home}", "--service-type=exec"]
        # Its leftover processes are not waited for: on cgroup v1 systemd 252 sometimes (one in
        # twenty) does not notice that a child ended after its parent, and would wait for 90 s.
        unit += ["--property=KillMode=process"]
        return [*unit, "--", *argv]

    def add_person(self, name: str, *, groups: str = "") -> int:
        """Make an account as an administrator does, and return its UID."""
        more = f"-G {groups}" if groups else ""
        self.as_root(f"useradd -m -s /bin/bash {more} {name}")
        return int(self.as_root(f"id -u {name}").out)

    def configure(self, toml: str) -> None:
        """Write this text into /etc/mcpwrap/config.toml."""
        self.write("/etc/mcpwrap/config.toml", toml)

    def apply(self) -> str:
        """Run `mcpwrap apply` and return its output."""
        return self.as_root("mcpwrap apply").out

    def call_tool(
        self,
        server: str,
        tool: str,
        arguments: dict[str, Any] | None = None,
        *,
        user: str = "alice",
    ) -> str:
        """Call one tool with the official client, as an agent of `user`, and return its text."""
        return str(
            self.agent("call_tool", user=user, server=server, tool=tool, arguments=arguments or {})
        )

    def agent(self, story: str, *, user: str = "alice", **values: Any) -> Any:
        """Run one of the stories of `agent.py`, as an agent of `user`; return its result."""
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
        """Stop the rules watchdog for the time of the block, so that changed packet rules stay."""
        self.as_root("systemctl stop mcpwrap-watch")
        try:
            yield
        finally:
            self.as_root("systemctl start mcpwrap-watch")  # which restores the packet rules first

    @contextmanager
    def without_rules_unit(self) -> Iterator[None]:
        """Stop the unit of the packet rules, for the time of the block.

        Masked, because every starting unit wants it: sysinit.target does.
        """
        self.as_root("systemctl mask --runtime --now mcpwrap-nft")
        try:
            yield
        finally:
            self.as_root("systemctl unmask --runtime mcpwrap-nft; systemctl start mcpwrap-nft")

    def reboot(self) -> None:
        """Shut down and boot again, with the same disk."""
        self._container.power_off()
        self._container.boot()

    def lose_power(self) -> None:
        """Kill all its processes at once; its disk stays as it is."""
        self._container.kill()

    def boot_again(self) -> None:
        """Boot after `lose_power`."""
        self._container.boot()

    def shut_down(self) -> Path:
        """Shut down, and return the folder with all changes of the disk."""
        self._container.power_off()
        return self._container.upper

    def remove(self) -> None:
        """Remove the machine from the host."""
        self._container.remove()

    def __enter__(self) -> "Machine":
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    @contextmanager
    def patched(self, module: str, line: str, instead: str) -> Iterator[None]:
        """Replace a piece of the installed code, for the time of the block."""
        file = f"/usr/lib/mcpwrap/mcpwrap/{module}.py"
        text = self.read(file)
        assert text.count(line) == 1, f"{module} has it {text.count(line)} times: {line}"
        restart = "systemctl stop 'mcpwrap@*.service'; systemctl restart mcpwrap-gate.service"
        restart = f"{GATE_IS_UP}; {restart}"
        self.replace(file, text.replace(line, instead))
        self.as_root(restart)
        try:
            yield
        finally:
            self.replace(file, text)
            self.as_root(restart)

    # ------------------------------------------------------------------ state
    @property
    def profile(self) -> Profile:
        """Resource limits of this host that the machine has."""
        return self._container.profile

    @property
    def cgroups(self) -> str:
        """Folder inside that has its tree of cgroup v2."""
        return "/sys/fs/cgroup" if self._container.is_unified else "/sys/fs/cgroup/unified"

    @property
    def leader(self) -> int:
        """PID on the host of its first process; its namespaces are the machine's."""
        return self._container.leader

    def path(self, inside: str) -> Path:
        """Return the path on the host of a file of the machine."""
        return Path(f"/proc/{self.leader}/root{inside}")

    def write(self, inside: str, text: str, *, mode: int = 0o644) -> None:
        """Write a file of root into the machine."""
        path = self.path(inside)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)

    def replace(self, inside: str, text: str) -> None:
        """Replace a file by another at once: a concurrent reader reads one of the two.

        It keeps the owner of the old one.
        """
        path = self.path(inside)
        new = path.with_name(f".{path.name}.new")
        new.write_text(text)
        os.chown(new, path.stat().st_uid, path.stat().st_gid)
        new.chmod(path.stat().st_mode)
        new.replace(path)

    def read(self, inside: str) -> str:
        """Return the text of a file, as root reads it."""
        return self.path(inside).read_text()

    def uid_of(self, account: str) -> int:
        """Return the UID of an account."""
        return int(self.look(f"id -u {account}"))

    def pids(self, name: str) -> list[int]:
        """Return the processes of server `name`, without its supervisor and a pre-forked process.

        The latter is alone in a control group that has no agent's label.
        """
        main = self.show(f"mcpwrap@{name}.service", "MainPID")["MainPID"]
        found: list[int] = self.look_by("processes", "of_server", f"mcpw-{name}", main)
        return found

    def await_end_of(self, name: str, within_s: float = 2.0) -> None:
        """Wait until no process of server `name` is left but its supervisor.

        Raises:
            AssertionError: some are left after `within_s`, on a host that does nothing else.
        """
        give_up_at = time.monotonic() + pace.promised(within_s)
        while pids := self.pids(name):  # at first the server's, then those of the session cleanup
            self.look_by("processes", "await_end", 0.2, pids)
            assert time.monotonic() < give_up_at, f"processes are left: {pids}"

    def await_pids(self, name: str, are_so: Callable[[set[int]], bool]) -> set[int]:
        """Wait until the processes of server `name` meet a condition, and return them."""
        found: list[set[int]] = []

        def looked() -> bool:
            found.append(set(self.pids(name)))
            return are_so(found[-1])

        pace.until(looked)
        return found[-1]

    def await_admission(self, name: str, *, user: str = "alice") -> None:
        """Retry until the start backoff of a server that could not be started is over."""
        self.as_user(user, f"until mcpwrap-connect {name} </dev/null 2>/dev/null; do :; done")

    def await_idle_gate(self) -> None:
        """Wait until the gate has no child."""
        gate = self.show("mcpwrap-gate.service", "MainPID")["MainPID"]
        pace.until(lambda: not self.look(f"pgrep -P {gate} || true"))

    def show(self, unit: str, *names: str) -> dict[str, str]:
        """Return properties of a unit."""
        out = self.look(f"systemctl show -p {','.join(names)} '{unit}'")
        return dict(line.split("=", 1) for line in out.splitlines())

    def journal(self, *matches: str) -> list[dict[str, Any]]:
        """Return the matching entries of this boot."""
        out = self.look(
            f"journalctl --sync; journalctl -b -o json --no-pager {shlex.join(matches)}"
        )
        return [json.loads(line) for line in out.splitlines()]

    # ------------------------------------------------------------------ unannounced journal lines
    def announce(self, pattern: str) -> None:
        """Announce that the test is about to cause such a line in the journal."""
        self._announced.append(pattern)

    def unannounced(self) -> list[str]:
        """Return mcpwrap's journal lines at warning or above since the last call.

        A follower would not be cheaper: journald wakes it a quarter of a second after a line.
        """
        after = f"--after-cursor='{self._read_until}'" if self._read_until else "-b"
        # With --sync no earlier line is missed, and then found in the next story.
        read = f"journalctl {after} -o json --no-pager --show-cursor"
        out = self.look(f"journalctl --sync; {read}")
        lines = out.splitlines()
        if lines and lines[-1].startswith("-- cursor: "):
            self._read_until = lines.pop().removeprefix("-- cursor: ")
        entries = [json.loads(line) for line in lines if line.startswith("{")]
        found = [text for entry in entries if (text := complaint(entry))]
        left = [text for text in found if not any(re.search(p, text) for p in self._announced)]
        self._announced.clear()
        return left


def _copy_readable(source: Path | str, target: Path | str) -> None:
    """Copy a file that every account of the machine can read, whatever the checkout's umask was."""
    shutil.copyfile(source, target)
    Path(target).chmod(0o644)


def complaint(entry: dict[str, Any]) -> str:
    """Return the text of an entry of mcpwrap at warning or above; otherwise nothing."""
    unit = str(entry.get("UNIT") or entry.get("_SYSTEMD_UNIT") or "")
    message = str(entry.get("MESSAGE"))
    is_ours = unit.startswith("mcpwrap") or "mcpwrap" in str(entry.get("SYSLOG_IDENTIFIER"))
    is_dump = "core-dump" in message or "dumped core" in message
    is_bad = int(entry.get("PRIORITY", 6)) <= WARNING or "Traceback" in message or is_dump
    return f"{unit}: {message}" if is_ours and is_bad and not HARMLESS.search(message) else ""
