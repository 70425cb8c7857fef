"""Topics "HTTP": latency of a remote server directly, through mcpwrap and through other proxies.

RUNS AS ROOT on the host. Alone: `python -m benchmarks.http`.
"""

import json
import random
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import msgspec

from benchmarks import http_client as client
from benchmarks import memory
from benchmarks.bench_machine import AGENT, INSIDE, OTHER, Prepared, prepared
from benchmarks.rows import Of, Row, Target, at_most, print_tables
from tests.system.bed import roots
from tests.system.bed.internet import Internet
from tests.system.bed.machine import Machine
from tests.system.http import remote

HERE = Path(__file__).parent
NAME = "elsewhere"
CONFIG = remote.a_url(NAME, remote.ODD)
# What each is called; the first is what the others are held against.
WAYS = {
    "direct": "direct",
    "mcpwrap": "mcpwrap",
    "modern": "mcpwrap, requests of 2026-07-28",
    "fastmcp": "fastmcp, create_proxy",
    "mcp-proxy": "mcp-proxy, to stdio and back",
}
# Not by requests of 2026-07-28: each under way has a session to itself, and 16 are allowed.
IN_CROWDS = ("direct", "mcpwrap", "fastmcp", "mcp-proxy")
PORTS = {"fastmcp": 18101, "mcp-proxy": 18102}
VENVS = "/opt/http-peers"
BEARER = f"Bearer {remote.TOKEN}"
TRUST = "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"  # the bed's authority is there
PROGRAMS = {
    **memory.PROGRAMS,
    "listener": "/usr/libexec/mcpwrap/mcpwrap-http",
    "server": "/usr/libexec/mcpwrap/mcpwrap-remote",
    "fastmcp": f"{INSIDE}/http_proxy.py",
    "mcp-proxy": f"{VENVS}/mcp-proxy/bin/mcp-proxy",
}
MEMORY = "HTTP: memory, proportional set size (PSS)"
MORE = 8  # sessions that are added to one
ROUNDS = {"hot": 10, "sparse": 10, "stream": 10}
CROWDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One table of the HTTP client's measurements: topic, source, percentile and target."""

    topic: str
    what: str
    found: str
    is_p99: bool = False
    target: Target | None = None  # for both ways through mcpwrap


METRICS = (
    Metric(
        topic="HTTP: small POST, back to back, p50", what="hot", found="took",
        target=at_most(0.6, Of.ADDED),
    ),
    Metric(topic="HTTP: small POST, back to back, p99", what="hot", found="took", is_p99=True),
    Metric(
        topic="HTTP: small POST, 10 ms between calls, p50", what="sparse", found="took",
        target=at_most(0.6, Of.ADDED),
    ),
    Metric(
        topic="HTTP: small POST, 10 ms between calls, p99", what="sparse", found="took",
        is_p99=True,
    ),
    Metric(topic="HTTP: stream, request to first event, p50", what="stream", found="first"),
    Metric(
        topic="HTTP: stream, from an event upstream to the agent, p50", what="stream", found="late",
        target=at_most(1, Of.MEASURED),
    ),
    Metric(
        topic="HTTP: stream, from an event upstream to the agent, p99", what="stream", found="late",
        is_p99=True,
    ),
)  # fmt: skip
CROWD = f"HTTP: small POST, {client.CONNECTIONS} connections at a time"
Found = dict[str, dict[str, list[float]]]


def measure(prepared: Prepared) -> list[Row]:
    """Return the rows of all topics."""
    machine = prepared.machine
    with Internet(machine) as internet:
        _add_ways(machine)
        ways = _ways(machine)
        found: dict[str, Found] = {}
        for what, rounds in ROUNDS.items():
            internet.forget()  # it writes all down
            found[what] = _visit(machine, what, ways, rounds)
        rows = [row for metric in METRICS for row in _rows(metric, found[metric.what])]
        return [*rows, *_crowds(machine, ways), *_memory(machine, ways)]


def _add_ways(machine: Machine) -> None:
    """Add the server elsewhere, and start the proxies of others."""
    machine.write(f"/etc/mcpwrap/conf.d/{NAME}.toml", CONFIG)
    machine.apply()
    remote.set_secret(machine, NAME, "TOKEN", remote.TOKEN)
    for script in ("http_client.py", "http_proxy.py"):
        machine.write(f"{INSIDE}/{script}", (HERE / script).read_text())
    quiet = ["--log-level", "ERROR"]
    inner = [PROGRAMS["mcp-proxy"], *quiet, "--transport", "streamablehttp"]
    inner += ["-H", "Authorization", BEARER]
    arguments = {
        "fastmcp": [
            f"{VENVS}/fastmcp/bin/python",
            PROGRAMS["fastmcp"],
            remote.ODD,
            remote.TOKEN,
        ],
        "mcp-proxy": [PROGRAMS["mcp-proxy"], "--pass-environment", *quiet],
    }
    arguments["fastmcp"] += [str(PORTS["fastmcp"])]
    arguments["mcp-proxy"] += ["--port", str(PORTS["mcp-proxy"]), "--", *inner, remote.ODD]
    for peer, argv in arguments.items():
        run = f"systemd-run --quiet --unit={peer} --uid={OTHER} --setenv={TRUST}"
        machine.as_root(f"{run} {shlex.join(argv)}")
        url = f"http://127.0.0.1:{PORTS[peer]}/"
        machine.as_root(f"timeout 60 sh -c 'until curl -s -o /dev/null {url}; do sleep 0.2; done'")


