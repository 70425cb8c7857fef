"""Desktop notifications for the user who runs this process (notify-send(1))."""

import subprocess
from pathlib import Path

from mcpwrap.core.notify.desktop import DesktopNotification
from mcpwrap.errors import McpwrapError

NOTIFY_SEND = "/usr/bin/notify-send"
_TIMEOUT_S = 10.0


def expect(program: str) -> None:
    """Say whether there is something that shows it.

    Raises:
        McpwrapError: there is not.
    """
    if not Path(program).exists():
        raise McpwrapError("is not there", where=program, fix="`sudo apt install libnotify-bin`")


def show(shown: DesktopNotification, program: str) -> None:
    """Show it, by this program.

    Raises:
        McpwrapError: it failed, or there is no desktop.
    """
    argv = [program, "--app-name=mcpwrap", "--", shown.summary, shown.body]
    try:
        subprocess.run(argv, check=True, timeout=_TIMEOUT_S, stdin=subprocess.DEVNULL)
    except subprocess.CalledProcessError as error:
        raise _failed(program, f"status {error.returncode}") from error
    except subprocess.TimeoutExpired as error:
        raise _failed(program, f"no answer within {_TIMEOUT_S:g} s") from error
    except OSError as error:
        raise _failed(program, error.strerror or str(error)) from error


def _failed(program: str, why: str) -> McpwrapError:
    return McpwrapError(f"cannot be shown: {why}", where=program, fix="run it where a desktop runs")
