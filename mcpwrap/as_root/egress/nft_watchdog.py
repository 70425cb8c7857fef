"""Program of `mcpwrap-watch.service`: restores the packet rules when they were changed.

It runs as root all the time. Many tools begin with `nft flush ruleset`. The rules are restored
within milliseconds, and then also apply to connections that were opened meanwhile. If they cannot
be restored, everything is stopped.
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
_CHECK_EVERY_S = 10.0  # also without a reported change
_ALIVE_EVERY_S = 0.5  # a sixth of the unit's WatchdogSec=
_TIMEOUT_S = 10.0  # of all nft(8) runs of one check; each is slow on a busy host
_SETTLE_S = 0.5  # `apply` and mcpwrap-resolvers write the file of elements, and load it
_FIXED = ("private4", "private6")  # sets whose elements are in the file of the rules
_RESOLVERS = ("resolvers4", "resolvers6")
# The others require the first: nothing starts again before the rules can be loaded.
_ALL = (
    "mcpwrap-nft.service",
    # Without rules any account could connect as the agent, or listen in place of a listener.
    "mcpwrap-http@*.socket",
    "mcpwrap-http@*.service",
    "mcpwrap@*.service",
    "mcpwrap-next.service",
    "mcpwrap-squid-*@*.service",
    "mcpwrap-front.service",
)


def main() -> int:
    """Watch the rules until systemd stops this program."""
    os.umask(0o022)
    prctl.forbid_dumps()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    notifier = Notifier(_ALIVE_EVERY_S)
    good = ""  # the rules as nft(8) lists them when correct; not known yet, so load them first
    check_at_s = 0.0
    for has_changed in changes(_ALIVE_EVERY_S):
        if has_changed or time.monotonic() >= check_at_s:
            with _alive_meanwhile(notifier):
                if not good or not _are_ours(good):
                    good = _restore(was_known=bool(good))
            text = "the packet rules are in place" if good else "NO PACKET RULES: all are stopped"
            notifier.ready(text)
            check_at_s = time.monotonic() + _CHECK_EVERY_S
        notifier.alive()
    return 0


@contextmanager
def _alive_meanwhile(notifier: Notifier) -> Iterator[None]:
    """Notify systemd's watchdog while tools run, until their timeout."""
    is_done = threading.Event()

    def notify() -> None:
        give_up_at_s = time.monotonic() + _TIMEOUT_S
        while not is_done.wait(_ALIVE_EVERY_S) and time.monotonic() < give_up_at_s:
            notifier.alive()

    thread = threading.Thread(target=notify)
    thread.start()
    try:
        yield
    finally:
        is_done.set()
        thread.join()


def _are_ours(good: str) -> bool:
    if _listing() != good:
        return False
    if _have_our_elements():
        return True
    time.sleep(_SETTLE_S)
    return _listing() == good and _have_our_elements()


def _have_our_elements() -> bool:
    wanted, resolvers = _text(paths.ELEMENTS), _text(paths.RESOLVERS)
    if wanted is not None and _in_sets(wanted) != _in_sets(nft_elements.text(nft_table.elements())):
        return False
    return resolvers is None or _in_braces(resolvers) == _in_braces(_sets(_RESOLVERS))


def _text(file: str) -> str | None:
    try:
        return Path(file).read_text()
    except FileNotFoundError:
        return None


def _listing() -> str:
    """Return the rules, and the elements of the fixed sets; a missing one changes the text."""
    return nft_table.text() + _sets(_FIXED)


def _sets(names: tuple[str, ...]) -> str:
    try:
        return "".join(run(NFT, "-n", "list", "set", "inet", "mcpwrap", name) for name in names)
    except ToolError:
        return ""


def _in_sets(text: str) -> set[tuple[str, str]]:
    """Return set and element for each element that the text adds, in any order."""
    found = re.findall(r"^add element inet mcpwrap (\S+) \{ ([^{}]*) \}", text, re.MULTILINE)
    return {(name, element) for name, elements in found for element in elements.split(", ")}


def _in_braces(text: str) -> set[str]:
    """Return the elements, as nft(8) reads and prints them; braces around sets end a line."""
    found = re.findall(r"\{ ([^{}]*) \}", text)
    return {element for elements in found for element in re.split(r"[\s,]+", elements)}


def _restore(*, was_known: bool) -> str:
    """Load the rules and return their listing; on failure stop all that they bound, return ""."""
    try:
        run(NFT, "-f", RULES)
    except ToolError as error:
        log_line(
            f"the packet rules are gone and cannot be loaded: {error.problem}; stopping everything "
            "[E-RULES-NOT-LOADED]"
        )
        _stop_everything()
        return ""
    if was_known:
        log_line("another program changed the packet rules: they are restored")
    return _listing()


def _stop_everything() -> None:
    """Stop all units, irreversibly: a retry of an agent would cancel a reversible stop job.

    The end of the jobs is not waited for: that may exceed the watchdog's timeout.
    """
    try:
        run(SYSTEMCTL, "stop", "--no-block", "--job-mode=replace-irreversibly", "--", *_ALL)
    except ToolError as error:
        log_line(
            f"not everything is stopped, a retry follows: {error.problem} [E-RULES-NOT-LOADED]"
        )


if __name__ == "__main__":
    sys.exit(main())
