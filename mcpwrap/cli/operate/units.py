"""`mcpwrap stop`, `restart` and `logs`: systemctl(1) and journalctl(1) on a server's units."""

import subprocess
from typing import IO, cast

import click
import msgspec

from mcpwrap.cli.common.become_root import expect_root
from mcpwrap.cli.common.output import print_json_line
from mcpwrap.cli.common.server_argument import expect_server
from mcpwrap.errors import EXIT_OK
from mcpwrap.linux import tty
from mcpwrap.linux.systemd import systemctl
from mcpwrap.machine import observer
from mcpwrap.plan import paths

JOURNALCTL = "/usr/bin/journalctl"


@click.command("stop")
@click.argument("name")
def stop(name: str) -> int:
    """Stop server NAME: its sessions end, and new ones are refused. Needs root.

    \b
    Example:  sudo mcpwrap stop git
    It stays stopped until `mcpwrap restart`, `mcpwrap apply` or the next boot. To remove it for
    good, delete it from config.toml and run `mcpwrap apply`.
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
    """Restart server NAME with its current secrets; its sessions end. Needs root.

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
@click.option("-f", "--follow", is_flag=True, help="Print lines as they come, until Ctrl-C.")
@click.option("-n", "--lines", default=50, show_default=True, help="Number of last lines.")
@click.option("--json", "as_json", is_flag=True, help="Print the JSON of `journalctl -o json`.")
def logs(*, name: str, follow: bool, lines: int, as_json: bool) -> int:
    """Show the journal of server NAME. Needs root, or the group adm or systemd-journal.

    \b
    Example:  sudo mcpwrap logs git -f
    The standard error of a server goes to its agent, not to the journal.
    """
    _expect_known(name, "logs")
    argv = [JOURNALCTL, "--no-pager", f"--lines={lines}", *(["--follow"] if follow else [])]
    argv += ["--output=json"] if as_json else ["--output=short-iso"]
    units = [paths.service_unit(name), paths.socket_unit(name), *paths.helper_units(name)]
    units += [paths.listener_service(f"{name}.*"), paths.listener_socket(f"{name}.*")]
    for slot in (f"{name}-[0-9]", f"{name}-[0-9][0-9]"):  # not `-*`: NAME-x is another server
        units += [paths.job_service(slot), paths.job_socket(slot)]
    argv += [f"--unit={unit}" for unit in units]
    # journalctl(1) prints most control characters as "[N B blob data]", but not those that
    # change the text direction.
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as journal:
        try:
            for line in cast(IO[bytes], journal.stdout):
                _show(line.rstrip(b"\n"), as_json=as_json)
        except BaseException:
            journal.terminate()  # with --follow it would not end
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
    expect_server(name, observer.server_names(), f"mcpwrap {verb}")
