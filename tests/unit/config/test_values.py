"""The grammars of single values, row by row."""

from collections.abc import Callable

import pytest

from mcpwrap.config import values
from mcpwrap.config.model import Destination, Direct
from mcpwrap.config.values import BadValueError

WRONG: dict[Callable[[str], object], list[str]] = {
    values.destination: [
        "",
        "localhost",  # no dot: somebody's search list decides what it is
        "1.2.3.4",
        "1.2.3.4:443",
        "[::1]:443",
        "::1",
        "127.1",
        "127.0x1",  # inet_aton(3) reads 127.0.0.1
        "X.example",
        "*",
        "*.",
        "*.com",
        "a.*.example",
        "*a.example",
        "*.*.example",
        "a_b.example",
        "x.example.",
        ".x.example",
        "x..example",
        "-x.example",
        "x-.example",
        "x.example\n",
        "x.example/path",
        "https://x.example",
        "me@x.example",
        "bücher.example",
        f"{'a' * 64}.example",
        ".".join(["a" * 60] * 5),
        "x.example:",
        "x.example:0",
        "x.example:70000",
        "x.example:65536",
        "x.example:0443",
        "x.example:+443",
        "x.example:https",
        "x.example:443\n",
        "x.example:443:443",
    ],
    values.direct: [
        "",
        "10.0.0.5",
        "10.0.0.5:",
        "10.0.0.5:0",
        "10.0.0.5:65536",
        "10.0.0.5:5432\n",
        "10.0.0:5432",
        "10.0.0.05:5432",  # octal to some
        "10.0.0.0/8:5432",
        "*:5432",
        "db.example:5432",
        "fd00::5:5432",  # which of them is the port?
        "[10.0.0.5]:5432",
        "[fd00::5]",
        "[fd00::5:5432",
        "[fe80::1%eth0]:5432",  # a scope is no part of a literal that nft takes
        "[fe80::1%a } accept; {]:5432",  # and it may be any text
    ],
    values.inherited: [
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "LD_AUDIT",
        "NODE_OPTIONS",
        "NODE_PATH",
        "NODE_EXTRA_CA_CERTS",
        "NPM_CONFIG_REGISTRY",
        "npm_config_registry",  # how npm itself writes it; npm minds no case
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "PERL5LIB",
        "RUBYOPT",
        "JAVA_TOOL_OPTIONS",
        "_JAVA_OPTIONS",
        "BASH_ENV",
        "ENV",
        "IFS",
        "PATH",
        "HOME",
        "TMPDIR",
        "GIT_SSH_COMMAND",
        "GCONV_PATH",
        "SSL_CERT_FILE",
        "HTTPS_PROXY",
        "https_proxy",
        "No_Proxy",
        "ALL_PROXY",
    ],
    values.size_bytes: ["", "G", "1", "1g", "1 G", "1.5G", "-1G", "16777216K\n", "1000000M", "0G"],
    values.secret_key: ["", "a", "1A", "A-B", "A\n", "A" * 65],
    values.absolute_path: ["//", "/a//b", "/a/", "/./a", "/a/..", "a", "", "/a\0"],
    values.agent: ["", "@", "@@a", "-a", "a b", "a:b", "root", "a" * 33, "samba$"],
}


@pytest.mark.parametrize(
    ("understand", "text"), [(grammar, text) for grammar, rows in WRONG.items() for text in rows]
)
def test_what_is_wrong_is_refused_with_a_fix(
    understand: Callable[[str], object], text: str
) -> None:
    with pytest.raises(BadValueError) as caught:
        understand(text)
    assert caught.value.problem
    assert caught.value.fix


@pytest.mark.parametrize(
    ("text", "destination"),
    [
        ("a.example", Destination("a.example", 443, with_subdomains=False)),
        ("*.a.example:1", Destination("a.example", 1, with_subdomains=True)),
        ("1.a.example:65535", Destination("1.a.example", 65535, with_subdomains=False)),
        ("4chan.x1", Destination("4chan.x1", 443, with_subdomains=False)),
    ],
)
def test_a_destination_is_understood(text: str, destination: Destination) -> None:
    assert values.destination(text) == destination


@pytest.mark.parametrize(
    ("text", "direct"),
    [
        ("10.0.0.5:1", Direct("10.0.0.5", 1)),
        ("[0:0::1]:65535", Direct("::1", 65535)),  # written in one way only
    ],
)
def test_a_direct_address_is_understood(text: str, direct: Direct) -> None:
    assert values.direct(text) == direct


@pytest.mark.parametrize("name", ["TZ", "LC_ALL", "TERM", "PROJECT", "PATHS", "MY_HOME", "_"])
def test_what_steers_nothing_may_be_inherited(name: str) -> None:
    assert values.inherited(name) == name


@pytest.mark.parametrize(
    ("text", "size_bytes"), [("16384K", 2**24), ("512M", 2**29), ("1G", 2**30), ("1T", 2**40)]
)
def test_a_size_is_understood(text: str, size_bytes: int) -> None:
    assert values.size_bytes(text) == size_bytes


@pytest.mark.parametrize("path", ["/a", "/home/alice/a b", "/é", "/a/..b"])
def test_a_path_stays_as_it_is_written(path: str) -> None:
    assert values.absolute_path(path) == path
