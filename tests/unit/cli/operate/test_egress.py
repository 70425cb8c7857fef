"""Suggested egress entries: valid TOML that the configuration accepts and that allows the call."""

import msgspec
import tomli
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.cli.operate.egress import suggestion
from mcpwrap.config import value_parsers
from mcpwrap.core.egress.access_log import EgressEvent, from_kernel, from_squid, summary


def note(rule: str, destination: str, detail: str = "") -> EgressEvent:
    return EgressEvent(at=1, server="git", destination=destination, rule=rule, detail=detail)


def test_each_entry_is_under_its_key_once() -> None:
    notes = [
        note("host-not-allowed", "b.test:443"),
        note("host-not-allowed", "a.test:443"),
        note("host-not-allowed", "a.test:443"),
        note("port-not-allowed", "a.test:8443"),
        note("host-not-allowed", "203.0.113.5:443"),
        note("no-request-rule", "c.test:443", "GET c.test/v1"),
        note("allowed", "d.test:443"),
        note("plain-http", "e.test:80"),
        from_kernel("git", "10.0.0.5", "tcp", 5432, 3),
        from_kernel("git", "10.0.0.5", "udp", 5432, 3),
    ]
    text = suggestion("git", summary(notes))
    assert text == (
        "[mcp_servers.git.mcpwrap]\n"
        "# Add to what is there; look at each one first.\n"
        'direct = ["10.0.0.5:5432", "203.0.113.5:443"]\n'
        'egress = ["a.test", "a.test:8443", "b.test"]\n'
        'requests = ["GET c.test/v1"]'
    )
    assert tomli.loads(text)["mcp_servers"]["git"]["mcpwrap"].keys() == {
        "direct",
        "egress",
        "requests",
    }


def test_where_nothing_would_help_nothing_is_suggested() -> None:
    for rows in ([], summary([note("allowed", "a.test:443"), note("dns", "8.8.8.8:53/udp")])):
        said = "nothing to suggest: the configuration cannot allow a refused request of git"
        assert suggestion("git", rows) == said


PARSED = {
    "egress": value_parsers.egress,
    "direct": value_parsers.direct,
    "requests": value_parsers.request,
}
texts = st.from_regex(r'[a-z.@*\[\]:"\\\n{},/ #=-]{0,12}(\.test)?', fullmatch=True) | st.text()
RULES = ["host-not-allowed", "port-not-allowed", "private-address", "no-request-rule"]


@given(st.lists(st.tuples(st.sampled_from(RULES), texts, texts, texts), max_size=4))
def test_no_server_writes_the_configuration(asked: list[tuple[str, str, str, str]]) -> None:
    notes = []
    for rule, host, path, method in asked:
        fields = {"t": 1, "server": "git", "verdict": "deny", "rule": rule, "method": method}
        fields |= {"host": host, "port": "443", "url": f"https://{host}/{path}", "address": path}
        notes.append(from_squid(msgspec.json.encode(fields)))
    text = suggestion("git", summary(note for note in notes if note))
    if text.startswith("nothing to suggest"):
        return
    for key, entries in tomli.loads(text)["mcp_servers"]["git"]["mcpwrap"].items():
        for entry in entries:
            PARSED[key](entry)  # raises if it is not an entry
            assert not {"*", "@"} & {entry[0], entry.partition(".")[0]}
