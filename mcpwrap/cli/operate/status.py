"""`mcpwrap status [NAME]`: each server's account, unit, sessions and memory. Reads only."""

import os

import click
import msgspec
from msgspec.structs import replace

from mcpwrap.cli.common.output import print_json, print_table
from mcpwrap.cli.common.server_argument import expect_server
from mcpwrap.cli.operate import hub_status, run_status
from mcpwrap.cli.operate.hub_status import HubMemberStatus
from mcpwrap.cli.operate.run_status import RunsStatus
from mcpwrap.core.names import account_of
from mcpwrap.core.pins import pin_question
from mcpwrap.core.wire.listener_file import url
from mcpwrap.core.wire.unit_status import sessions_in
from mcpwrap.errors import EXIT_FAILED, EXIT_OK, McpwrapError
from mcpwrap.gate_client import approvals
from mcpwrap.gate_client.approvals import ApprovalConnection
from mcpwrap.linux import accounts, tty
from mcpwrap.linux.systemd import systemctl
from mcpwrap.machine import hub_members, nft_table, observer, planning, worker
from mcpwrap.machine.doctor import squid_health
from mcpwrap.machine.policy_files import policy_files
from mcpwrap.plan import paths
from mcpwrap.plan.registry import Allocation

_NO_GATE = "the gate does not listen: `sudo systemctl start mcpwrap-gate.socket`"
_CLOSED = "closed: `sudo mcpwrap apply`"
_UNUSABLE = {"no-egress", "failed", "stopped", "missing", *run_status.UNUSABLE}
_MIB = 1024 * 1024
_GATE_TIMEOUT_S = 2.0  # the rest is of use without its list


class HttpStatus(msgspec.Struct, frozen=True, kw_only=True):
    """HTTP listener of one agent for a server, with its URL."""

    agent: str  # the account, or its UID if the account was deleted
    uid: int
    url: str
    is_open: bool
    url_name: str = ""  # of a further URL, whose sessions have a project that root has named


class ServerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Output of `--json` for each server. A number is null if it is not counted, or not visible."""

    name: str
    account: str
    uid: int
    # ready: starts on first use · running · starting · no-egress: its Squid does not serve it ·
    # no-worker, draining: the worker refuses its runs · failed · stopped
    state: str
    status: str  # of the wrapper; or systemd's result; or the state of its Squid or the worker
    sessions: int
    memory_bytes: int | None
    refused: (
        int | None
    )  # packets refused by the packet rules since these were loaded; null: not root
    http: tuple[HttpStatus, ...] = ()  # one for each agent with a listener
    runs: RunsStatus | None = None  # of a Python server
    held_back: str = ""  # definitions that wait for a person; "" also if they are not visible
    members: tuple[HubMemberStatus, ...] = ()  # of a hub


@click.command("status")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(*, name: str | None, as_json: bool) -> int:
    """Show the state of every server of this machine, or of NAME.

    \b
    Example:  mcpwrap status git --json
    REFUSED counts the packets that the packet rules refused since they were loaded; only root sees
    it. For agents that use HTTP a second table has the URL of each agent; for Python servers
    another one has their run slots, the runs in them, and the requests that wait. For hubs another
    one has their members, with the number of tools that each listed last; only root sees it. A line
    below them names each server of which definitions are held back, to approvers and its agents.
    Exit status: 0 all can be used, 1 one of them cannot, 2 there is no server NAME.
    """
    by_name = observer.registry().by_name
    known = {name: by_name[name] for name in observer.server_names()}
    if name is not None:
        expect_server(name, known, "mcpwrap status")
    rows = _with_members(known, list(known) if name is None else [name])
    is_listening = _gate_listens()
    held_back = _held_back() if is_listening else {}
    if as_json:
        print_json([replace(row, held_back=held_back.get(row.name, "")) for row in rows])
    elif rows:
        _print_tables(rows)
    else:
        tty.say("no servers: add one to /etc/mcpwrap/config.toml, then `sudo mcpwrap apply`")
    stopped = observer.panic()
    if stopped.everything or stopped.names:
        of = "every server" if stopped.everything else ", ".join(stopped.names)
        tty.warn(f"emergency stop: sessions of {of} are refused until `sudo mcpwrap resume`")
    flaws = _flaws()
    tty.warn_lines(flaws)
    shown = {row.name for row in rows} | {one.name for row in rows for one in row.members}
    tty.warn_lines(_held_line(name, held_back[name]) for name in sorted(shown & held_back.keys()))
    if not is_listening:
        tty.warn(_NO_GATE)
    is_good = is_listening and not flaws and all(row.state not in _UNUSABLE for row in rows)
    is_good = is_good and all(each.is_open for row in rows for each in row.http)
    is_good = is_good and not any(row.runs and row.runs.closed_slots for row in rows)
    is_good = is_good and all(m.state not in _UNUSABLE for row in rows for m in row.members)
    return EXIT_OK if is_good else EXIT_FAILED


def _with_members(known: dict[str, Allocation], names: list[str]) -> list[ServerStatus]:
    """Return the status of these servers; a hub has that of its members, which are servers too."""
    members = {name: hub_members.members_of(name) for name in names}
    needed = {*names, *(member.name for found in members.values() for member in found)}
    rows = {row.name: row for row in statuses({n: a for n, a in known.items() if n in needed})}
    states = {row.name: (row.state, row.status) for row in rows.values()}
    return [
        replace(rows[name], members=hub_status.member_statuses(members[name], states))
        for name in names
    ]


def _held_back() -> dict[str, str]:
    """Return what is held back of each server, as far as this account may see it."""
    try:
        with ApprovalConnection(approvals.PATH, _GATE_TIMEOUT_S) as connection:
            pending = connection.listing().pending
    except McpwrapError:  # another check reports a gate that does not answer
        return {}
    return {one.server: one.target for one in pending if one.method == pin_question.METHOD}


def _held_line(name: str, what: str) -> str:
    return f"definitions of {name!r} are held back ({what}): `mcpwrap tools diff {name}`"


def _flaws() -> list[str]:
    """Return a line for each reason why the gate refuses sessions of servers that are ready."""
    try:
        observer.expect_roots_own()
        policy_files()
    except McpwrapError as error:
        if not isinstance(error.__cause__, PermissionError):  # only root and the gate may read it
            return error.lines()
    except OSError:  # `doctor` reports it to root
        pass
    return planning.vanished()


def _print_tables(rows: list[ServerStatus]) -> None:
    print_table(
        ["NAME", "UID", "STATE", "SESSIONS", "MEMORY", "REFUSED", "STATUS"],
        [
            [r.name, str(r.uid), r.state, str(r.sessions), _memory(r), _refused(r), r.status]
            for r in rows
        ],
    )
    _print_urls(rows)
    run_status.print_runs({row.name: row.runs for row in rows if row.runs})
    hub_status.print_members({row.name: row.members for row in rows if row.members})


def _print_urls(rows: list[ServerStatus]) -> None:
    listeners = [(row.name, each) for row in rows for each in row.http]
    if listeners:
        tty.say()
        print_table(
            ["NAME", "AGENT", "URL", "LISTENER"],
            [
                [f"{name} {h.url_name}".rstrip(), h.agent, h.url, "open" if h.is_open else _CLOSED]
                for name, h in listeners
            ],
        )


def _gate_listens() -> bool:
    socket = "mcpwrap-gate.socket"
    return systemctl.properties([socket], ["ActiveState"])[socket]["ActiveState"] == "active"


def statuses(known: dict[str, Allocation]) -> list[ServerStatus]:
    """Return the status of these servers, from what systemd shows to every account."""
    names = ["ActiveState", "SubState", "StatusText", "Result", "MemoryCurrent"]
    units = [unit for n in known for unit in (paths.socket_unit(n), paths.service_unit(n))]
    shown = systemctl.properties(units, names)
    refused = nft_table.refused_by_uid() if os.geteuid() == 0 else None
    http, without_squid, by_worker = _http(), _without_squid(known), worker.observe()
    runs = run_status.runs_by_server(known, by_worker)
    found = [
        _status(
            n,
            a.uid,
            shown[paths.socket_unit(n)],
            shown[paths.service_unit(n)],
            None if refused is None else refused.get(a.uid, 0),
        )
        for n, a in known.items()
    ]
    found = [
        replace(each, http=http.get(each.name, ()), runs=runs.get(each.name)) for each in found
    ]
    refused_runs = run_status.state_by_worker(by_worker)
    return [_with_helpers(each, without_squid.get(each.name, ""), refused_runs) for each in found]


def _with_helpers(
    row: ServerStatus, without_squid: str, refused_runs: tuple[str, str] | None
) -> ServerStatus:
    """Return the status of a server, also of what it needs: its worker, its Squid."""
    if row.state not in {"ready", "running"}:
        return row
    if refused_runs and row.runs and not row.runs.worker:
        return replace(row, state=refused_runs[0], status=refused_runs[1])
    if without_squid:
        return replace(row, state="no-egress", status=without_squid)
    return row


def _without_squid(known: dict[str, Allocation]) -> dict[str, str]:
    """Return the problem of the Squid instance, for each server whose Squid has one."""
    units = {name: paths.proxy_unit(a.squid) for name, a in known.items() if a.squid}
    problems = squid_health.problems(units.values())
    return {
        name: f"{unit} {problems[unit]}: {squid_health.fix(unit, problems[unit])}"
        for name, unit in units.items()
        if unit in problems
    }


def _http() -> dict[str, tuple[HttpStatus, ...]]:
    """Return the HTTP listeners of each server."""
    listeners = observer.listeners()
    sockets = {each: paths.listener_socket(each.instance()) for each in listeners}
    shown = systemctl.properties(sockets.values(), ["ActiveState"])
    found: dict[str, tuple[HttpStatus, ...]] = {}
    for each, socket in sockets.items():
        status = HttpStatus(
            agent=accounts.name_of(each.uid) or str(each.uid),
            uid=each.uid,
            url=url(each.address),
            is_open=shown[socket]["ActiveState"] == "active",
            url_name=each.url_name,
        )
        found[each.server] = (*found.get(each.server, ()), status)
    return found


def _status(
    name: str, uid: int, sock: dict[str, str], service: dict[str, str], refused: int | None
) -> ServerStatus:
    state, text = _state(name, sock, service)
    memory = service["MemoryCurrent"]
    return ServerStatus(
        name=name,
        account=account_of(name),
        uid=uid,
        state=state,
        status=text,
        sessions=sessions_in(text) if state == "running" else 0,
        memory_bytes=None if memory in systemctl.NOT_COUNTED else int(memory),
        refused=refused,
    )


def _state(name: str, sock: dict[str, str], service: dict[str, str]) -> tuple[str, str]:
    match service["ActiveState"]:
        case "active":
            return "running", service["StatusText"]
        case "failed":
            why = service["StatusText"] or service["Result"]
            return "failed", f"{why}; `sudo mcpwrap logs {name}` shows more"
        case "inactive":
            pass
        case between:
            return "starting", between
    if sock["ActiveState"] != "active":
        return "stopped", f"its socket does not listen: {_opening(name)}"
    return "ready", "starts on first use"


def _opening(name: str) -> str:
    """Return the command that opens the socket of a server. `panic` closes it until `resume`."""
    stopped = observer.panic()
    if stopped.stops(name):
        return f"`sudo mcpwrap resume{'' if stopped.everything else f' {name}'}`"
    return f"`sudo mcpwrap restart {name}`, or for all `sudo mcpwrap apply`"


def _memory(row: ServerStatus) -> str:
    return "-" if row.memory_bytes is None else f"{row.memory_bytes / _MIB:.1f} MiB"


def _refused(row: ServerStatus) -> str:
    return "-" if row.refused is None else str(row.refused)
