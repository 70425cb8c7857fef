"""`mcpwrap login`, `mcpwrap logout`: OAuth by a person, who carries URL and answer, no token."""

import re
import subprocess
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

import click

from mcpwrap.cli.common.output import ask
from mcpwrap.core.names import is_server_name
from mcpwrap.core.wire.login_pipe import (
    LOGIN,
    LOGOUT,
    AuthorizationPage,
    AuthorizationResponse,
    LoginDone,
    LoginStart,
)
from mcpwrap.errors import EXIT_OK, McpwrapError, UsageError
from mcpwrap.gate_client.login import GATE_SOCKET, LoginClient
from mcpwrap.linux import tty
from mcpwrap.linux.isolation.privileges import InvokingUser, give_up_root

_URL = re.compile(r"https://[!-~]{1,16000}")
_SUDO = "SUDO_UID", "SUDO_GID"  # sudo(8)
_DISPLAYS = ["WAYLAND_DISPLAY", "DISPLAY"]


@dataclass(frozen=True, slots=True)
class CallbackMode:
    """Way back of the answer: a browser on this machine, or a paste by hand."""

    port: int
    is_pasted: bool
    may_open: bool  # a browser


def _as_sudo(function: click.decorators.FC) -> click.decorators.FC:
    """Add what sudo says of who typed it. Nobody types these options."""
    for name in _SUDO:
        option = f"--{name.lower().replace('_', '-')}"
        function = click.option(option, envvar=name, default="", hidden=True)(function)
    return function


@click.command("login")
@click.argument("name")
@click.option("--no-browser", is_flag=True, help="Show the address, and open nothing.")
@click.option("--paste", is_flag=True, help="Take the answer by hand, from a browser elsewhere.")
@click.option(
    "--port", type=click.IntRange(1024, 65_535), help="Where to wait for the browser on 127.0.0.1."
)
@click.option("--display", envvar=_DISPLAYS, default="", hidden=True)
@_as_sudo
def login(  # noqa: PLR0913, PLR0917 - as click wants it
    name: str,
    no_browser: bool,  # noqa: FBT001
    paste: bool,  # noqa: FBT001
    port: int | None,
    display: str,
    sudo_uid: str,
    sudo_gid: str,
) -> int:
    """Log in to the remote server NAME, which has `oauth` in config.toml. For root and approvers.

    \b
    Example:  sudo mcpwrap login github
    A browser opens, or the address is shown. Without a browser on this machine:
              sudo mcpwrap login github --paste      # open the address elsewhere, paste the answer
    or forward the port, with `ssh -L 52199:127.0.0.1:52199`, and open the address on your side.
    The tokens never leave the server's own account.
    Exit status: 0 logged in, 1 failed, 2 wrong usage.
    """
    way = CallbackMode(port or 0, is_pasted=paste, may_open=bool(display) and not no_browser)
    with _connect(name, LOGIN) as door:
        who = give_up_root(sudo_uid, sudo_gid)
        door.await_start()
        done = _log_in(door, name, way, who)
    for line in _said(name, done):
        tty.say(line)
    return EXIT_OK


@click.command("logout")
@click.argument("name")
@_as_sudo
def logout(name: str, sudo_uid: str, sudo_gid: str) -> int:
    """Forget the login to the remote server NAME, and have it revoked. For root and approvers.

    \b
    Example:  sudo mcpwrap logout github
    """
    with _connect(name, LOGOUT) as door:
        give_up_root(sudo_uid, sudo_gid)
        door.await_start()
        done = door.receive(LoginDone)
    how = "revoked and forgotten" if done.revoked else "forgotten, but not revoked: none was asked"
    tty.say(f"{name}: the login is {how}")
    return EXIT_OK


def _connect(name: str, verb: str) -> LoginClient:
    if not is_server_name(name):
        raise UsageError(
            f"{name!r} cannot be a server", where=f"mcpwrap {verb}", fix="see `mcpwrap status`"
        )
    return LoginClient(name, verb, GATE_SOCKET)


def _log_in(door: LoginClient, name: str, way: CallbackMode, who: InvokingUser | None) -> LoginDone:
    if way.is_pasted:
        door.send(LoginStart(port=0, paste=True))
        visit = _sound(door.receive(AuthorizationPage), name)
        _show(name, visit)
        door.send(AuthorizationResponse(answer=_pasted(visit)))
        return door.receive(LoginDone)
    # PLC0415: aiohttp takes 0.2 s to load, and is not needed to run a server.
    from mcpwrap.cli.setup import oauth_callback  # noqa: PLC0415

    with oauth_callback.listening(way.port) as listener:
        door.send(LoginStart(port=listener.getsockname()[1]))
        visit = _sound(door.receive(AuthorizationPage), name)
        _show(name, visit)
        if way.may_open and (who is None or who.is_somebody):
            _open(visit.visit, who)
        query = oauth_callback.wait(listener, state_of(visit.visit), door.fileno())
    if query:
        door.send(AuthorizationResponse(answer=query))
    return door.receive(LoginDone)


def _sound(visit: AuthorizationPage, name: str) -> AuthorizationPage:
    """Return it if it can be shown and opened: a server may have had a say in it."""
    if _URL.fullmatch(visit.visit) and state_of(visit.visit):
        return visit
    raise McpwrapError(
        "the address to open is none of https", where=f"server {name}", fix="ask who runs it"
    )


def state_of(url_or_query: str) -> str:
    """Return the one `state` of an address or of its query; "" if there is none, or are two."""
    query = urlsplit(url_or_query).query or url_or_query
    found = parse_qs(query).get("state", [])
    return found[0] if len(found) == 1 else ""


def _show(name: str, visit: AuthorizationPage) -> None:
    host = urlsplit(visit.visit).netloc
    tty.say_lines([f"To let {name} be used, log in at {host}:", "", f"  {visit.visit}", ""])


def _pasted(visit: AuthorizationPage) -> str:
    """Ask until the answer to this login is pasted; return its query."""
    tty.say(f"Your browser then fails to open {visit.redirect}?…")
    tty.say(
        "That is as it should be: copy the whole address from its address bar, and paste it here."
    )
    while True:
        text = ask("address").strip()
        query = urlsplit(text).query or text
        if state_of(query) == state_of(visit.visit):
            return query
        tty.warn("that is not the answer to this login: paste the whole address")


def _open(url: str, who: InvokingUser | None) -> None:
    """Open a browser, as the person whose terminal this is; the address is shown in any case."""
    home = [f"HOME={who.home}", f"USER={who.account}", f"LOGNAME={who.account}"] if who else []
    quiet = subprocess.DEVNULL
    subprocess.Popen(
        ["/usr/bin/env", *home, "/usr/bin/xdg-open", url],
        stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True,
    )  # fmt: skip


def _said(name: str, done: LoginDone) -> list[str]:
    lines = [f"{name}: logged in" + (f", for {' '.join(done.scopes)}" if done.scopes else "")]
    if not done.renewable:
        end = "" if done.expires_in is None else f" in {done.expires_in} s"
        lines.append(f"it cannot be renewed: log in again when it ends{end}")
    return lines
