"""Test of one server by real attempts, as its agent and as its account. Needs root."""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import assert_never

from mcpwrap.config.model import Destination, Hub, Python, RemoteServer, Server
from mcpwrap.core.doctor import Check, failed, good, unknown, warned
from mcpwrap.core.names import egress_address
from mcpwrap.errors import McpwrapError, with_name
from mcpwrap.linux import accounts
from mcpwrap.linux.executables.look import ExecutableScan
from mcpwrap.linux.systemd import systemctl
from mcpwrap.machine import observer
from mcpwrap.machine.doctor import hub_checks, live_probes, python_checks, squid_health
from mcpwrap.machine.doctor.live_probes import (
    TrialNotRunError,
    TrialResult,
    TrialStatus,
    WrapperView,
)
from mcpwrap.machine.program_check import changeable, missing
from mcpwrap.plan import paths

_NOWHERE = (
    "192.0.2.1",
    "443",
)  # RFC 5737: reserved, no host has it; the probe shows what refuses the connection
_UNLISTED = "unlisted.invalid:443"  # RFC 6761: the name never exists, so no host is connected to
_APPLY = "`sudo mcpwrap apply`"
_AGAIN = "try again; if it fails again, fix the cause named above"
_HIDDEN_HOMES = ("/home/", "/root/", "/run/user/")  # systemd.exec(5), ProtectHome=


class _Due(Enum):
    """Required outcome of a probe."""

    REFUSED = auto()
    GRANTED = auto()  # by Squid
    WRITTEN = auto()


@dataclass(frozen=True, slots=True)
class _Trial:
    """Probe from inside a wrapper, and its required outcome."""

    title: str
    what: tuple[str, ...]
    due: _Due = _Due.REFUSED
    path: str = ""  # that must exist, or its refusal proves nothing
    is_offline: bool = False  # in a namespace without network, where "no route" is the refusal
    proxy_unit: str = ""  # of the Squid instance through which it is tried


def guarded(what: str, checks: Iterable[Check]) -> Iterator[Check]:
    """Yield these checks; an exception ends them with one unknown check, and not the command."""
    try:
        yield from checks
    except McpwrapError as error:
        yield unknown(what, error.named_problem, error.fix)
    except OSError as error:
        yield unknown(what, str(error), _AGAIN)


def server_checks(server: Server, uid: int) -> Iterator[Check]:
    """Test one server, as its agent and as its account."""
    yield from _program(server)
    agent = _agent(server)
    if agent and isinstance(server.runs, Hub):
        yield from hub_checks.session(server, agent)
    elif agent:
        yield _session(server, agent)
        if isinstance(server.runs, Python):
            yield from guarded(f"{server.name}: runs", python_checks.runs(server, agent))
    else:
        yield warned(
            server.name,
            "no account of its `agents` exists",
            "correct `agents` in the configuration, or create the account with useradd(8)",
        )
    proxy = _proxy_unit(server) if server.egress else ""
    if server.egress and not proxy:
        yield failed(f"{server.name}: egress", "is not applied [E-DOCTOR-NOT-APPLIED]", _APPLY)
    found = list(_trials(server, uid, agent, proxy))
    try:
        with live_probes.open_wrapper_view(server.name) as view:
            for trial in found:
                yield _tried(server, view, trial)
    except TrialNotRunError as error:
        yield from (unknown(trial.title, error.named_problem, error.fix) for trial in found)
        return
    if not Path(paths.SEALED).exists():
        yield good(f"{server.name}: read sealed secrets", "this machine has no sealed secrets")


def _proxy_unit(server: Server) -> str:
    """Return the Squid unit of a server; "" if the last `apply` gave it none."""
    squid = observer.registry().by_name[server.name].squid
    return paths.proxy_unit(squid) if squid else ""


def _trials(server: Server, uid: int, agent: str, proxy: str) -> Iterator[_Trial]:
    """Yield the probes from inside the wrapper. `proxy` is its unit of Squid; "" if it has none."""
    path = _private_file(server, agent) if agent else ""
    if path:
        yield _Trial(f"{server.name}: read {path}", ("read", path), path=path)
    if Path(paths.SEALED).exists():
        title = f"{server.name}: read sealed secrets"
        yield _Trial(title, ("read", paths.SEALED), path=paths.SEALED)
    title = f"{server.name}: reach an address past Squid"
    yield _Trial(title, ("connect", *_NOWHERE), is_offline=not server.has_network())
    if proxy:
        address = egress_address(uid)
        # The start of the wrapper does this, but it may not have been started since the boot.
        with suppress(systemctl.ToolError):  # then the probes below fail, and are reported
            systemctl.run(systemctl.SYSTEMCTL, "start", "--", paths.address_unit(address))
        hosts = [h for h in server.egress if isinstance(h, Destination) and not h.with_subdomains]
        for host in hosts[:1]:
            place = f"{host.host}:{host.port}"
            title = f"{server.name}: reach {place}"
            yield _Trial(title, ("proxy", address, place), _Due.GRANTED, proxy_unit=proxy)
        title = f"{server.name}: reach a host that is not listed"
        yield _Trial(title, ("proxy", address, _UNLISTED), proxy_unit=proxy)
    for folder in server.workspace:
        if folder.is_writable:
            title = f"{server.name}: write in {folder.path}"
            yield _Trial(title, ("write", folder.path), _Due.WRITTEN)


