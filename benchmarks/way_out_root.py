"""Timed restarts and reloads of egress. RUNS AS ROOT, in the machine, on the installed code.

Functions without a leading underscore are the actions: they take a number, and return what is JSON.
"""

import os
import pwd
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socket import AF_INET, SOCK_DGRAM, socket

import msgspec

from mcpwrap.as_root.egress import squid
from mcpwrap.config.model import Destination
from mcpwrap.core.names import account_of, egress_address
from mcpwrap.core.wire.sni_front_file import Front
from mcpwrap.linux import tcp_listeners
from mcpwrap.linux.systemd.systemctl import SYSTEMCTL, properties, run
from mcpwrap.machine.nft_table import NFT
from mcpwrap.plan import paths
from mcpwrap.plan.egress import squid_conf

RULES = "/usr/lib/mcpwrap/nftables/mcpwrap.nft"
NAME = "named"  # the server in which the client is
HOSTS = tuple(
    Destination(host, 443, with_subdomains=is_tree)
    for host, is_tree in (("api.good.test", False), ("other.test", False), ("cdn.test", True))
)
WATCH = "mcpwrap-watch.service"
UNITS = {
    "splice": paths.proxy_unit("proxy-1"),
    "intercept": paths.proxy_unit("intercept-1"),
    "front": paths.FRONT_UNIT,
    "watch": WATCH,
}
LOOK_EVERY_S = 0.001
GIVE_UP_S = 60.0
PACKETS = 20_000
NOBODY = 65_534
# Processor time, so that others on the machine count less. The first round warms up.
SEND = """
import socket, sys, time
s, data = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), b"x" * 64
to, count = (sys.argv[1], int(sys.argv[2])), int(sys.argv[3])
for _ in range(2):
    began = time.thread_time_ns()
    for _ in range(count): s.sendto(data, to)
    took = time.thread_time_ns() - began
print(took / count)
"""


def load(count: int) -> dict[str, float]:
    """Start Squid and the front anew, with this many servers; return how many Squid serves."""
    found = _listeners(count)
    wanted = {each.address for each in found}
    shards = [
        found[at : at + squid_conf.MAX_LISTENERS]
        for at in range(0, count, squid_conf.MAX_LISTENERS)
    ]
    for number, shard in enumerate(shards, start=1):
        text = squid_conf.spliced(f"proxy-{number}", shard, None)
        Path(paths.proxy(f"proxy-{number}")).write_text(text)
    front = Front(by_server={each.name: each.address for each in found})
    Path(paths.FRONT).write_bytes(msgspec.json.encode(front))
    run(SYSTEMCTL, "restart", *_squids(), UNITS["front"])
    served = 0
    for _ in range(20):  # it says that it is up a moment before
        served = len(tcp_listeners.inodes(squid_conf.PORT).keys() & wanted)
        if served == count:
            break
        time.sleep(0.1)
    return {"served": served}


def _squids() -> list[str]:
    written = map(str, Path(paths.PROXY).glob("proxy-*.conf"))
    return [paths.proxy_unit(instance) for instance in paths.names_in(written, paths.proxy)]


def _listeners(count: int) -> list[squid_conf.SquidListener]:
    """Return the listener of the client, and those of servers that do not exist."""
    named = {NAME: egress_address(pwd.getpwnam(account_of(NAME)).pw_uid)}
    others = {f"other{n}": f"127.77.{100 + n // 250}.{1 + n % 250}" for n in range(count - 1)}
    return [
        squid_conf.SquidListener(name=name, address=address, hosts=HOSTS)
        for name, address in {**named, **others}.items()
    ]


def memory(_: int) -> dict[str, float]:
    """Return the resident megabytes of each main process; those of all instances for `splice`."""
    units = {who: [unit] for who, unit in UNITS.items()} | {"splice": _squids()}
    found = properties([unit for each in units.values() for unit in each], ["MainPID"])
    return {
        who: sum(_rss_mb(found[unit]["MainPID"]) for unit in each) for who, each in units.items()
    }


def _rss_mb(pid: str) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    return int(found[1]) * 1024 / 1e6 if found else 0.0


def hang_up(rounds: int) -> list[float]:
    """Return the milliseconds from SIGHUP until all of Squid's ports are open again."""
    text = Path(paths.proxy("proxy-1")).read_text()
    wanted = {where.partition(":")[0] for where in squid_conf.ports(text)}
    pid = int(properties([UNITS["splice"]], ["MainPID"])[UNITS["splice"]]["MainPID"])
    return [_hang_up_ms(pid, wanted) for _ in range(rounds)]


def _hang_up_ms(pid: int, wanted: set[str]) -> float:
    before = tcp_listeners.inodes(squid_conf.PORT)
    began = time.perf_counter()
    os.kill(pid, signal.SIGHUP)
    while True:
        now = tcp_listeners.inodes(squid_conf.PORT)
        took_s = time.perf_counter() - began
        if all(now.get(address) not in {None, before[address]} for address in wanted):
            break
        if took_s > GIVE_UP_S:
            raise TimeoutError("Squid did not open its ports again")
        time.sleep(LOOK_EVERY_S)
    time.sleep(0.3)  # let it do what it does after that
    return took_s * 1000


def reread(rounds: int) -> list[float]:
    """Return the milliseconds of what `mcpwrap apply` does once the file is written."""
    found = []
    for _ in range(rounds):
        began = time.perf_counter()
        squid.reread("proxy-1")
        found.append((time.perf_counter() - began) * 1000)
        time.sleep(1.5)  # who waited for it comes by
    return found


def packets(rounds: int) -> dict[str, list[float]]:
    """Return the nanoseconds of a packet: `other` and `wrapper`, with and without the table."""
    uid = pwd.getpwnam(account_of(NAME)).pw_uid
    found: dict[str, list[float]] = {}
    own = egress_address(uid)
    with (
        _stopped(WATCH, paths.FRONT_UNIT),
        _sink("127.0.0.1", 0) as sink,
        _sink(own, 53) as own_sink,
    ):
        ways = {"other": (NOBODY, sink), "wrapper": (uid, own_sink)}
        for _ in range(rounds):
            for table in random.sample(("with", "without"), 2):
                run(NFT, *(["-f", RULES] if table == "with" else ["delete table inet mcpwrap"]))
                for who, way in ways.items():
                    found.setdefault(f"{who} {table}", []).append(_send_ns(*way))
                run(NFT, "-f", RULES)
    return found


@contextmanager
def _stopped(*units: str) -> Iterator[None]:
    run(SYSTEMCTL, "stop", *units)
    try:
        yield
    finally:
        run(SYSTEMCTL, "start", *units)


@contextmanager
def _sink(address: str, port: int) -> Iterator[socket]:
    """Be where packets go. They are not read meanwhile: most meet a queue that is full."""
    with socket(AF_INET, SOCK_DGRAM) as sink:
        sink.bind((address, port))
        sink.settimeout(0)
        yield sink


def _send_ns(uid: int, sink: socket) -> float:
    address, port = sink.getsockname()
    argv = [sys.executable, "-I", "-c", SEND, address, str(port), str(PACKETS)]
    done = subprocess.run(
        argv, user=uid, group=uid, extra_groups=[], check=True, stdout=subprocess.PIPE, text=True
    )
    sink.recv(64)  # raises if none has come: a refusal is not what is timed
    with suppress(BlockingIOError):
        while sink.recv(64):
            pass
    return float(done.stdout)
