"""Squid instance with a given number of listeners. Runs inside the machine, as root."""

import sys
import time

sys.path[:0] = ["/usr/lib/mcpwrap", "/usr/lib/mcpwrap/site"]

PORT = 3128


def opened(instance: str, count: int, wait_for: int, within_s: float) -> int:
    """Load this instance for `count` servers; return at how many addresses it listens.

    It opens all in one go: once `wait_for` are there, no other will come.
    """
    from mcpwrap.as_root.egress import squid
    from mcpwrap.config.model import Destination
    from mcpwrap.linux import tcp_listeners
    from mcpwrap.plan.egress import squid_conf

    hosts = (Destination("api.good.test", 443, with_subdomains=False),)
    found = [
        squid_conf.SquidListener(name=f"n{n}", address=f"127.77.70.{n}", hosts=hosts)
        for n in range(count)
    ]
    squid.load(instance, squid_conf.spliced(instance, found, None))
    wanted = {each.address for each in found}
    give_up_at = time.monotonic() + within_s
    while len(wanted & tcp_listeners.inodes(PORT).keys()) < wait_for:
        if time.monotonic() > give_up_at:
            break
    return len(wanted & tcp_listeners.inodes(PORT).keys())
