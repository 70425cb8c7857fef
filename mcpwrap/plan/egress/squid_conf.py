"""Squid configuration: one listener for each server, with its own allowlist.

The common part, with the reasons, is squid/common.conf. Names of access lists begin with `s.`, so
that no server has the name of one of Squid's own. The order matters: names come before addresses,
so that a refused name is never resolved.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, product
from operator import add

from mcpwrap.config.model import AllowedRequest, Destination, Direct
from mcpwrap.core.names import EGRESS_PORT, health_address
from mcpwrap.plan import paths

# MAXTCPLISTENPORTS in Squid is 128: beyond it, ports are left out without a message. One of them is
# the address at which Squid is probed.
MAX_LISTENERS = 127

# By these a host may act on another method, path or host than those that were judged. Squid removes
# headers by their whole names and has no patterns for them, so each is listed.
_METHOD_HEADERS = """
    X-HTTP-Method-Override X-HTTP-Method X-Method-Override X-Method X-Override-Method
    X-HTTP-Override X-HTTP-Verb X-Original-Method X-Request-Method X-Real-Method X-Rewrite-Method
    X-Envoy-Original-Method HTTP-Method-Override Method-Override
    X-RestLi-Method
"""
_PATH_HEADERS = """
    X-Original-URL X-Original-URI X-Original-Path X-Original-Request-URI X-MS-Original-URL
    X-Rewrite-URL X-Rewrite-URI X-Rewrite-Path X-Rewritten-URL X-Override-URL X-Override-URI
    X-Real-URL X-Real-URI X-Real-Path X-Request-URL X-Request-URI X-Request-Path X-Replaced-Path
    X-Envoy-Original-Path X-Envoy-Original-Url X-WAWS-Unencoded-URL X-Proxy-URL X-URL
    X-URI X-Path X-Path-Info X-Script-Name X-HTTP-Path-Override X-HTTP-DestinationURL
    X-HTTP-Destination-URL Proxy-URL Request-URI Base-URL HTTP-URL URI URL Redirect X-Matched-Path
    X-Invoke-Path X-Middleware-Rewrite X-Middleware-Subrequest
"""
_HOST_HEADERS = """
    X-Original-Host X-Rewrite-Host X-Host X-Real-Host X-HTTP-Host-Override X-Host-Override
    X-Override-Host X-Envoy-Original-Host X-Envoy-Original-Dst-Host X-Proxy-Host X-Server-Name
    X-Backend-Host X-ARR-SSL X-ARR-LOG-ID X-ARR-ClientCert X-ARR-Original-URL X-ARR-Original-Host
    Proxy-Host Forwarded X-Forwarded Forwarded-For Forwarded-Host Forwarded-Proto
"""
_FORWARDED = """
    Access-Token App-Path Base BasePath Base-Path By Client Client-Cert Client-IP Context Email
    Escaped-Path For For-Original Groups Host Host-Override Http-Host HTTPS IP Location Method
    Original-URI Original-URL Path PathBase Path-Base Path-Info Port Preferred-Username Prefix
    Proto Protocol Proto-Version Query Query-String Remote-User Request-URI Root Scheme
    Script-Name Server Server-Name Service Ssl SSL-Client-Cert TLS-Client-Cert
    TLS-Client-Cert-Info TlsVersion URI URL User
