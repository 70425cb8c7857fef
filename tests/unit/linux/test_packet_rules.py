"""What is in our sets, by one call of nft(8)."""

import pytest

from mcpwrap.linux import packet_rules
from mcpwrap.linux.systemd import ToolError

# As nft 1.0.6 lists the table, in part.
LISTED = """{"nftables": [{"metainfo": {"version": "1.0.6"}}, {"table": {"family": "inet"}},
{"set": {"name": "wrapped", "type": "uid", "handle": 2, "elem": [20001, 20002]}},
{"set": {"name": "own", "elem": [{"concat": [20001, "127.77.0.1"]}]}},
{"set": {"name": "direct6", "elem": [{"concat": [20001, "fd00::5", 443]}]}},
{"set": {"name": "parents4", "type": ["ipv4_addr", "inet_service"]}},
{"set": {"name": "private4", "elem": [{"prefix": {"addr": "10.0.0.0", "len": 8}}]}},
{"set": {"name": "refused_uid", "elem": [{"elem": {"val": 20001, "counter": {"packets": 1}}}]}},
{"chain": {"family": "inet", "table": "mcpwrap", "name": "out"}}]}"""


def test_all_sets_that_apply_fills_are_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, ...]] = []

    def run(*argv: str) -> str:
        calls.append(argv)
        return LISTED

    monkeypatch.setattr(packet_rules, "run", run)
    assert packet_rules.elements() == {
        ("wrapped", "20001"),
        ("wrapped", "20002"),
        ("own", "20001 . 127.77.0.1"),
        ("direct6", "20001 . fd00::5 . 443"),
    }
    assert len(calls) == 1


def test_without_the_table_there_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*argv: str) -> str:
        raise ToolError("No such file or directory", where=argv[0], fix="")

    monkeypatch.setattr(packet_rules, "run", run)
    assert packet_rules.elements() == frozenset()
