"""Drops in the trace of a packet (of nft 1.0.6 and 1.1.3), and the line that lets it pass."""

import pytest

from mcpwrap.core.egress.packet_trace import Drop, RuleChain, Sent, drops, remedy

PORT = 45001
OUT = 'packet: oif "eth0" ip saddr 192.0.2.2 ip daddr 192.0.2.77 ip dscp cs0 ip ttl 64 ip id 9'
LOOP = 'packet: oif "lo" ip saddr 127.77.0.5 ip daddr 127.77.0.5 ip ttl 64 ip id 9'
IN = 'packet: iif "lo" ether saddr 00:00:00:00:00:00 ip saddr 127.77.0.5 ip id 9'
TO = "tcp sport 45001 tcp dport 443 tcp flags == syn tcp window 64240 "
MARKED = (
    f"trace id 5de6faac inet mcpwrap-doctor out {OUT} {TO}\n"
    "trace id 5de6faac inet mcpwrap-doctor out rule th sport { 45001, 53451 } meta nftrace set 1"
    " # handle 5 (verdict continue)\n"
    "trace id 5de6faac inet mcpwrap-doctor out policy accept \n"
)


def of(place: str, what: str) -> str:
    """Return the same trace with another line."""
    return f"{MARKED}trace id 5de6faac {place} {what}\n"


@pytest.mark.parametrize(
    ("trace", "found"),
    [
        (MARKED, []),
        (of("ip filter OUTPUT", "policy drop "), ["ip filter OUTPUT, by its policy"]),
        (
            of("ip filter OUTPUT", "rule tcp dport 443 counter drop # handle 2 (verdict drop)"),
            ["ip filter OUTPUT handle 2, by the rule `tcp dport 443 counter drop`"],
        ),
        (  # a reject is a drop, to the trace
            of("inet firewalld filter_OUT_policy_out", "rule reject with icmpx admin-prohibited"
               " # handle 192 (verdict drop)"),
            [("inet firewalld filter_OUT_policy_out handle 192, by the rule"
             " `reject with icmpx admin-prohibited`")],
        ),
        (  # a rule that was added after the trace began
            of("inet corp o", "unknown rule handle 7 (verdict drop)"), ["inet corp o handle 7"],
        ),
        (of("inet corp o", "rule drop # handle 7 (verdict continue)"), []),
        (of("inet corp o", 'rule log prefix "(verdict drop)" # handle 7 (verdict continue)'), []),
        (of("inet corp o", "rule jump drop # handle 7 (verdict jump drop)"), []),
        # Packets of other ports, and lines of other messages.
        (of("ip filter OUTPUT", "policy drop ").replace("45001", "45002"), []),
        (of("ip filter OUTPUT", "policy drop ").replace("45001", "450011"), []),
        ("add table inet corp\n# new generation 7 by process 9 (nft)\n", []),
    ],
)  # fmt: skip
def test_the_drops_of_a_trace(trace: str, found: list[str]) -> None:
    assert [str(drop) for drop in drops(trace, PORT)] == found


@pytest.mark.parametrize(
    ("packet", "is_outgoing", "is_loopback"),
    [
        (OUT, True, False),
        (LOOP, True, True),
        (IN, False, True),
        (OUT.replace("oif", "iif"), False, False),
    ],
)
def test_the_way_of_a_dropped_packet(packet: str, *, is_outgoing: bool, is_loopback: bool) -> None:
    trace = f"trace id 1a ip corp x {packet} {TO}\ntrace id 1a ip corp x policy drop\n"
    assert list(drops(trace, PORT)) == [
        Drop(RuleChain("ip", "corp", "x"), is_outgoing=is_outgoing, is_loopback=is_loopback)
    ]


UFW = [
    RuleChain("ip", "filter", "ufw-before-output"),
    RuleChain("ip", "filter", "ufw-before-input"),
]
UFW6 = [RuleChain("ip6", "filter", "ufw6-before-output")]
FIREWALLD = [RuleChain("inet", "firewalld", "filter_OUTPUT")]
PROXY = "mcpwrap-proxy"
KEPT = "sudo firewall-cmd --permanent"


@pytest.mark.parametrize(
    ("place", "chains", "way", "line"),
    [
        ("ip filter OUTPUT", UFW, "out",
         (f"`-A ufw-before-output -m owner --uid-owner {PROXY} -j ACCEPT` before COMMIT in"
         " /etc/ufw/before.rules")),
        ("ip6 filter ufw6-reject-output", UFW6, "out",
         (f"`-A ufw6-before-output -m owner --uid-owner {PROXY} -j ACCEPT` before COMMIT in"
         " /etc/ufw/before6.rules")),
        ("ip filter INPUT", UFW, "lo in", "`-A ufw-before-input -i lo -j ACCEPT`"),
        ("ip filter OUTPUT", FIREWALLD, "out",
         (f"`{KEPT} --direct --add-rule ipv4 filter OUTPUT -1 -m owner --uid-owner {PROXY}"
         " -j ACCEPT && sudo firewall-cmd --reload`")),
        ("ip6 filter OUTPUT", FIREWALLD, "out", "--add-rule ipv6 filter OUTPUT -1"),
        ("inet firewalld filter_OUT_policy_no-way_post", FIREWALLD, "out",
         (f"`{KEPT} --policy no-way --add-rich-rule 'rule priority=-32768 port port=443"
         " protocol=tcp accept' && sudo firewall-cmd --reload`")),
        ("inet firewalld filter_OUT_policy_out", FIREWALLD, "out", "--policy out "),
        ("inet firewalld filter_OUTPUT", FIREWALLD, "out", "--list-all-policies"),
        ("inet firewalld_policy_drop raw_output", FIREWALLD, "out",
         "`sudo firewall-cmd --panic-off`"),
        # No program wrote these: an administrator did, by iptables or by nft.
        ("ip filter OUTPUT", [], "out",
         f"`sudo iptables -I OUTPUT -m owner --uid-owner {PROXY} -j ACCEPT`"),
        ("ip6 filter corp", [], "out", "`sudo ip6tables -I corp -m owner"),
        ("ip mangle OUTPUT", [], "lo out", "`sudo iptables -t mangle -I OUTPUT -o lo -j ACCEPT`"),
        ("ip filter INPUT", [], "in",
         "`sudo iptables -I INPUT -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT`"),
        ("inet corp o", [], "out", f"`sudo nft insert rule inet corp o meta skuid {PROXY} accept`"),
        ("inet corp o", [], "lo out", "`sudo nft insert rule inet corp o oifname lo accept`"),
        ("inet corp i", [], "lo in", "`sudo nft insert rule inet corp i iifname lo accept`"),
        ("inet corp i", [], "in", "inet corp i ct state established,related accept`"),
    ],
)  # fmt: skip
def test_the_line_that_lets_it_pass(
    place: str, chains: list[RuleChain], way: str, line: str
) -> None:
    chain = RuleChain(*place.split())
    drop = Drop(chain, is_outgoing="out" in way, is_loopback="lo" in way)
    assert line in remedy(drop, Sent(PROXY, "tcp", 443), [chain, *chains])
