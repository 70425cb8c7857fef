"""Client of the pins of a server, in a session's process: offers definitions to the monitor."""

import time

from mcpwrap.as_gate.session.monitor_client import ToMonitor, write_page
from mcpwrap.core.gate.definitions.pin_check import OfferFailed
from mcpwrap.core.log_rate_limit import LogRateLimit
from mcpwrap.core.pins.acceptance import MAX_OFFER_BYTES, OfferedDefinitions, encode_offer
from mcpwrap.core.pins.pins_view import PinsView

# A server can change its lists with each request. Each page of a list is one offer.
_MAX_PER_S = 32


class SessionOffers:
    """Definitions that one session offers. Implements `core.gate.definitions.pin_check.PinOffers`.

    The monitor ends a session that offers too much, so that is refused here.
    """

    def __init__(self, monitor: ToMonitor) -> None:
        self._monitor = monitor
        self._quota = LogRateLimit(_MAX_PER_S)

    def record(self, offered: OfferedDefinitions) -> PinsView | OfferFailed:
        """Have definitions accepted at first use, and wait until that is recorded."""
        if why := self._write(offered):
            return OfferFailed(why)
        answer = self._monitor.offer_at_first_use()
        return OfferFailed(answer) if isinstance(answer, str) else answer

    def hold(self, offered: OfferedDefinitions) -> bool:
        """Offer definitions for a person to accept; return whether the monitor took them."""
        if not self._quota.admits(time.monotonic()) or self._write(offered):
            return False
        self._monitor.offer()
        return True

    def _write(self, offered: OfferedDefinitions) -> str:
        """Write definitions to a page; return why they are not kept, or ""."""
        content = encode_offer(offered)
        if len(content) > MAX_OFFER_BYTES:
            return f"they have over {MAX_OFFER_BYTES} bytes"
        page = self._monitor.offer_page()
        if page is None:
            return "the gate cannot keep them: see its journal"
        write_page(page, content)
        return ""
