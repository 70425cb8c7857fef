"""The policies that the gate and its peers are measured with."""

from collections.abc import Iterator

from mcpwrap.core.policy.default_policy import short_names
from mcpwrap.machine.default_policy import shipped

POLICED, LIMITED, MANY_RULES, DEFAULTED = "policed", "limited", "many-rules", "defaulted"
SERVERS = (POLICED, LIMITED, MANY_RULES, DEFAULTED)
# All servers of the machine but `DEFAULTED`: what they are measured with has no default policy.
_OTHERS = (
    POLICED, LIMITED, MANY_RULES, "warm", "cold", "gated", "idle", "sealed", "direct", "runs",
    "hub*", "bighub", "m?", "pinned", "unpinned",
)  # fmt: skip
HOW_MANY = 50
# As an operator may write it. The calls of load.c meet `no-keys-out` and all that is in `results`.
_TYPICAL = """\
version: 1
limits:
  # None is reached: what is measured is that they are asked. A rate would be, on a fast machine.
  - {server: limited, identical_calls: 1000000, failures: 10}
rules:
  - {name: no-deleting, server: [policed, limited], tool: [delete_*, drop_*], action: hide}
  - name: no-unbounded-select
    server: [policed, limited]
    tool: read_query
    when: [{arg: query, sql: unbounded_select}]
    action: block
    message: Add a LIMIT.
  - name: in-the-project
    server: [policed, limited]
    tool: [read_*file, write_file]
    when: [{arg: path, not: {inside: /home/alice/project}}]
    action: block
  - name: no-keys-out
    server: [policed, limited]
    tool: "*"
    when: [{arg: text, matches: 'BEGIN [A-Z ]*PRIVATE KEY|AKIA[0-9A-Z]{16}|ghp_[A-Za-z0-9]{36}'}]
    action: block
"""
_DEFAULT_LIMITS = """\
  # In the place of the default policy's: all of its mechanisms but the rate.
  - {server: defaulted, identical_calls: 1000000, repeated_calls: 1000000, scope: session}
"""
_RESULTS = """\
results:
  - {name: not-too-long, server: [policed, limited], max_bytes: 4M}
  - {name: nothing-hidden, server: [policed, limited], control_characters: remove}
  - name: no-keys-back
    server: [policed, limited]
    redact: ['-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*', 'AKIA[0-9A-Z]{16}']
"""

# What mcp-firewall writes with `init`, but for its limit of 200 calls a minute and its default.
FIREWALL = """\
version: 1
defaultAction: allow
globalRateLimit: {maxCalls: 100000000, windowSeconds: 60}
security:
  injectionDetection: {enabled: true, sensitivity: medium}
  egressControl: {enabled: true, blockPrivateIPs: true, blockCloudMetadata: true}
responseScanning: {detectSecrets: true, detectPII: false}
rules:
  - {name: block-ssh-keys, tool: "*", match: {arguments: {path: "**/.ssh/**"}}, action: deny}
  - {name: block-env-files, tool: "*", match: {arguments: {path: "**/.env*"}}, action: deny}
  - {name: block-credentials, tool: "*", match: {arguments: {path: "**/.aws/**"}}, action: deny}
  - {name: approve-shell, tool: "shell_exec|run_command|execute_command|bash", action: prompt}
  - {name: allow-reads, tool: "read_file|get_file_contents|view_file|list_directory", action: allow}
audit: {enabled: true, path: mcp-firewall.audit.jsonl}
"""
# The one has a policy of its own, which it says to use.
PEERS = {
    "agentguard": "/opt/peers/bin/agentguard run --audit-log agentguard.$$.jsonl",
    "firewall": "/opt/peers/bin/mcp-firewall wrap --config /opt/bench/firewall.yaml",
}


def policy() -> str:
    """Return the policy of the machine, for versions that have a default policy."""
    limits = f"limits:\n{_DEFAULT_LIMITS}"
    return "".join([policy_before_defaults().replace("limits:\n", limits), *_disabled()])


def policy_before_defaults() -> str:
    """Return the policy of the machine, for versions without a default policy."""
    many = "".join(map(_rule, range(HOW_MANY)))
    return f"{_TYPICAL}{many}{_RESULTS}"


def _disabled() -> Iterator[str]:
    """Yield the lines that leave the default policy to one server, but for its rate."""
    yield "default_policy:\n  disabled:\n"
    for name in short_names(shipped.load()):
        servers = (*_OTHERS, DEFAULTED) if name == "limits" else _OTHERS
        yield f"    - {{rule: {name}, server: [{', '.join(map(repr, servers))}]}}\n"


def _rule(number: int) -> str:
    """Return one of many rules, each with a pattern of its own for the same argument."""
    pattern = f"(?i)(secret|token)_{number:02}[a-z]* *[:=] *[a-z0-9]{{{number % 7 + 8}}}"
    return f"""\
  - name: pattern-{number}
    server: {MANY_RULES}
    tool: "*"
    when: [{{arg: text, matches: '{pattern}'}}]
    action: block
"""