"""
OVERRIDE_HEADERS = (
    *_METHOD_HEADERS.split(),
    *_PATH_HEADERS.split(),
    *_HOST_HEADERS.split(),
    *(f"X-Forwarded-{end}" for end in _FORWARDED.split()),
)
# By these, object stores copy from another path than the judged one. They are refused, not removed:
# without them a copy would be an upload of nothing.
SOURCE_HEADERS = (
    "X-Amz-Copy-Source", "X-Goog-Copy-Source", "X-MS-Copy-Source", "X-MS-Rename-Source",
    "X-OSS-Copy-Source", "X-Copy-From", "X-Symlink-Target", "X-Object-Manifest",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SquidListener:
    """Squid listener of one server, with its allowlist."""

    name: str
    address: str  # its own, on loopback
    hosts: tuple[Destination, ...]
    requests: tuple[AllowedRequest, ...] = ()


def spliced(instance: str, listeners: Sequence[SquidListener], parent: Direct | None) -> str:
    """Return the configuration of an instance that sees names, and never content."""
    return _whole(_common(instance, listeners), listeners, _splice, parent)


def intercepted(
    instance: str, listeners: Sequence[SquidListener], parent: Direct | None, certgen: str
) -> str:
    """Return the configuration of an instance that opens TLS, and judges each request.

    `certgen` is the path of Squid's helper that makes certificates.
    """
    lines = _common(instance, listeners)
    # Without this folder mcpwrap-squid has the helper make it, by this line.
    lines.append(f"sslcrtd_program {certgen} -s {paths.certificates(instance)} -M 4MB")
    lines.append(f"include {paths.SQUID}/intercept.conf")
    lines += _judge_headers(listeners)
    return _whole(lines, listeners, _intercept, parent)


def ports(text: str) -> frozenset[str]:
    """Return the addresses and ports at which an instance with this configuration listens."""
    return frozenset(re.findall(r"^http_port (\S+) ", text, re.MULTILINE))


def _common(instance: str, listeners: Sequence[SquidListener]) -> list[str]:
    ports = sorted({host.port for listener in listeners for host in listener.hosts})
    return [
        f"include {paths.SQUID}/common.conf",
        # Where mcpwrap-squid probes Squid. All requests are refused there, by this rule too, should
        # a server's rules ever fail to name their listener. And nothing is logged.
        f"http_port {health_address(instance)}:{EGRESS_PORT} name=_health",
        "acl to_health myportname _health",  # no server has this name
        "http_access deny to_health",
        f"access_log stdio:{paths.access_log(instance)} logformat=mcpwrap !to_health",
        *(f"acl port.{port} port {port}" for port in ports),
    ]


def _whole(
    lines: list[str],
    listeners: Sequence[SquidListener],
    judge: Callable[[SquidListener, Direct | None], Iterator[str]],
    parent: Direct | None,
) -> str:
    for listener in listeners:
        lines += ["", *judge(listener, parent)]
    if parent:
        host = f"[{parent.address}]" if ":" in parent.address else parent.address
        peer = f"cache_peer {host} parent {parent.port} 0 no-query no-digest default name=parent"
        lines += ["", peer, "never_direct allow all"]
    return "\n".join([paths.WRITTEN.rstrip(), *lines, "", f"include {paths.SQUID}/last.conf", ""])


def _splice(listener: SquidListener, parent: Direct | None) -> Iterator[str]:
    own = f"s.{listener.name}"
    yield _port(listener, paths.SPLICE_CA, "generate-host-certificates=off")
    yield from _who_and_where(listener)
    yield f"http_access deny {own} !CONNECT r.plain-http"
    yield from _judge_connect(own, "", parent)
    yield from _judge_tls(listener, "splice")


def _intercept(listener: SquidListener, parent: Direct | None) -> Iterator[str]:
    own = f"s.{listener.name}"
    options = "generate-host-certificates=on dynamic_cert_mem_cache_size=256KB"
    yield _port(listener, listener.name, options)
    yield from _who_and_where(listener)
    # Inside the tunnel nothing leads out of it again, and no scheme but https is spoken.
    yield f"http_access deny {own} CONNECT encrypted r.nested-connect"
    yield f"http_access deny {own} !CONNECT !encrypted r.plain-http"
    yield f"http_access deny {own} !CONNECT !https_url r.plain-http"
    yield from _judge_connect(own, "CONNECT ", parent)
    yield f"http_access deny {own} !{own}.host r.host-not-allowed"
    yield f"http_access deny {own} !{own}.listed r.port-not-allowed"
    # Else a request could be judged by the rules for one host, and arrive at another.
    yield f"http_access deny {own} !{own}.same r.host-not-in-tunnel"
    yield f"http_access deny {own} bad_path r.ambiguous-path"
    if not parent:
        yield f"http_access deny {own} to_private r.private-address"
    yield from _judge_requests(listener)
    yield from _judge_tls(listener, "bump")
    for name in ("websocket", "WebSocket"):  # its case matters
        yield f"http_upgrade_request_protocols {name} allow {own}"


def _judge_headers(listeners: Sequence[SquidListener]) -> Iterator[str]:
    """Remove override headers for listeners with `requests`, and match those that name a source."""
    judged = [listener.name for listener in listeners if listener.requests]
    if not judged:
        return
    yield from (f"acl lists_requests myportname {name}" for name in judged)
    for header in OVERRIDE_HEADERS:
        for name in _spellings(header):
            yield f"request_header_access {name} deny lists_requests"
    for name in chain.from_iterable(map(_spellings, SOURCE_HEADERS)):
        yield f"acl has.{name} req_header {name} ."
        yield f"acl has_source any-of has.{name}"


def _spellings(header: str) -> Iterator[str]:
    """Yield the header with `-` and `_` in each place: CGI and WSGI read both as `_`."""
    first, *rest = header.split("-")
    for separators in product("-_", repeat=len(rest)):
        yield first + "".join(map(add, separators, rest))


def _port(listener: SquidListener, ca: str, options: str) -> str:
    certificate = f"tls-cert={paths.ca_certificate(ca)} tls-key={paths.ca_key(ca)}"
    where = f"{listener.address}:{EGRESS_PORT}"
    return f"http_port {where} name={listener.name} ssl-bump {certificate} {options}"


def _who_and_where(listener: SquidListener) -> Iterator[str]:
    own = f"s.{listener.name}"
    yield f"acl {own} myportname {listener.name}"
    yield f"acl {own}.name annotate_client server={listener.name}"
    for number, host in enumerate(listener.hosts):
        if host.with_subdomains:
            # `.example.org` is example.org too, and `*.example.org` is not.
            yield f"acl {own}.tree{number} dstdomain -n {_tree(host)}"
            yield f"acl {own}.top{number} dstdomain -n {host.host}"
            yield f"acl {own}.host{number} all-of {own}.tree{number} !{own}.top{number}"
        else:
            yield f"acl {own}.host{number} dstdomain -n {host.host}"
        yield f"acl {own}.entry{number} all-of {own}.host{number} port.{host.port}"
        # Each line adds one; a line with all of them could be longer than Squid reads.
        yield f"acl {own}.host any-of {own}.host{number}"
        yield f"acl {own}.listed any-of {own}.entry{number}"
        # The name in TLS must be the requested name: an entry admits both, or neither.
        yield f"acl {own}.sni{number} ssl::server_name --client-requested {_tree(host)}"
        same = f"acl {own}.same{number} all-of {own}.host{number} {own}.sni{number}"
        if host.with_subdomains:
            yield f"acl {own}.sni-top{number} ssl::server_name --client-requested {host.host}"
            same += f" !{own}.sni-top{number}"
        yield same
        yield f"acl {own}.same any-of {own}.same{number}"
    if not listener.hosts:  # its packages come from a folder of this machine
        yield from (f"acl {own}.{part} all-of !all" for part in ("host", "listed", "same"))
    yield f"http_access deny {own} {own}.name !all"  # adds a note, and the next line is evaluated


def _judge_connect(own: str, kind: str, parent: Direct | None) -> Iterator[str]:
    """Allow with a note: last.conf describes the effect of the note."""
    yield f"http_access allow {own} {kind}!{own}.host r.host-not-allowed"
    yield f"http_access allow {own} {kind}!{own}.listed r.port-not-allowed"
    if not parent:  # behind one, names may not resolve here at all, and it checks addresses
        yield f"http_access allow {own} {kind}to_private r.private-address"
    yield f"http_access allow {own} {kind}r.allowed"


def _judge_tls(listener: SquidListener, action: str) -> Iterator[str]:
    own = f"s.{listener.name}"
    yield f"ssl_bump none {own} !judged_good"
    yield f"ssl_bump peek {own} step1"
    yield f"ssl_bump {action} {own} step2 note_sni !without_sni {own}.same"
    yield f"ssl_bump terminate {own} r.sni-not-allowed"


def _tree(host: Destination) -> str:
    return f".{host.host}" if host.with_subdomains else host.host


def _judge_requests(listener: SquidListener) -> Iterator[str]:
    own = f"s.{listener.name}"
    if not listener.requests:
        yield f"http_access allow {own} r.allowed"
        return
    yield f"http_access deny {own} has_source r.no-request-rule"
    for number, request in enumerate(listener.requests):
        rule = f"{own}.{number}"
        yield f"acl {rule}.host dstdomain -n {request.host}"
        yield f"acl {rule}.method method {' '.join(request.methods)}"
        yield f"acl {rule}.path urlpath_regex {_pattern(request.path)}"
        yield f"http_access allow {own} {rule}.host {rule}.method {rule}.path r.allowed"
    yield f"http_access deny {own} r.no-request-rule"


def _pattern(path: str) -> str:
    """Return the regular expression for a glob: POSIX extended, the path whole, any query.

    A `*` before more text matches no `;`: to a host with path parameters (RFC 3986, section 3.3)
    `/a;.json` is `/a`, which `/*.json` does not name.
    """
    literal = [re.sub(r"([.$()+^|{}\[\]\\])", r"\\\1", part) for part in path.split("*")]
    *before, last = literal
    stars = ["[^?;]*"] * len(before)
    if before and not last:
        stars[-1] = "[^?]*"
    return f"^{''.join(map(add, before, stars))}{last}(\\?|$)"
