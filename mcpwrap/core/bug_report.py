"""Bug report of `mcpwrap doctor --report`: facts about a machine that a stranger may read.

A list says what may be in it, and nothing else is: mcpwrap's own words (titles of checks, names of
errors, units and modules), settings by name and number, and versions of a known form. No text of a
person, a server or a log is copied, so there is nothing to search it for.
"""

import builtins
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sized
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from datetime import UTC, datetime

import msgspec

from mcpwrap.core.distribution import KNOWN_IDS
from mcpwrap.core.doctor import Check
from mcpwrap.core.hub.agent_profiles import AGENT_PROFILES

HIDDEN = "…"
_UNKNOWN = "not known"
_NUMBERS = re.compile(r"[0-9]{1,5}(\.[0-9]{1,5}){0,3}")
# What the value of each fact looks like; a value of another form is left out.
_FORM_BY_FACT = {
    "mcpwrap": re.compile(r"[0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4}(\.?(dev|rc|a|b)[0-9]{1,4})?"),
    "package": re.compile(r"(deb|rpm) [0-9][0-9a-z.~+-]{0,40}|from source"),
    "commit": re.compile(r"[0-9a-f]{7,40}(-modified)?"),
    "Python": re.compile(r"3\.[0-9]{1,2}\.[0-9]{1,3}((a|b|rc)[0-9]{1,2})?\+?"),
    "distribution": re.compile(
        rf"({'|'.join(sorted(KNOWN_IDS))})( [0-9]{{1,8}}(\.[0-9]{{1,4}})?)?"
    ),
    "architecture": re.compile(r"x86_64|aarch64|riscv64|ppc64le|s390x|armv7l|i686"),
    "systemd": _NUMBERS,
    "nft": _NUMBERS,
    "Squid": _NUMBERS,
    "Squid with OpenSSL": re.compile(r"yes|no"),
    "Squid's certificate helper": re.compile(r"there|missing"),
    "cgroup": re.compile(r"v1|v2|hybrid"),
    "Landlock": _NUMBERS,
    "SELinux": re.compile(r"enforcing|permissive"),
}
# Parts of a kernel's release that distributions use, beside numbers.
_KERNEL_PARTS = re.compile(
    r"[0-9]{1,8}|(deb|fc|el|rc|mga|bpo|arch)[0-9]+(_[0-9]+)?|x86_64|x86|64|amd64|arm64|aarch64|generic"
    r"|default|cloud|rt|lts|zen|hardened|microsoft|standard|WSL2|azure|aws|gcp|kvm"
)
_LSMS = frozenset({
    "apparmor", "bpf", "capability", "evm", "ima", "integrity", "landlock", "loadpin", "lockdown",
    "safesetid", "selinux", "smack", "tomoyo", "yama",
})  # fmt: skip
# Titles of checks: of the machine, whole; of a server, by how they go on behind `NAME: `.
_OF_MACHINE = frozenset({
    "kernel", "packet rules", "root's files", "approvals", "approvals by agents' accounts",
    "policy", "Squid", "accounts", "worker", "worker: python", "worker: TLS", "run slots",
    "approval forms", "the machine", "configuration",
    # What `apply` needs of the machine: machine/prerequisites/mechanisms.py.
    "systemd", "version of systemd", "seccomp", "Landlock", "packet rules (nftables)",
    "namespaces of units", "ID-mapped mounts, for `workspace`", "cgroup controllers",
    "projects",
})  # fmt: skip
_STARTS = (
    "approvals of calls of", "approvals by", "approval forms", "packet rules of others",
)  # fmt: skip
_OF_SERVER = (
    "policy", "program", "egress", "runs", "a session of", "members", "read sealed secrets",
    "read", "reach an address past Squid", "reach a host that is not listed",
    "reach the network from a run", "reach the worker", "reach", "write in", "run print(1)",
    "limits of runs",
)  # fmt: skip
_AGENTS = frozenset(profile.name for profile in AGENT_PROFILES)  # in the checks of a hub
_UNIT = re.compile(r"(mcpwrap[a-z-]*)(?:@([^/]*))?\.(service|socket|timer|path|slice)", re.ASCII)
_ERROR = re.compile(r"\bE(?:-[A-Z0-9]+)+\b")
_FRAME = re.compile(r'File "/usr/lib/mcpwrap/(mcpwrap/[a-z0-9_/]+\.py)", line ([0-9]{1,5})\b')
_EXCEPTION = re.compile(r"(?:\| )?([A-Za-z]+)(?::|$)")
_EXCEPTIONS = frozenset(
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException)
)
# systemd.exec(5), $SERVICE_RESULT, and org.freedesktop.systemd1(5).
_WORD = re.compile(r"[a-z][a-z-]{1,30}")
_RESULTS = frozenset({
    "success", "exit-code", "signal", "core-dump", "timeout", "watchdog", "oom-kill",
    "start-limit-hit", "resources", "protocol", "dependency", "condition", "exec-condition",
})  # fmt: skip
# Programs in `command` that are no person's own.
_PROGRAMS = frozenset({
    "npx", "uvx", "uv", "node", "python3", "docker", "podman", "deno", "bun", "bunx", "dotnet",
})  # fmt: skip


class JournalEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Entry of the journal, of a unit of mcpwrap."""

    unit: str
    message: str
    result: str = ""  # of the unit, in systemd's own entries
    at_s: float = 0.0  # since 1970


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """Words that may be in a report, beside those of this module."""

    label_by_server: Mapping[str, str]
    units: frozenset[str]  # names of unit files; of a template `mcpwrap@.service`
    errors: frozenset[str]  # names of errors in mcpwrap's code
    modules: frozenset[str]  # `mcpwrap/as_gate/main.py`

    def unit(self, name: str) -> str:
        """Return the name of a unit, its instance replaced."""
        found = _UNIT.fullmatch(name)
        if not found:
            return HIDDEN
        base, instance, kind = found.groups()
        template = f"{base}.{kind}" if instance is None else f"{base}@.{kind}"
        if template not in self.units:
            return HIDDEN
        return template if instance is None else f"{base}@{self._instance(instance)}.{kind}"

    def _instance(self, instance: str) -> str:
        """Return a server's label, with the number of its run slot; or the number of a Squid."""
        pool, _, number = instance.rpartition("-")
        for name in (instance, instance.rpartition(".")[0]):
            if name in self.label_by_server:
                return self.label_by_server[name]
        if pool in self.label_by_server and number.isdecimal():
            return f"{self.label_by_server[pool]}-{number}"
        return instance if re.fullmatch(r"[0-9]{1,4}", instance) else HIDDEN

    def title(self, what: str) -> str:
        """Return the title of a check, with the label of its server."""
        if what in _OF_MACHINE:
            return what
        if (unit := self.unit(what)) != HIDDEN:
            return unit
        server, _, rest = what.partition(": ")
        label = self.label_by_server.get(server, HIDDEN)
        if rest in _AGENTS:
            return f"{label}: {rest}"
        for start in _OF_SERVER if rest else ():
            if rest.startswith(start):
                return f"{label}: {start}"
        starts = [start for start in _STARTS if what.startswith(start)]
        return (starts or [self.label_by_server.get(what, "another check")])[0]

    def errors_in(self, text: str) -> list[str]:
        """Return the names of errors in a text, each once."""
        return list(dict.fromkeys(e for e in _ERROR.findall(text) if e in self.errors))

    def traces_in(self, text: str) -> str:
        """Return the place in mcpwrap's code that a line of a traceback names, or its exception."""
        if (frame := _FRAME.search(text)) and frame[1] in self.modules:
            return f"{frame[1]}:{frame[2]}"
        found = _EXCEPTION.match(text)
        return found[1] if found and found[1] in _EXCEPTIONS else ""


def labels(servers: Iterable[str], *, with_names: bool) -> dict[str, str]:
    """Return the label of each server: its name, or `server-1` and so on."""
    ordered = enumerate(sorted(servers), 1)
    return {name: name if with_names else f"server-{number}" for number, name in ordered}


