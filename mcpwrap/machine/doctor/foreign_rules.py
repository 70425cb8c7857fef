"""Check of other programs' packet rules: whether one drops what mcpwrap's accounts must send.

An accept in mcpwrap's table does not undo a drop in another. So packets are sent under these
accounts, and traced through all chains. Needs root; changes no other table.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from mcpwrap.config.model import Config
from mcpwrap.core.doctor import Check, failed, good, unknown
from mcpwrap.core.egress.packet_trace import (
    DOCTOR_TABLE,
    LAST_CHAIN,
    OUR_TABLE,
    Drop,
    RuleChain,
    Sent,
    drops,
    remedy,
)
from mcpwrap.core.names import EGRESS_PORT, account_of, egress_address
from mcpwrap.core.wire import listener_file
from mcpwrap.linux import accounts
from mcpwrap.linux.systemd.systemctl import run
from mcpwrap.machine import nft_table, observer
from mcpwrap.machine.doctor import live_probes
from mcpwrap.machine.doctor.live_probes import TrialResult, TrialStatus
from mcpwrap.machine.doctor.packet_tracer import PacketTracer, packet_tracer
from mcpwrap.machine.nft_table import NFT
from mcpwrap.plan import paths

_TITLE = "packet rules of others"
_IN_THE_WAY = frozenset({"prerouting", "input", "output", "postrouting", "ingress", "egress"})
_LEGACY = ("/proc/net/ip_tables_names", "/proc/net/ip6_tables_names")  # nft(8) does not list them
_NOWHERE = ("192.0.2.1", "2001:db8::1")  # RFC 5737, RFC 3849: no host has them
_HTTPS, _DNS = 443, 53
_AGAIN = "try again; if it fails again, fix the cause named above"


class _Chain(msgspec.Struct):
    family: str
    table: str
    name: str
    hook: str = ""  # of a base chain


class _Object(msgspec.Struct):
    chain: _Chain | None = None


class _Listing(msgspec.Struct):
    nftables: list[_Object] = []


@dataclass(frozen=True, slots=True)
class _Trial:
    """Packet to send under an account, to the first of these addresses with a route."""

    title: str
    account: str
    protocol: str
    addresses: tuple[str, ...]
    port: int
    source: str = ""  # any; a server's is its own, also before the route of its start is there
    is_outside: bool = False  # it ends in the last chain, if no other drops it


def checks(config: Config) -> Iterator[Check]:
    """Yield the checks; no trial is made where no other program has rules in the way.

    Raises:
        ToolError: nft failed, so it is not known.
    """
    trials = list(_trials(config))
    if not trials:
        return
    chains = _chains()
    others = {f"{c.family} {c.table}" for c in chains if _is_in_the_way(c)}
    others |= {f"{Path(file).name}: {name}" for file in _LEGACY for name in _lines(file)}
    if not others:
        yield good(_TITLE, "no other table judges packets of this machine")
        return
    known = {RuleChain(c.family, c.table, c.name) for c in chains}
    with packet_tracer() as tracer:
        problems = [found for trial in trials if (found := _problem(tracer, trial, known))]
    yield from problems or [good(_TITLE, f"none drops what is needed: {', '.join(sorted(others))}")]


def _chains() -> list[_Chain]:
    listing = msgspec.json.decode(run(NFT, "-j", "list", "chains"), type=_Listing)
    return [found.chain for found in listing.nftables if found.chain]


def _is_in_the_way(chain: _Chain) -> bool:
    is_ours = chain.family == "inet" and chain.table in {OUR_TABLE, DOCTOR_TABLE}
    return chain.hook in _IN_THE_WAY and not is_ours


def _lines(file: str) -> list[str]:
    try:
        return Path(file).read_text().split()
    except FileNotFoundError:
        return []


def _problem(tracer: PacketTracer, trial: _Trial, chains: Collection[RuleChain]) -> Check | None:
    """Make one trial; return what dropped it, or that it could not be made, if anything did."""
    what = f"{_TITLE}: {trial.title}"
    tried = _sent(trial, tracer.port)
    found = list(drops(tracer.text(), tracer.port))
    foreign = [drop for drop in found if not _is_ours(drop)]
    if foreign:
        fix = remedy(foreign[0], Sent(trial.account, trial.protocol, trial.port), chains)
        return failed(what, f"dropped by {foreign[0]} [E-DOCTOR-FOREIGN-RULES]", fix)
    if any(drop.chain.table == OUR_TABLE for drop in found):
        return unknown(what, "mcpwrap's own rules refuse it", "`sudo mcpwrap apply`")
    if tried.ended is TrialStatus.UNKNOWN:
        return unknown(what, tried.line, _AGAIN)
    has_passed = any(drop.chain.name == LAST_CHAIN for drop in found)
    if trial.is_outside and not has_passed and tried.ended is not TrialStatus.NO_ROUTE:
        text = f"lost, and by no rule that nft(8) lists ({tried.line}) [E-DOCTOR-FOREIGN-RULES]"
        fix = (
            "look at `iptables-legacy-save`, and at programs that judge packets by eBPF or NFQUEUE"
        )
        return failed(what, text, fix)
    return None


def _sent(trial: _Trial, port: int) -> TrialResult:
    """Send the packet from this port, to the first of the addresses with a route."""
    for address in trial.addresses:
        source = trial.source or ("::" if ":" in address else "0.0.0.0")  # noqa: S104 - any
        way = (trial.protocol, source, str(port), address, str(trial.port))
        tried = live_probes.try_as(trial.account, "send", *way)
        if tried.ended is not TrialStatus.NO_ROUTE:
            return tried
    return TrialResult(TrialStatus.NO_ROUTE, "no route leads there")


def _is_ours(drop: Drop) -> bool:
    return drop.chain.family == "inet" and drop.chain.table in {OUR_TABLE, DOCTOR_TABLE}


def _trials(config: Config) -> Iterator[_Trial]:
    """Yield a trial of each way: to Squid, to a resolver, out, by the front, to a listener."""
    by_name = observer.registry().by_name
    kinds: set[str] = set()
    for server in config.servers.values():
        allocation = by_name.get(server.name)
        if not (server.egress and allocation and allocation.squid):
            continue
        kind, address = allocation.squid.partition("-")[0], egress_address(allocation.uid)
        if kind not in kinds:
            kinds.add(kind)
            account = account_of(server.name)
            title = f"{account} to Squid"
            yield _Trial(title, account, "tcp", (address,), EGRESS_PORT, address)
            yield from _of_squid(f"mcpwrap-{kind}", config)
        if server.transparent and "front" not in kinds:
            kinds.add("front")
            account = "mcpwrap-front"
            yield _Trial("the front to Squid", account, "tcp", (address,), EGRESS_PORT, address)
    for listener in observer.listeners()[:1]:
        if agent := accounts.name_of(listener.uid):
            title = f"{agent} to a listener"
            yield _Trial(title, agent, "tcp", (listener.address,), listener_file.PORT)


def _of_squid(account: str, config: Config) -> Iterator[_Trial]:
    elements = nft_table.elements()
    if resolvers := _resolvers():
        yield _Trial(f"{account} to its resolver", account, "udp", resolvers[:1], _DNS)
    if parent := config.parent:
        where = ((parent.address,), parent.port)
        yield _Trial(f"{account} to the parent", account, "tcp", *where, is_outside=True)
        return
    ports = sorted(int(port) for name, port in elements if name == "ports")
    port = _HTTPS if _HTTPS in ports else next(iter(ports), _HTTPS)
    title = f"{account} to public addresses, port {port}"
    yield _Trial(title, account, "tcp", _NOWHERE, port, is_outside=True)


def _resolvers() -> tuple[str, ...]:
    """Return the resolvers to which the packet rules let Squid send."""
    text = " ".join(_lines(paths.RESOLVERS))
    return tuple(a for found in re.findall(r"\{ ([^{}]*) \}", text) for a in found.split(", "))
