"""Tracer of packets through all chains of nftables, by a table of its own. Needs root.

Source: nft(8), MONITOR, `meta nftrace`, and the table flag `owner`.
"""

import queue
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, cast

from mcpwrap.core.egress.packet_trace import DOCTOR_TABLE, LAST_CHAIN
from mcpwrap.linux.systemd.systemctl import ToolError
from mcpwrap.machine.nft_table import NFT

_DISCARD = ("127.0.0.1", 9)  # RFC 863; an answer is not read
_UDP_HEADER_BYTES = 8
_START_S = 30.0  # nft(8) reads all sets first: 6 s where servers have filled those of refusals
_LOOK_EVERY_S = 0.05
# The kernel removes the table when its owner, nft(8), ends. Before conntrack, and after NAT. A new
# connection to another machine ends in the last chain, if no rule before drops it.
_RULES = """\
add table inet {table} {{ flags owner; }}
add chain inet {table} out {{ type filter hook output priority -450; }}
add chain inet {table} in {{ type filter hook prerouting priority -450; }}
add chain inet {table} {last} {{ type filter hook postrouting priority 300; }}
add rule inet {table} out th sport {{ {port}, {mark} }} meta nftrace set 1
add rule inet {table} out th dport {port} meta nftrace set 1
add rule inet {table} in th sport {port} meta nftrace set 1
add rule inet {table} in th dport {port} meta nftrace set 1
add rule inet {table} {last} tcp sport {port} oifname != "lo" drop
"""


class PacketTracer:
    """Trace of the packets from and to one port of this machine."""

    def __init__(self, port: int, marker: socket.socket, monitor: IO[str]) -> None:
        self.port = port
        self._marker = marker
        self._bytes = 0
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._read, args=(monitor,), daemon=True).start()

    def text(self) -> str:
        """Return the trace since the last call, as nft(8) writes it.

        It is complete when the trace of a packet shows that is sent now.

        Raises:
            ToolError: nft(8) writes no trace.
        """
        found: list[str] = []
        self._bytes += 1  # the rest of the trace of an earlier one may still come
        mark = f"sport {self._marker.getsockname()[1]} udp dport {_DISCARD[1]} udp length "
        mark += f"{_UDP_HEADER_BYTES + self._bytes} "
        give_up_at_s = time.monotonic() + _START_S
        while time.monotonic() < give_up_at_s:
            with suppress(OSError):  # dropped after it was traced
                self._marker.sendto(b"." * self._bytes, _DISCARD)
            with suppress(queue.Empty):
                while mark not in (line := self._lines.get(timeout=_LOOK_EVERY_S)):
                    found.append(line)
                return "".join(found)
        raise ToolError(
            f"no trace of a packet in {_START_S:.0f} s",
            where=f"{NFT} monitor trace",
            fix="load the kernel module nf_tables with tracing, then run doctor again",
            code="E-TOOL-FAILED",
        )

    def _read(self, monitor: IO[str]) -> None:
        for line in monitor:
            self._lines.put(line)


@contextmanager
def packet_tracer() -> Iterator[PacketTracer]:
    """Trace the packets of a free port, for the time of the block.

    Raises:
        ToolError: nft(8) writes no trace.
    """
    with (
        socket.create_server(("", 0)) as free,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as marker,
    ):
        marker.bind(("127.0.0.1", 0))
        port, mark = free.getsockname()[1], marker.getsockname()[1]
        free.close()
        rules = _RULES.format(table=DOCTOR_TABLE, last=LAST_CHAIN, port=port, mark=mark)
        with _nft("-i") as owner, _nft("-a", "monitor", "trace") as monitor:
            cast(IO[str], owner.stdin).write(rules)
            cast(IO[str], owner.stdin).flush()
            tracer = PacketTracer(port, marker, cast(IO[str], monitor.stdout))
            tracer.text()
            yield tracer


@contextmanager
def _nft(*argv: str) -> Iterator[subprocess.Popen[str]]:
    """Run nft(8) for the time of the block. It ends also when this process has ended."""
    pipe = subprocess.PIPE
    with subprocess.Popen([NFT, *argv], stdin=pipe, stdout=pipe, text=True) as nft:
        try:
            yield nft
        finally:
            nft.terminate()