def _ways(machine: Machine) -> dict[str, dict[str, Any]]:
    """Return where each way begins."""
    ours = {"url": remote.url(machine, NAME, AGENT) + "mcp", "headers": {}}
    ways: dict[str, dict[str, Any]] = {
        "direct": {
            "url": remote.ODD,
            "headers": {"Authorization": BEARER},
            "is_modern": False,
        },
        "mcpwrap": {**ours, "is_modern": False},
        "modern": {**ours, "is_modern": True},
    }
    for peer, port in PORTS.items():
        url = f"http://127.0.0.1:{port}/mcp"
        ways[peer] = {"url": url, "headers": {}, "is_modern": False}
    return ways


def _visit(machine: Machine, what: str, ways: Mapping[str, Any], rounds: int) -> Found:
    told = json.dumps({"what": what, "ways": ways, "rounds": rounds})
    done = machine.as_user(AGENT, f"/usr/bin/python3 {INSIDE}/http_client.py", stdin=told)
    return msgspec.json.decode(done.out, type=Found)


def _rows(metric: Metric, found: Found) -> list[Row]:
    """Return a table in milliseconds; who passes on no events is not in it."""
    value = {way: _value(metric, found_s) for way in WAYS if (found_s := found[way][metric.found])}
    return [
        Row(
            topic=metric.topic, what=WAYS[way], unit="ms", measured=value[way],
            base_name="direct", base=value["direct"] if way != "direct" else None,
            target=metric.target if way in {"mcpwrap", "modern"} else None,
        )
        for way in value
    ]  # fmt: skip


def _value(metric: Metric, found_s: list[float]) -> float:
    return 1e3 * (quantiles(found_s, n=100)[98] if metric.is_p99 else median(found_s))


def _crowds(machine: Machine, ways: Mapping[str, Any]) -> list[Row]:
    """Return the table of many at a time, each way by a client of its own, in turn."""
    each_s: dict[str, list[float]] = {way: [] for way in IN_CROWDS}
    for way in [way for _ in range(CROWDS) for way in random.sample(IN_CROWDS, len(IN_CROWDS))]:
        each_s[way] += _visit(machine, "crowd", {way: ways[way]}, 1)[way]["each"]
    value = {way: 1 / median(found) for way, found in each_s.items()}
    return [
        Row(
            topic=CROWD, what=WAYS[way], unit="calls/s", measured=value[way],
            base_name="direct", base=value["direct"] if way != "direct" else None,
        )
        for way in IN_CROWDS
    ]  # fmt: skip


def _memory(machine: Machine, ways: Mapping[str, Any]) -> list[Row]:
    """Return what is held with one session, and what eight more add, by eight."""
    machine.as_root("systemctl --quiet stop 'mcpwrap@*.service' 'mcpwrap-http@*.service'")
    kept = {way: ways[way] for way in ("mcpwrap", *PORTS)}
    _visit(machine, "leave", kept, 1)
    one = memory.pss_mb(machine, PROGRAMS)
    for _ in range(MORE):
        _visit(machine, "leave", kept, 1)
    many = memory.pss_mb(machine, PROGRAMS)
    more = {who: (many[who] - one[who]) / MORE for who in PROGRAMS}
    value = {
        "mcpwrap: the listener": one["listener"],
        "mcpwrap: the wrapper": one["wrapper"],
        "mcpwrap: the program that speaks to the server, one session": one["server"],
        "mcpwrap: one more session, listener": more["listener"],
        "mcpwrap: one more session, gate and wrapper": more["gate"] + more["wrapper"],
        "mcpwrap: one more session, the program that speaks to the server": more["server"],
        "fastmcp: all of it, one session": one["fastmcp"],
        "fastmcp: one more session": more["fastmcp"],
        "mcp-proxy: all of it, one session": one["mcp-proxy"],
        "mcp-proxy: one more session": more["mcp-proxy"],
    }
    return [Row(topic=MEMORY, what=what, unit="MB", measured=mb) for what, mb in value.items()]


if __name__ == "__main__":
    roots.need_root("python -m benchmarks.http")
    with prepared() as ready:
        print_tables(measure(ready))
