"""Program of `mcpwrap-watch.service`: restores our packet rules when they were changed.

It runs as root all the time. Many tools begin with `nft flush ruleset`. Put back within
milliseconds, the rules judge the packets of connections that were opened meanwhile too. If they
cannot be put back, everything is stopped.
"""

import os
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mcpwrap.linux.isolation import prctl
from mcpwrap.linux.systemd.sd_notify import Notifier
from mcpwrap.linux.systemd.stderr_log import log_line
from mcpwrap.linux.systemd.systemctl import SYSTEMCTL, ToolError, run
from mcpwrap.machine import nft_table
from mcpwrap.machine.nft_monitor import changes
from mcpwrap.machine.nft_table import NFT
from mcpwrap.plan import paths
from mcpwrap.plan.egress import nft_elements

RULES = "/usr/lib/mcpwrap/nftables/mcpwrap.nft"
_LOOK_EVERY_S = 10.0  # also where no change was seen
_ALIVE_EVERY_S = 0.5  # a sixth of the unit's WatchdogSec=
_PATIENCE_S = 10.0  # with nft(8), several times for a look; each is slow on a busy host
_SETTLE_S = 0.5  # whoever changes elements on our behalf writes the file first, then loads it
_FIXED = ("private4", "private6")  # sets of which the rules' own file says what is in them
_RESOLVERS = ("resolvers4", "resolvers6")
# The first is what the others require: nothing starts again before the rules can be loaded.
_ALL = (
    "mcpwrap-nft.service",
    # Without rules anybody could be heard as the agent, and anybody could answer the agent.
    "mcpwrap-http@*.socket",
    "mcpwrap-http@*.service",
    "mcpwrap@*.service",
    "mcpwrap-squid-*@*.service",
    "mcpwrap-front.service",
)


def main() -> int:
    """Watch until systemd stops us."""
    os.umask(0o022)
    prctl.forbid_dumps()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    notifier = Notifier(_ALIVE_EVERY_S)
    good = ""  # how the rules look when they are ours; unknown, so they are loaded first
    look_at_s = 0.0
    for has_changed in changes(_ALIVE_EVERY_S):
        if has_changed or time.monotonic() >= look_at_s:
            with _alive_meanwhile(notifier):
                if not good or not _are_ours(good):
                    good = _put_back(was_known=bool(good))
            text = "the packet rules are in place" if good else "NO PACKET RULES: all are stopped"
            notifier.ready(text)
            look_at_s = time.monotonic() + _LOOK_EVERY_S
        notifier.alive()
    return 0


@contextmanager
def _alive_meanwhile(notifier: Notifier) -> Iterator[None]:
    """Say that we are alive while tools run, for as long as patience with them lasts."""
    is_done = threading.Event()

    def say_so() -> None:
        give_up_at_s = time.monotonic() + _PATIENCE_S
        while not is_done.wait(_ALIVE_EVERY_S) and time.monotonic() < give_up_at_s:
            notifier.alive()

    thread = threading.Thread(target=say_so)
    thread.start()
    try:
        yield
    finally:
        is_done.set()
        thread.join()


def _are_ours(good: str) -> bool:
    if _look() != good:
        return False
    if _have_our_elements():
        return True
    time.sleep(_SETTLE_S)
    return _look() == good and _have_our_elements()


def _have_our_elements() -> bool:
    wanted, asked = _text(paths.ELEMENTS), _text(paths.RESOLVERS)
    if wanted is not None and _in_sets(wanted) != _in_sets(nft_elements.text(nft_table.elements())):
        return False
    return asked is None or _in_braces(asked) == _in_braces(_sets(_RESOLVERS))


def _text(file: str) -> str | None:
    try:
        return Path(file).read_text()
    except FileNotFoundError:
        return None


def _look() -> str:
    """Return the rules, and what is in sets that never change; other than ever if any is gone."""
    return nft_table.text() + _sets(_FIXED)


def _sets(names: tuple[str, ...]) -> str:
    try:
        return "".join(run(NFT, "-n", "list", "set", "inet", "mcpwrap", name) for name in names)
    except ToolError:
        return ""


def _in_sets(text: str) -> set[tuple[str, str]]:
    """Return set and element of each that the file adds, in whatever order it does."""
    found = re.findall(r"^add element inet mcpwrap (\S+) \{ ([^{}]*) \}", text, re.MULTILINE)
    return {(name, element) for name, elements in found for element in elements.split(", ")}


def _in_braces(text: str) -> set[str]:
    """Return the elements, as nft(8) takes and shows them; braces around sets end a line."""
    found = re.findall(r"\{ ([^{}]*) \}", text)
    return {element for elements in found for element in re.split(r"[\s,]+", elements)}


def _put_back(*, was_known: bool) -> str:
    """Load the rules and return how they look; on failure stop all that they bound, return ""."""
    try:
        run(NFT, "-f", RULES)
    except ToolError as error:
        log_line(
            f"the packet rules are gone and cannot be loaded: {error.problem}; stopping everything"
        )
        _stop_everything()
        return ""
    if was_known:
        log_line("somebody changed the packet rules: they are put back")
    return _look()


def _stop_everything() -> None:
    """Irreversibly: an agent that tries again meanwhile would take the stop back.

    Not waited for: that may take longer than the watchdog does, and it is done without us.
    """
    try:
        run(SYSTEMCTL, "stop", "--no-block", "--job-mode=replace-irreversibly", "--", *_ALL)
    except ToolError as error:
        log_line(f"not everything is stopped, and it is tried again: {error.problem}")


if __name__ == "__main__":
    sys.exit(main())
