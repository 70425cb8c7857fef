"""Syntax of single values, row by row."""

from collections.abc import Callable

import pytest

from mcpwrap.config import quantities, value_parsers
from mcpwrap.config.model import AllowedRequest, Destination, Direct, Group
from mcpwrap.config.value_parsers import BadValueError
from mcpwrap.core import environment
from tests.unit.config.places import STEERING

WRONG: dict[Callable[[str], object], list[str]] = {
    value_parsers.destination: [
        "",
        "localhost",  # no dot: a search list of the resolver would decide its meaning
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
    value_parsers.direct: [
        "",
        "10.0.0.5",
        "10.0.0.5:",
        "10.0.0.5:0",
        "10.0.0.5:65536",
        "10.0.0.5:5432\n",
        "10.0.0:5432",
        "10.0.0.05:5432",  # octal to some parsers
        "10.0.0.0/8:5432",
        "*:5432",
        "db.example:5432",
        "fd00::5:5432",  # which of them is the port?
        "[10.0.0.5]:5432",
        "[fd00::5]",
        "[fd00::5:5432",
        "[fe80::1%eth0]:5432",  # nft takes no literal with a scope
        "[fe80::1%a } accept; {]:5432",  # and it may be any text
        "127.77.0.5:3128",  # another wrapper's egress address
        "127.77.255.255:443",
        "127.78.0.1:52100",  # the address of a listener
        "0.0.0.0:5432",  # to connect(2), this machine
        "[::]:5432",
        "224.0.0.1:5432",
        "239.255.255.255:5432",
        "[ff02::1]:5432",
        "[::ffff:10.0.0.5]:5432",  # leaves as IPv4, which the rules for IPv6 never see
        "[::ffff:127.77.0.5]:3128",
        "[::10.0.0.5]:5432",
    ],
    value_parsers.parent: [
        "",
        "10.0.0.1",
        "proxy.example:3128",  # a name would have to be resolved before Squid is reached
        "https://10.0.0.1:3128",
        "http://10.0.0.1",
        "http://10.0.0.1:3128/",
        "http://me:pw@10.0.0.1:3128",
        "http://http://10.0.0.1:3128",
        "127.77.0.5:3128",
        "0.0.0.0:3128",
        "224.0.0.1:3128",
    ],
    value_parsers.egress: [
        "",
        "@",
        "@NPM",
        "@npm ",
        "@npm:443",
        "@@npm",
        "@crates",
        "npm",
        "1.2.3.4",
    ],
    value_parsers.request: [
        "",
        "GET",
        "api.example.com/v1",
        "GET api.example.com",  # every path is `/*`
        "GET  api.example.com/v1",
        "GET api.example.com /v1",
        "GET api.example.com/v1 x",
        "GET api.example.com/v1\n",
        "get api.example.com/v1",
        "GET, HEAD api.example.com/v1",
        "GET,,HEAD api.example.com/v1",
        ",GET api.example.com/v1",
        "GET, api.example.com/v1",
        "GE* api.example.com/v1",
        "*,GET api.example.com/v1",
        "CONNECT api.example.com/v1",  # a tunnel, whose content would not be judged
        "TRACE api.example.com/v1",
        "GET https://api.example.com/v1",
        "GET *.example.com/v1",
        "GET api.example.com:443/v1",
        "GET API.example.com/v1",
        "GET 10.0.0.5/v1",
        "GET localhost/v1",
        "GET api.example.com/v1?q=1",
        "GET api.example.com/v1#a",
        "GET api.example.com/%76",
        "GET api.example.com/a;b",
        "GET api.example.com/a\\b",
        'GET api.example.com/a"b',
        "GET api.example.com/a{2}",
        "GET api.example.com/a|b",
        "GET api.example.com/[a-z]",
        "GET api.example.com/^a",
        "GET api.example.com/é",
        "GET api.example.com/../a",
        "GET api.example.com/a/..",
        "GET api.example.com//a",
    ],
    value_parsers.inherited: [
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "LD_AUDIT",
        "NODE_OPTIONS",
        "NODE_PATH",
        "NODE_EXTRA_CA_CERTS",
        "NPM_CONFIG_REGISTRY",
        "npm_config_registry",  # npm's own spelling; npm ignores case
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
    quantities.size_bytes: [
        "",
        "G",
        "1",
        "1g",
        "1 G",
        "1.5G",
        "-1G",
        "16777216K\n",
        "1000000M",
        "0G",
    ],
    quantities.percent: [
        "",
        "%",
        "0%",
        "050%",
        "-5%",
        "+5%",
        "1.5%",
        "150",
        "150 %",
        "150%\n",
        "٣%",  # an Arabic three
        "20001%",
        "1000000%",
    ],
    quantities.idle_s: [
        "",
        "15",
        "m",
        "0",
        "0s",  # at once, or never? the first is useless, and the second is `never`
        "-1s",
        "1.5h",
        "015m",
        "15 m",
        "15M",
        "1d",
        "1h30m",
        "15m\n",
        "٣m",
        "10000s",
        "Never",
    ],
    value_parsers.audit: ["", "none", "Hash", "hash\n", "hash,plain"],
    value_parsers.pins: ["", "on", "Strict", "off\n", "first_use"],
    value_parsers.relay: ["", "none", "Gate", "gate\n", "gate,direct"],
    value_parsers.secret_key: ["MCPWRAP_OAUTH_KEY", "", "a", "1A", "A-B", "A\n", "A" * 65],
    value_parsers.absolute_path: ["//", "/a//b", "/a/", "/./a", "/a/..", "a", "", "/a\0"],
    value_parsers.agent: ["", "@", "@@a", "-a", "a b", "a:b", "root", "a" * 33, "samba$"],
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
    assert value_parsers.destination(text) == destination


@pytest.mark.parametrize(
    ("text", "direct"),
    [
        ("10.0.0.5:1", Direct("10.0.0.5", 1)),
        ("[0:0::1]:65535", Direct("::1", 65535)),  # becomes the canonical spelling
        ("127.0.0.1:5432", Direct("127.0.0.1", 5432)),
        ("127.76.255.255:1", Direct("127.76.255.255", 1)),
        ("127.79.0.0:1", Direct("127.79.0.0", 1)),
        ("[fd00::FFFF:0a00:5]:1", Direct("fd00::ffff:a00:5", 1)),
    ],
)
def test_a_direct_address_is_understood(text: str, direct: Direct) -> None:
    assert value_parsers.direct(text) == direct


@pytest.mark.parametrize(
    ("text", "parent"),
    [
        ("10.0.0.1:3128", Direct("10.0.0.1", 3128)),
        ("http://10.0.0.1:3128", Direct("10.0.0.1", 3128)),  # as in https_proxy
        ("http://[fd00::1]:80", Direct("fd00::1", 80)),
    ],
)
def test_a_parent_is_understood(text: str, parent: Direct) -> None:
    assert value_parsers.parent(text) == parent


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("@npm", Group("npm")),
        ("@pypi", Group("pypi")),
        ("npm.example", Destination("npm.example", 443, with_subdomains=False)),
        ("*.pypi.example:8443", Destination("pypi.example", 8443, with_subdomains=True)),
    ],
)
def test_an_entry_of_egress_is_understood(text: str, entry: Destination | Group) -> None:
    assert value_parsers.egress(text) == entry


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ("GET api.example.com/", AllowedRequest(("GET",), "api.example.com", "/")),
        (
            "GET,POST api.example.com/v1/*/x.json",
            AllowedRequest(("GET", "POST"), "api.example.com", "/v1/*/x.json"),
        ),
        (
            "* api.example.com/*",
            AllowedRequest(
                ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"),  # and no CONNECT
                "api.example.com",
                "/*",
            ),
        ),
        (
            "DELETE a.xn--bcher-kva.example/~a.b_c!$&'()*+,=:@-/",
            AllowedRequest(("DELETE",), "a.xn--bcher-kva.example", "/~a.b_c!$&'()*+,=:@-/"),
        ),
    ],
)
def test_a_request_is_understood(text: str, request_: AllowedRequest) -> None:
    assert value_parsers.request(text) == request_


