"""Being told by the kernel when anybody changes packet rules. Source: netlink(7), nfnetlink.h.

Not by `nft monitor`: it reads all that is in every set before it listens, which takes seconds
where a server has filled the sets of what was refused.
"""

import errno
import socket
import time
from collections.abc import Iterator

_NETLINK_NETFILTER = 12  # netlink.h
_RULES_GROUP = 1 << 6  # NFNLGRP_NFTABLES of nfnetlink.h, as a bit of nl_groups
_MESSAGE_BYTES = 65536  # what is longer is cut: that there was a message is all that counts
_BURST_S = 0.02  # one change is many messages, and they come together
_MAX_BURST_S = 0.5  # of many changes the first are looked at meanwhile


def changes(every_s: float) -> Iterator[bool]:
    """Yield true at once and after each burst of changes; false where `every_s` seconds had none.

    Raises:
        OSError: the kernel tells us nothing, without CAP_NET_ADMIN for one.
    """
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_NETFILTER) as kernel:
        kernel.bind((0, _RULES_GROUP))
        yield True
        while True:
            yield _await_burst(kernel, every_s)


def _await_burst(kernel: socket.socket, every_s: float) -> bool:
    has_changed, wait_s = False, every_s
    look_at_s = time.monotonic() + every_s + _MAX_BURST_S
    while time.monotonic() < look_at_s and _hears(kernel, wait_s):
        has_changed, wait_s = True, _BURST_S
    return has_changed


def _hears(kernel: socket.socket, wait_s: float) -> bool:
    kernel.settimeout(wait_s)
    try:
        kernel.recv(_MESSAGE_BYTES)
    except TimeoutError:
        return False
    except OSError as error:
        if error.errno != errno.ENOBUFS:  # there were more changes than it keeps for us
            raise
    return True
