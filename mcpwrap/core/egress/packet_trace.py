"""Trace of a packet through all packet rules: what dropped it, and the line that lets it pass.

Source: nft(8), MONITOR and `meta nftrace`; the text of `nft -a monitor trace` of 1.0.6 and 1.1.3.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

OUR_TABLE = "mcpwrap"
DOCTOR_TABLE = "mcpwrap-doctor"  # of this trace; owned by the process that makes it
LAST_CHAIN = "last"  # of that table: where a packet that no other rule has dropped ends
_LINE = re.compile(r"trace id (?P<id>\S+) (?P<place>\S+ \S+ \S+) (?P<what>.*)")
# A rule that was added after the trace began is `unknown`.
_DROPPED = re.compile(
    r"(?:rule (?P<rule>.*) # |unknown rule )handle (?P<handle>[0-9]+) \(verdict drop\)\s*"
)
_INTERFACE = re.compile(r'packet: (?:iif "(?P<iif>[^"]*)" )?(?:oif "(?P<oif>[^"]*)" )?')
_PORT = re.compile(r"\b(?:sport|dport) ([0-9]+)\b")
_POLICY = re.compile(r"filter_OUT_policy_(.+?)(?:_(?:pre|log|deny|allow|post))?")
_IPTABLES = {"ip": "iptables", "ip6": "ip6tables"}
_UFW = {"ip": ("ufw", "before.rules"), "ip6": ("ufw6", "before6.rules")}


@dataclass(frozen=True, slots=True)
class RuleChain:
    """Chain of rules in the kernel: an address family, a table, and its own name."""

    family: str
    table: str
    name: str


@dataclass(frozen=True, slots=True)
class Drop:
    """Drop of a packet by a rule of a chain, or by the policy of the chain."""

    chain: RuleChain
    handle: int = 0  # of the rule; 0 for the policy
    rule: str = ""  # as nft(8) writes it
    is_outgoing: bool = True
    is_loopback: bool = False

    def __str__(self) -> str:
        """Family, table, chain, and the rule with its handle."""
        place = f"{self.chain.family} {self.chain.table} {self.chain.name}"
        if not self.handle:
            return f"{place}, by its policy"
        rule = f", by the rule `{self.rule}`" if self.rule else ""
        return f"{place} handle {self.handle}{rule}"


@dataclass(frozen=True, slots=True)
class Sent:
    """Packet of a trial: the account, and the service that it was sent to."""

    account: str
    protocol: str
    port: int


def drops(trace: str, port: int) -> Iterator[Drop]:
    """Yield each drop of packets from or to this port. The last chain of the trace counts too."""
    interface_by_id: dict[str, tuple[str, str]] = {}
    for text in trace.splitlines():
        if not (line := _LINE.match(text)):
            continue
        what = line["what"]
        if what.startswith("packet: "):
            if str(port) in _PORT.findall(what) and (found := _INTERFACE.match(what)):
                interface_by_id[line["id"]] = (found["iif"] or "", found["oif"] or "")
            continue
        dropped = _DROPPED.fullmatch(what)
        if line["id"] in interface_by_id and (dropped or what.strip() == "policy drop"):
            came_by, goes_by = interface_by_id[line["id"]]
            yield Drop(
                RuleChain(*line["place"].split()),
                handle=int(dropped["handle"]) if dropped else 0,
                rule=(dropped["rule"] or "") if dropped else "",
                is_outgoing=not came_by,
                is_loopback="lo" in {came_by, goes_by},
            )


def remedy(drop: Drop, sent: Sent, chains: Collection[RuleChain]) -> str:
    """Return the line that lets such packets pass, for the program that the chain belongs to.

    `chains` are all chains of the machine.
    """
    chain = drop.chain
    if chain.table == "firewalld_policy_drop":
        return "`sudo firewall-cmd --panic-off`"
    if chain.table == "firewalld":
        return _by_firewalld(chain, sent)
    if chain.family not in _IPTABLES:
        return _by_nft(drop, sent)
    ufw, file = _UFW[chain.family]
    way = "output" if drop.is_outgoing else "input"
    allowed = f"{_iptables_match(drop, sent)} -j ACCEPT"
    if RuleChain(chain.family, chain.table, f"{ufw}-before-{way}") in chains:
        line = f"`-A {ufw}-before-{way} {allowed}`"
        return f"add {line} before COMMIT in /etc/ufw/{file}, then `sudo ufw reload`"
    if (chain.table, chain.name) == ("filter", "OUTPUT") and _has_firewalld(chains):
        version = "ipv6" if chain.family == "ip6" else "ipv4"
        return _kept(f"--direct --add-rule {version} filter OUTPUT -1 {allowed}")
    table = "" if chain.table == "filter" else f" -t {chain.table}"
    return (
        f"`sudo {_IPTABLES[chain.family]}{table} -I {chain.name} {allowed}`, and where it is kept"
    )


def _has_firewalld(chains: Collection[RuleChain]) -> bool:
    return any(chain.table == "firewalld" for chain in chains)


def _by_firewalld(chain: RuleChain, sent: Sent) -> str:
    """Return the line for a policy of firewalld: it knows ports, and no accounts."""
    policy = _POLICY.fullmatch(chain.name)
    if not policy:
        return "change it in firewalld: `sudo firewall-cmd --list-all-policies` shows what it has"
    rule = f"rule priority=-32768 port port={sent.port} protocol={sent.protocol} accept"
    return _kept(f"--policy {policy[1]} --add-rich-rule '{rule}'")


def _kept(option: str) -> str:
    return f"`sudo firewall-cmd --permanent {option} && sudo firewall-cmd --reload`"


def _by_nft(drop: Drop, sent: Sent) -> str:
    chain = drop.chain
    if drop.is_loopback:
        match = f"{'oifname' if drop.is_outgoing else 'iifname'} lo"
    elif drop.is_outgoing:
        match = f"meta skuid {sent.account}"
    else:
        match = "ct state established,related"
    insert = f"sudo nft insert rule {chain.family} {chain.table} {chain.name} {match} accept"
    return f"`{insert}`, and in the file of these rules"


def _iptables_match(drop: Drop, sent: Sent) -> str:
    if drop.is_loopback:
        return "-o lo" if drop.is_outgoing else "-i lo"
    if drop.is_outgoing:
        return f"-m owner --uid-owner {sent.account}"
    return "-m conntrack --ctstate ESTABLISHED,RELATED"
