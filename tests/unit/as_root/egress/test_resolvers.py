"""Resolvers that Squid may query: those of resolv.conf(5), whatever else the file contains."""

import pytest

from mcpwrap.as_root.egress.resolvers import elements


@pytest.mark.parametrize(
    ("text", "four", "six"),
    [
        ("", "127.0.0.1", ""),  # as resolv.conf(5) says
        ("# nameserver 192.0.2.1\nsearch example\noptions edns0\n", "127.0.0.1", ""),
        ("nameserver 192.0.2.1", "192.0.2.1", ""),
        ("nameserver\t192.0.2.1   # ours\n", "192.0.2.1", ""),
        ("nameserver 2001:DB8::1\n", "", "2001:db8::1"),
        ("nameserver fe80::1%eth0\n", "", "fe80::1"),  # nft takes no zone
        (
            "nameserver 192.0.2.9\nnameserver 2001:db8::1\nnameserver 192.0.2.1\n",
            "192.0.2.1, 192.0.2.9",
            "2001:db8::1",
        ),
        ("nameserver 192.0.2.1\nnameserver 192.0.2.1\n", "192.0.2.1", ""),
        ("nameserver\n", "127.0.0.1", ""),
        ("nameserver resolver.example\n", "127.0.0.1", ""),
        ("nameserver 192.0.2.1} ; flush ruleset\n", "127.0.0.1", ""),
        ("nameserver 192.0.2.0/24\nnameserver 2001:db8::/32\n", "127.0.0.1", ""),
        ("NAMESERVER 192.0.2.1\n", "127.0.0.1", ""),
        ("\ufffd\0\nnameserver 192.0.2.1\n", "192.0.2.1", ""),
    ],
)
def test_only_resolvers_may_be_queried(text: str, four: str, six: str) -> None:
    lines = ["# Written by mcpwrap-resolvers.service."]
    for family, found in (("4", four), ("6", six)):
        lines.append(f"flush set inet mcpwrap resolvers{family}")
        if found:
            lines.append(f"add element inet mcpwrap resolvers{family} {{ {found} }}")
    assert elements(text) == "\n".join([*lines, ""])
