"""Map of the bed's internet: names, addresses, ports."""

from types import MappingProxyType

# Documentation ranges (RFC 5737, RFC 3849): on no list of private addresses, and assigned to no
# network.
MACHINE = ("192.0.2.2/24", "2001:db8:1::2/64")
GATEWAY = ("192.0.2.1/24", "2001:db8:1::1/64")
RESOLVER = "198.51.100.53"
RESOLVER_V6 = "2001:db8:2::53"
ATTACKER = "203.0.113.66"
ATTACKER_V6 = "2001:db8:66::66"
# Every address answers. No wrapped server may reach these.
PRIVATE = (
    "10.0.0.5",
    "172.16.0.9",
    "192.168.7.7",
    "169.254.169.254",
    "100.100.100.200",
    "fd00:ec2::254",
)

HTTP_PORT = 80
TLS_PORTS = (443, 8443)
ECHO_PORTS = (22, 25, 5432)
DNS_PORT = 53

H2 = "h2.good.test"  # the one host that speaks HTTP/2
NPM = "npm.good.test"
PYPI = "pypi.good.test"
LOGIN = "login.good.test"  # an authorization server
MEMBERS = "members.good.test"  # an MCP server that requires its tokens
BAD_AUTHORITY = "badcert.good.test"
WRONG_NAME = "wrongname.good.test"
EXPIRED = "expired.good.test"
ODD = "odd.good.test"  # MCP servers of `origins/odd.py`: they are at every name, at /odd
MCP = "mcp.good.test"  # forwarded to a server of a test, if there is one
MCP_PORT = 18000  # on its own 127.0.0.1
# Hosts of the pages in docs/how-to, which play the same parts. A story adds their names.
EXAMPLE_LOGIN = "login.example.com"
EXAMPLE_MEMBERS = "board.example.com"
EXAMPLE_MCP = "mcp.example.com"
NOTHING = "nothing.good.test"  # has no address

# A name has addresses, or one other name: a CNAME. `*.` stands for any labels.
NAMES = MappingProxyType(
    {
        "api.good.test": ("198.51.100.10", "2001:db8:2::10"),
        "a.cdn.test": ("198.51.100.11",),
        H2: ("198.51.100.12",),
        NPM: ("198.51.100.13",),
        PYPI: ("198.51.100.14",),
        LOGIN: ("198.51.100.25",),
        MEMBERS: ("198.51.100.26",),
        "v6only.good.test": ("2001:db8:2::16",),
        BAD_AUTHORITY: ("198.51.100.17",),
        WRONG_NAME: ("198.51.100.18",),
        EXPIRED: ("198.51.100.19",),
        ODD: ("198.51.100.23",),
        MCP: ("198.51.100.24",),
        "other.test": ("203.0.113.20", "2001:db8:2::20"),
        "evil.test": (ATTACKER, ATTACKER_V6),
        "*.evil.test": (ATTACKER, ATTACKER_V6),
        "internal.test": ("10.0.0.5",),
        "lan.test": ("192.168.7.7",),
        "meta.test": ("169.254.169.254",),
        "ula.test": ("fd00:ec2::254",),
        "loop.test": ("127.0.0.1",),
        "multi.test": ("198.51.100.21", "10.0.0.5"),
        "alias.good.test": ("internal.test",),
    }
)
NAME_BY_ADDRESS = MappingProxyType({a: name for name, found in NAMES.items() for a in found})
REBIND = "rebind.test"  # these, for the first query, then those, with TTL 0
REBIND_FIRST = ("198.51.100.22",)
REBIND_THEN = ("10.0.0.5",)
# Text that an attacker can write into the reverse zone of their own address.
POINTERS = MappingProxyType({ATTACKER: "api.good.test", ATTACKER_V6: "api.good.test"})
