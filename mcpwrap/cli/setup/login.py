"""`mcpwrap login` and `logout`: OAuth by a person, who sees URL and answer, but no token."""

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
    """Way in which the answer arrives: at a port of this machine, or pasted by hand."""

    port: int
    is_pasted: bool
    may_open: bool  # a browser


def _as_sudo(function: click.decorators.FC) -> click.decorators.FC:
    """Add hidden options that take the caller's UID and GID from sudo's variables."""
    for name in _SUDO:
        option = f"--{name.lower().replace('_', '-')}"
        function = click.option(option, envvar=name, default="", hidden=True)(function)
    return function


@click.command("login")
@click.argument("name")
@click.option("--no-browser", is_flag=True, help="Show the address, and open no browser.")
@click.option("--paste", is_flag=True, help="Paste the answer, from a browser on any machine.")
@click.option(
    "--port",
    type=click.IntRange(1024, 65_535),
    help="Port on 127.0.0.1 to which the browser returns.",
)
@click.option("--display", envvar=_DISPLAYS, default="", hidden=True)
@_as_sudo
def login(  # noqa: PLR0913, PLR0917 - one parameter for each option
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
    Shows the address, and opens it in a browser. Without a browser on this machine:
              sudo mcpwrap login github --paste      # open the address elsewhere, paste the answer
    or forward the port with `ssh -L 52199:127.0.0.1:52199`, and open the address on your side.
    The tokens never leave the server's own account.
    Exit status: 0 logged in, 1 failed, 2 wrong usage.
    """
    mode = CallbackMode(port or 0, is_pasted=paste, may_open=bool(display) and not no_browser)
    with _connect(name, LOGIN) as client:
        who = give_up_root(sudo_uid, sudo_gid)
        client.await_start()
        done = _log_in(client, name, mode, who)
    for line in _result_lines(name, done):
        tty.say(line)
    return EXIT_OK


@click.command("logout")
@click.argument("name")
@_as_sudo
def logout(name: str, sudo_uid: str, sudo_gid: str) -> int:
    """Delete the login to the remote server NAME, and revoke it. For root and approvers.

    \b
    Example:  sudo mcpwrap logout github
    Exit status: 0 deleted, also if it could not be revoked; 1 failed, 2 wrong usage.
    """
    with _connect(name, LOGOUT) as client:
        give_up_root(sudo_uid, sudo_gid)
        client.await_start()
        done = client.receive(LoginDone)
    unrevoked = "deleted, but the authorization server did not revoke it"
    tty.say(f"{name}: the login is {'revoked and deleted' if done.revoked else unrevoked}")
    return EXIT_OK


def _connect(name: str, verb: str) -> LoginClient:
    if not is_server_name(name):
        raise UsageError(
            f"{name!r} is not a valid server name",
            where=f"mcpwrap {verb}",
            fix="`mcpwrap status` lists the servers",
            code="E-USAGE-SERVER-NAME",
        )
    return LoginClient(name, verb, GATE_SOCKET)


def _log_in(
    client: LoginClient, name: str, mode: CallbackMode, who: InvokingUser | None
) -> LoginDone:
    if mode.is_pasted:
        client.send(LoginStart(port=0, paste=True))
        visit = _checked(client.receive(AuthorizationPage), name)
        _show(name, visit)
        client.send(AuthorizationResponse(answer=_pasted(visit)))
        return client.receive(LoginDone)
    # PLC0415: aiohttp takes 0.2 s to load, and is not needed to run a server.
    from mcpwrap.cli.setup import oauth_callback  # noqa: PLC0415

    with oauth_callback.listening(mode.port) as listener:
        client.send(LoginStart(port=listener.getsockname()[1]))
        visit = _checked(client.receive(AuthorizationPage), name)
        _show(name, visit)
        if mode.may_open and (who is None or who.is_somebody):
            _open(visit.visit, who)
        query = oauth_callback.wait(listener, state_of(visit.visit), client.fileno())
    if query:
        client.send(AuthorizationResponse(answer=query))
    return client.receive(LoginDone)


def _checked(visit: AuthorizationPage, name: str) -> AuthorizationPage:
    """Return the page if its URL can be shown and opened: the remote server may influence it.

    Raises:
        McpwrapError: it is not a printable https URL with one `state`.
    """
    if _URL.fullmatch(visit.visit) and state_of(visit.visit):
        return visit
    raise McpwrapError(
        "the login address is not an https URL with one `state`",
        where=f"server {name}",
        fix="report this to the operator of the remote server",
        code="E-LOGIN-URL",
    )


def state_of(url_or_query: str) -> str:
    """Return the `state` of an address or of its query; "" unless there is exactly one."""
    query = urlsplit(url_or_query).query or url_or_query
    found = parse_qs(query).get("state", [])
    return found[0] if len(found) == 1 else ""


def _show(name: str, visit: AuthorizationPage) -> None:
    host = urlsplit(visit.visit).netloc
    tty.say_lines([f"To use {name}, log in at {host}:", "", f"  {visit.visit}", ""])


def _pasted(visit: AuthorizationPage) -> str:
    """Prompt until the answer to this login is pasted; return its query."""
    tty.say(f"After the login your browser fails to open {visit.redirect}?…")
    tty.say("That is expected: copy the whole address from its address bar, and paste it here.")
    while True:
        text = ask("address").strip()
        query = urlsplit(text).query or text
        if state_of(query) == state_of(visit.visit):
            return query
        tty.warn("this is not the answer to this login: paste the whole address")


def _open(url: str, who: InvokingUser | None) -> None:
    """Open a browser under the account that called sudo. The address was shown already."""
    home = [f"HOME={who.home}", f"USER={who.account}", f"LOGNAME={who.account}"] if who else []
    quiet = subprocess.DEVNULL
    subprocess.Popen(
        ["/usr/bin/env", *home, "/usr/bin/xdg-open", url],
        stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True,
    )  # fmt: skip


def _result_lines(name: str, done: LoginDone) -> list[str]:
    lines = [f"{name}: logged in" + (f", for {' '.join(done.scopes)}" if done.scopes else "")]
    if not done.renewable:
        end = "" if done.expires_in is None else f" in {done.expires_in} s"
        lines.append(f"the login cannot be renewed: log in again when it expires{end}")
    return lines
