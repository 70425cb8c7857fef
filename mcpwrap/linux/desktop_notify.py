"""Desktop notifications for the user who runs this process (notify-send(1))."""

import subprocess
from pathlib import Path

from mcpwrap.core.notify.desktop import DesktopNotification
from mcpwrap.errors import McpwrapError
from mcpwrap.linux.os_release import distribution

NOTIFY_SEND = "/usr/bin/notify-send"
_TIMEOUT_S = 10.0


def expect(program: str) -> None:
    """Refuse to go on without the program that shows notifications.

    Raises:
        McpwrapError: it is not installed.
    """
    if not Path(program).exists():
        raise McpwrapError(
            "is not installed",
            where=program,
            fix=distribution().install("notify-send"),
            code="E-TOOL-NOTIFY-SEND",
        )


def show(shown: DesktopNotification, program: str) -> None:
    """Show a notification by this program.

    Raises:
        McpwrapError: the program failed, or there is no desktop.
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
    return McpwrapError(
        f"cannot show the notification: {why}",
        where=program,
        fix="run the command in a desktop session",
        code="E-TOOL-NO-DESKTOP",
    )
