"""Entry point of `mcpwrap-webhook.service`."""

import asyncio
import os
from pathlib import Path

import msgspec

from mcpwrap.as_webhook.delivery import WebhookSettings, serve
from mcpwrap.core.notify.webhook_post import MIN_KEY_CHARS
from mcpwrap.core.wire import webhook_file
from mcpwrap.errors import EXIT_USAGE, UsageError
from mcpwrap.linux.isolation import prctl
from mcpwrap.linux.systemd.sd_notify import Notifier
from mcpwrap.linux.systemd.stderr_log import log_line

CONFIGURATION = Path("/var/lib/mcpwrap/webhook.json")
_ALIVE_EVERY_S = 10.0  # a third of the unit's WatchdogSec=


def main() -> int:
    """Post until systemd stops the unit."""
    prctl.forbid_dumps()  # it holds the key
    try:
        folder = Path(os.environ["CREDENTIALS_DIRECTORY"])  # noqa: TID251 - a main()
        settings = WebhookSettings(url=_url(CONFIGURATION), key=_key(folder / "key"))
    except UsageError as error:
        log_line(f"mcpwrap-webhook: {error}")
        return EXIT_USAGE
    asyncio.run(_run(settings))
    return 0


async def _run(settings: WebhookSettings) -> None:
    notifier = Notifier()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(serve(settings))
        notifier.ready(f"posting pending approvals to {settings.url}")
        while True:
            await asyncio.sleep(_ALIVE_EVERY_S)
            notifier.alive()


def _url(path: Path) -> str:
    try:
        return webhook_file.decode(path.read_bytes()).url
    except (OSError, msgspec.MsgspecError) as error:
        raise UsageError(
            f"cannot be read: {error}",
            where=str(path),
            fix="run `sudo mcpwrap apply`, which writes it",
            code="E-WEBHOOK-CONFIG",
        ) from error


def _key(path: Path) -> bytes:
    """Return the text of the key without surrounding white space, as receivers store it."""
    key = path.read_bytes().strip()
    if len(key) < MIN_KEY_CHARS:
        raise UsageError(
            f"{len(key)} characters are too few for a key",
            where="/etc/mcpwrap/webhook.key",
            fix="remove the file and run `sudo mcpwrap apply`, which makes a new one",
            code="E-WEBHOOK-KEY",
        )
    return key