def _program(server: Server) -> Iterator[Check]:
    """Check that the program of a server exists, and that only root can change it."""
    title = f"{server.name}: program"
    for line in missing(server):
        yield failed(title, f"{line} [E-DOCTOR-PROGRAM-MISSING]", "install it")
    if found := changeable(server, ExecutableScan()):
        text = f"{found}: that account decides what this server runs"
        if server.writable_command:
            yield warned(title, text, "install it where only root can write")
        else:
            fix = "`mcpwrap plan` shows what to do"
            yield failed(title, f"{text} [E-PROGRAM-WRITABLE]", fix)
    elif not isinstance(server.runs, RemoteServer):
        yield good(title, "only root can change what it runs")


def _agent(server: Server) -> str:
    """Return an account that may use the server; "" if no such account exists."""
    for agent in server.agents:
        named = accounts.members_of(agent[1:]) if agent.startswith("@") else [agent]
        for account in named:
            if accounts.uid_of(account) is not None:  # it may have been deleted since `apply`
                return account
    return ""


def _private_file(server: Server, agent: str) -> str:
    """Return a path in the agent's home outside the workspaces; "" if there is no such path."""
    home = Path(accounts.home_of(agent))
    given = [Path(folder.path) for folder in (*server.workspace, *server.projects)]
    for path in sorted(home.iterdir()) if home.is_dir() else []:
        is_given = any(path == g or g in path.parents or path in g.parents for g in given)
        if not is_given and _is_private(path):
            return str(path)
    return ""


def _is_private(path: Path) -> bool:
    """Return whether reading the path would be a breach: not every account may read it.

    In a home that ProtectHome= does not hide, the file modes decide.
    """
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return False
    is_readable = stat.S_ISREG(mode) or stat.S_ISDIR(mode)
    return is_readable and (str(path).startswith(_HIDDEN_HOMES) or not mode & stat.S_IROTH)


def _session(server: Server, agent: str) -> Check:
    tried = live_probes.session(agent, server.name)
    what = f"{server.name}: a session of {agent}"
    if tried.ended is TrialStatus.WORKED:
        return good(what, tried.line)
    if tried.ended is TrialStatus.UNKNOWN:
        return unknown(what, tried.line, _AGAIN)
    logs = f"`sudo mcpwrap logs {server.name}`"
    stub = f"`mcpwrap-connect {server.name}`, as {agent}, shows its standard error"
    # The stub's line has the name of a refusal at its end.
    return failed(what, with_name(tried.line, code="E-DOCTOR-SESSION"), f"{logs}; {stub}")


def _tried(server: Server, view: WrapperView, trial: _Trial) -> Check:
    unit = trial.proxy_unit
    if unit and (problem := squid_health.problems([unit]).get(unit)):  # without a wait
        return _without_squid(trial, f"{unit} {problem}", squid_health.fix(unit, problem))
    tried = live_probes.try_reach(view, *trial.what)
    if tried.ended is TrialStatus.UNKNOWN:
        return unknown(trial.title, tried.line, _AGAIN)
    if tried.ended is TrialStatus.NO_ANSWER:
        fix = f"try again: a Squid that hangs is restarted within 15 s; `journalctl -u {unit}`"
        return _without_squid(trial, f"{unit} did not answer ({tried.line})", fix)
    match trial.due:
        case _Due.REFUSED:
            return _refused(trial, tried)
        case _Due.GRANTED:
            return _granted(server, trial, tried)
        case _Due.WRITTEN:
            return _written(trial, tried)
        case _:
            assert_never(trial.due)


def _without_squid(trial: _Trial, text: str, fix: str) -> Check:
    """Report Squid as the cause: no rule of its allowlist was evaluated."""
    if trial.due is _Due.GRANTED:
        return failed(trial.title, f"{text} [E-DOCTOR-SQUID]", fix)
    return unknown(trial.title, text, fix)


def _written(trial: _Trial, tried: TrialResult) -> Check:
    if tried.ended is TrialStatus.WORKED:
        return good(trial.title, tried.line)
    if tried.ended is TrialStatus.IN_PLACE:
        text = "this file can be written in place, but not replaced by a new file"
        folder = Path(trial.what[-1]).parent
        fix = f'if the server replaces it, give the folder: `workspace = ["{folder}:rw"]`'
        return warned(trial.title, f"{text} ({tried.line})", fix)
    fix = "let the agent's account write there, on a file system that is not read-only"
    text = f"the server cannot write there ({tried.line}) [E-DOCTOR-WORKSPACE]"
    return failed(trial.title, text, f"{fix}; or give it `:ro`")


def _granted(server: Server, trial: _Trial, tried: TrialResult) -> Check:
    if tried.ended is TrialStatus.WORKED:
        return good(trial.title, tried.line)
    fix = f"`sudo mcpwrap egress {server.name}` shows which rule refused it"
    return failed(trial.title, f"{tried.line} [E-DOCTOR-EGRESS]", fix)


def _refused(trial: _Trial, tried: TrialResult) -> Check:
    if tried.ended is TrialStatus.WORKED:
        return failed(trial.title, "WORKED, and must be refused [E-DOCTOR-NOT-REFUSED]", _APPLY)
    if trial.path and not os.path.lexists(trial.path):
        return unknown(trial.title, f"{trial.path} was removed in the meantime", _AGAIN)
    is_refused = tried.ended is TrialStatus.REFUSED
    is_refused |= tried.ended is TrialStatus.NO_ROUTE and trial.is_offline
    if is_refused:
        return good(trial.title, f"refused ({tried.line})")
    return unknown(trial.title, f"neither refused nor granted ({tried.line})", _AGAIN)
