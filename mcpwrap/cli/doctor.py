"""`mcpwrap doctor [NAME]`: try for real what should work and what should not. As root."""

from collections.abc import Iterator
from pathlib import Path

import click

from mcpwrap.cli.output import print_json
from mcpwrap.cli.root import expect_root
from mcpwrap.config.model import Config, Destination, Local, Server
from mcpwrap.config.parse import parse
from mcpwrap.core.checkup import Check, failed, good, warned
from mcpwrap.core.names import egress_address
from mcpwrap.errors import EXIT_FAILED, EXIT_OK, UsageError
from mcpwrap.linux import accounts, approval_checkup, checkup, observe, systemd, trials
from mcpwrap.linux.executables.check import changeable, missing
from mcpwrap.linux.executables.look import Look
from mcpwrap.plan import paths

_REFUSED = 10  # what a trial ends with
_NOWHERE = ("192.0.2.1", "443")  # RFC 5737: nobody is there; what matters is who refuses
_UNLISTED = "unlisted.invalid:443"  # RFC 6761: no such name, so nothing is asked of anybody
_APPLY = "`sudo mcpwrap apply`"


@click.command("doctor")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print for machines.")
def command(*, name: str | None, as_json: bool) -> int:
    """Try every server, or NAME, as its agent and as its account. Needs root.

    \b
    It opens a session and lists the tools; asks Squid for the first host of the allowlist; and
    tries a host that is not listed, an address past Squid, and files of root's and the agent's, all
    of which must be refused.
    Example:  sudo mcpwrap doctor git --json
    Exit status: 0 all is well, 1 something is broken or open, 2 there is no server NAME.
    """
    expect_root("doctor")
    config = parse(observe.config_files())
    if name is not None and name not in config.servers:
        raise UsageError(f"no server {name!r}", where="mcpwrap doctor", fix="`mcpwrap status`")
    found: list[Check] = []
    for check in _checks(config, name):
        found.append(check)
        if not as_json:
            click.echo(f"{_mark(check)} {check.what}: {check.found}")
            if check.fix:
                click.echo(f"  fix: {check.fix}")
    if as_json:
        print_json(found)
    return EXIT_FAILED if any(check.state == "failed" for check in found) else EXIT_OK


def _mark(check: Check) -> str:
    colour = {"good": "green", "warning": "yellow", "failed": "red"}[check.state]
    return click.style(f"{check.state:8}", fg=colour)


def _checks(config: Config, name: str | None) -> Iterator[Check]:
    yield from checkup.machine(config)
    yield from approval_checkup.approvals(config)
    uid_by_name = {n: a.uid for n, a in observe.registry().by_name.items() if not a.is_retired}
    for server in config.servers.values():
        if name in {None, server.name}:
            if server.name in uid_by_name:
                yield from _server(server, uid_by_name[server.name])
            else:
                yield failed(server.name, "is not applied", _APPLY)


def _server(server: Server, uid: int) -> Iterator[Check]:
    yield from _program(server)
    agent = _agent(server)
    if agent:
        yield _session(server, agent)
        if path := _private_file(server, agent):
            yield _refused(server, "read", path, what=f"read {path}")
    else:
        yield warned(server.name, "no account is an agent of it", "see `agents`; `adduser`")
    yield _refused(server, "read", "/var/lib/mcpwrap/sealed", what="read sealed secrets")
    yield _refused(server, "connect", *_NOWHERE, what="reach an address past Squid")
    if server.egress:
        address = egress_address(uid)
        # By the wrapper's own start, if it has been started since the boot; it may not.
        systemd.run(systemd.SYSTEMCTL, "start", "--", paths.address_unit(address))
        hosts = [h for h in server.egress if isinstance(h, Destination) and not h.with_subdomains]
        for host in hosts[:1]:
            yield _allowed(server, "proxy", address, f"{host.host}:{host.port}")
        yield _refused(server, "proxy", address, _UNLISTED, what="reach a host that is not listed")


def _program(server: Server) -> Iterator[Check]:
    """Yield whether what a server runs is there, and whether root alone can change it."""
    title = f"{server.name}: program"
    for line in missing(server):
        yield failed(title, line, "install it")
    if found := changeable(server, Look()):
        text = f"{found}: such an account decides what this server runs"
        if server.writable_command:
            yield warned(title, text, "install it where root alone can write")
        else:
            yield failed(title, text, "`mcpwrap plan` says what to do")
    elif isinstance(server.runs, Local):
        yield good(title, "root alone can change what it runs")


def _agent(server: Server) -> str:
    """Return an account that may use the server; "" if there is none."""
    for agent in server.agents:
        if agent.startswith("@"):
            if members := accounts.members_of(agent[1:]):
                return members[0]
        elif accounts.uid_of(agent) is not None:  # it may have been deleted since `apply`
            return agent
    return ""


def _private_file(server: Server, agent: str) -> str:
    """Return something in the agent's home that the server was not given; "" if all was."""
    home = Path(accounts.home_of(agent))
    given = [Path(folder.path) for folder in server.workspace]
    for path in sorted(home.iterdir()) if home.is_dir() else []:
        if not any(path == g or g in path.parents or path in g.parents for g in given):
            return str(path)
    return ""


def _session(server: Server, agent: str) -> Check:
    tried = trials.session(agent, server.name)
    what = f"{server.name}: a session of {agent}"
    if tried.status == 0:
        return good(what, tried.line)
    logs = f"`sudo mcpwrap logs {server.name}`"
    all_of_it = f"`mcpwrap-connect {server.name}`, as {agent}, shows what it says itself"
    return failed(what, tried.line, f"{logs}; {all_of_it}")


def _allowed(server: Server, *what: str) -> Check:
    tried = trials.reach(server.name, *what)
    title = f"{server.name}: reach {what[-1]}"
    if tried.status == 0:
        return good(title, tried.line)
    return failed(title, tried.line, f"`sudo mcpwrap egress {server.name}` says which rule refused")


def _refused(server: Server, *trial: str, what: str) -> Check:
    tried = trials.reach(server.name, *trial)
    title = f"{server.name}: {what}"
    if tried.status == _REFUSED:
        return good(title, f"refused ({tried.line})")
    if tried.status == 0:
        return failed(title, "WORKED, and must not", _APPLY)
    return warned(title, f"nobody can say: {tried.line}", "try again")