def fact_lines(untrusted_by_fact: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each fact whose form is known."""
    for fact, untrusted in untrusted_by_fact.items():
        match fact:
            case "kernel":
                yield f"- kernel: {_kernel(untrusted)}"
            case "LSMs":
                known = (lsm if lsm in _LSMS else HIDDEN for lsm in untrusted.split(","))
                yield f"- LSMs: {', '.join(known) if untrusted else _UNKNOWN}"
            case _:
                is_of_form = _FORM_BY_FACT[fact].fullmatch(untrusted)
                yield f"- {fact}: {untrusted if is_of_form else _UNKNOWN}"


def _kernel(untrusted: str) -> str:
    parts = re.split(r"([.+-])", untrusted[:100])
    return "".join(
        p if p in {".", "+", "-"} or _KERNEL_PARTS.fullmatch(p) else HIDDEN for p in parts
    )


def check_lines(checks: Iterable[Check], words: Vocabulary) -> Iterator[str]:
    """Yield a line for each check: state, title, and the names of errors in its text."""
    for check in checks:
        names = " ".join(words.errors_in(check.found))
        yield f"- {check.state}: {words.title(check.what)}{f' [{names}]' if names else ''}"


def unit_lines(
    properties_by_unit: Mapping[str, Mapping[str, str]], words: Vocabulary
) -> Iterator[str]:
    """Yield a line for each unit: its states, its last result, and how often it was restarted."""
    for unit, values in sorted(properties_by_unit.items()):
        states = [_word(values.get(key, "")) for key in ("ActiveState", "SubState", "Result")]
        line = f"- {words.unit(unit)}: {' '.join(states)}"
        restarts = values.get("NRestarts", "")
        yield f"{line}, {restarts} restarts" if re.fullmatch("[1-9][0-9]{0,6}", restarts) else line


def _word(text: str) -> str:
    return text if _WORD.fullmatch(text) else "-"


def journal_lines(entries: Iterable[JournalEntry], words: Vocabulary) -> Iterator[str]:
    """Yield a line for each kind of entry of each unit: how many there are, and the last time."""
    times: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for entry in entries:
        times[words.unit(entry.unit), _kind(entry, words)].append(entry.at_s)
    for (unit, kind), found in sorted(times.items()):
        last = datetime.fromtimestamp(max(found), UTC)
        yield f"- {unit}: {len(found)} x {kind}, the last {last:%Y-%m-%d %H:%M} UTC"


def _kind(entry: JournalEntry, words: Vocabulary) -> str:
    if names := words.errors_in(entry.message):
        return " ".join(names)
    if entry.result in _RESULTS:
        return f"result {entry.result}"
    trace = words.traces_in(entry.message)
    return f"traceback, {trace}" if trace else "a line without a name"


def server_line(label: str, server: object, runs: object, secrets: int) -> str:
    """Return a line on a server: its kind, and its settings by name and number.

    `server` and `runs` are of the model of the configuration, whose field names are mcpwrap's own.
    """
    program = str(getattr(runs, "command", "")).rpartition("/")[2]
    by = f" by {program}" if program in _PROGRAMS else ""
    found = [*settings(runs), *settings(server)]
    found += [f"secrets ({secrets})"] if secrets else []
    return f"- {label}: {type(runs).__name__}{by}: {', '.join(found) or 'no settings'}"


def settings(model: object) -> Iterator[str]:
    """Yield the names of the fields that have another value than their default."""
    for field in fields(model) if is_dataclass(model) else ():
        value = getattr(model, field.name)
        if isinstance(value, Sized) and not isinstance(value, str):
            if value:
                yield f"{field.name} ({len(value)})"
        elif _has_default(field) and value != _default(field):
            inner = [f"{field.name}.{name}" for name in settings(value)]
            yield from inner or [field.name]


def _has_default(field: "Field[object]") -> bool:
    """Return whether the field is optional: a required one, such as a name, is no news."""
    return field.default is not MISSING or field.default_factory is not MISSING


def _default(field: "Field[object]") -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()