@pytest.mark.parametrize("name", ["TZ", "LC_ALL", "TERM", "PROJECT", "PATHS", "MY_HOME", "_"])
def test_what_is_not_refused_may_be_inherited_with_any_value(name: str) -> None:
    assert value_parsers.inherited_any(name) == name


@pytest.mark.parametrize("kind", environment.KINDS.values())
def test_what_is_of_a_kind_may_be_inherited(kind: environment.VariableKind) -> None:
    for name in kind.names:
        assert value_parsers.inherited(name) == name
        assert not value_parsers.may_steer(name)


@pytest.mark.parametrize("name", STEERING)
def test_what_steers_some_program_is_known(name: str) -> None:
    assert value_parsers.may_steer(name)


@pytest.mark.parametrize(
    ("text", "size_bytes"), [("16384K", 2**24), ("512M", 2**29), ("1G", 2**30), ("1T", 2**40)]
)
def test_a_size_is_understood(text: str, size_bytes: int) -> None:
    assert quantities.size_bytes(text) == size_bytes


@pytest.mark.parametrize(("text", "percent"), [("1%", 1), ("150%", 150), ("20000%", 20_000)])
def test_a_share_of_a_processor_is_understood(text: str, percent: int) -> None:
    assert quantities.percent(text) == percent


@pytest.mark.parametrize(
    ("text", "idle_s"),
    [("1s", 1), ("90s", 90), ("15m", 900), ("8h", 28_800), ("9999h", 35_996_400), ("never", 0)],
)
def test_a_time_without_sessions_is_understood(text: str, idle_s: int) -> None:
    assert quantities.idle_s(text) == idle_s


@pytest.mark.parametrize("text", ["gate", "direct"])
def test_a_relay_is_understood(text: str) -> None:
    assert value_parsers.relay(text) == text


@pytest.mark.parametrize("text", ["first-use", "strict", "off"])
def test_how_definitions_are_accepted_is_understood(text: str) -> None:
    assert value_parsers.pins(text) == text


@pytest.mark.parametrize("path", ["/a", "/home/alice/a b", "/é", "/a/..b"])
def test_a_path_stays_as_it_is_written(path: str) -> None:
    assert value_parsers.absolute_path(path) == path
