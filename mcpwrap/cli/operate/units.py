"""`mcpwrap stop`, `restart` and `logs`: systemctl(1) and journalctl(1) with the right units."""

import subprocess
from typing import IO, cast

import click
import msgspec

from mcpwrap.cli.common.become_root import expect_root
from mcpwrap.cli.common.output import print_json_line
from mcpwrap.errors import EXIT_OK, UsageError
from mcpwrap.linux import tty
from mcpwrap.linux.systemd import systemctl
from mcpwrap.machine import observer
from mcpwrap.plan import paths

JOURNALCTL = "/usr/bin/journalctl"


@click.command("stop")
@click.argument("name")
def stop(name: str) -> int:
    """Stop server NAME: its sessions end, and no more are admitted. Needs root.

    \b
    Example:  sudo mcpwrap stop git
    Until `mcpwrap restart`, `mcpwrap apply` or the next boot. To take it away for good, remove it
    from config.toml and run `mcpwrap apply`.
    """
    _expect(name, "stop")
    systemctl.run(
        systemctl.SYSTEMCTL, "stop", "--", paths.socket_unit(name), paths.service_unit(name)
    )
    tty.say(f"{name} is stopped; `sudo mcpwrap restart {name}` starts it again")
    return EXIT_OK


@click.command("restart")
@click.argument("name")
def restart(name: str) -> int:
    """Restart server NAME, with the secrets that are set now: its sessions end. Needs root.

    \b
    Example:  sudo mcpwrap restart git
    """
    _expect(name, "restart")
    systemctl.run(systemctl.SYSTEMCTL, "start", "--", paths.socket_unit(name))
    systemctl.run(systemctl.SYSTEMCTL, "restart", "--", paths.service_unit(name))
    tty.say(f"{name} is ready")
    return EXIT_OK


@click.command("logs")
@click.argument("name")
@click.option("-f", "--follow", is_flag=True, help="Go on as lines come.")
@click.option("-n", "--lines", default=50, show_default=True, help="How many of the last lines.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print for machines, as `journalctl -o json`."
)
def logs(*, name: str, follow: bool, lines: int, as_json: bool) -> int:
    """Show what the journal has of server NAME. Needs root or group adm or systemd-journal.

    \b
    Example:  sudo mcpwrap logs git -f
    What a server writes to its standard error goes to its agent, not here.
    """
    _expect_known(name, "logs")
    argv = [JOURNALCTL, "--no-pager", f"--lines={lines}", *(["--follow"] if follow else [])]
    argv += ["--output=json"] if as_json else ["--output=short-iso"]
    units = [paths.service_unit(name), paths.socket_unit(name), *paths.helper_units(name)]
    units += [paths.listener_service(f"{name}.*"), paths.listener_socket(f"{name}.*")]
    argv += [f"--unit={unit}" for unit in units]
    # journalctl(1) writes most of what a terminal obeys as "[N B blob data]", but no
    # characters that change the direction of others.
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as journal:
        try:
            for line in cast(IO[bytes], journal.stdout):
                _show(line.rstrip(b"\n"), as_json=as_json)
        except BaseException:
            journal.terminate()  # with --follow it would go on
            raise
    return journal.returncode


def _show(line: bytes, *, as_json: bool) -> None:
    if as_json:
        print_json_line(msgspec.json.decode(line))
    else:
        tty.say(line.decode(errors="backslashreplace"))


def _expect(name: str, verb: str) -> None:
    expect_root(verb)
    _expect_known(name, verb)


def _expect_known(name: str, verb: str) -> None:
    if name not in observer.server_names():
        raise UsageError(f"no server {name!r}", where=f"mcpwrap {verb}", fix="`mcpwrap status`")
