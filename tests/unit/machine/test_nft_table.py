"""nftables table of mcpwrap among others, and the elements of its sets."""

from collections.abc import Callable

import pytest

from mcpwrap.linux.systemd.systemctl import ToolError
from mcpwrap.machine import nft_table

# As nft 1.0.6 lists each set.
LISTED = {
    "wrapped": '"elem": [20001, 20002]',
    "egress_addr": '"elem": [{"concat": [20001, "127.77.0.1"]}]',
    "direct6": '"elem": [{"concat": [20001, "fd00::5", 443]}]',
    "parents4": '"type": ["ipv4_addr", "inet_service"]',
}
COUNTED = "table inet mcpwrap {{\n\tset refused_uid {{\n\t\ttype uid\n\t\tsize 32768{}\n\t}}\n}}\n"
OURS = "table inet mcpwrap {\n\tset wrapped {\n\t\ttype uid\n\t}\n}"


def test_the_sets_that_apply_fills_are_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table as a whole has sets that servers fill."""

    def run(*argv: str) -> str:
        *_, listed, family, table, name = argv
        assert (listed, family, table) == ("set", "inet", "mcpwrap")
        what = LISTED.get(name, '"type": "uid"')
        return f'{{"nftables": [{{"metainfo": {{}}}}, {{"set": {{"name": "{name}", {what}}}}}]}}'

    monkeypatch.setattr(nft_table, "run", run)
    assert nft_table.elements() == {
        ("wrapped", "20001"),
        ("wrapped", "20002"),
        ("egress_addr", "20001 . 127.77.0.1"),
        ("direct6", "20001 . fd00::5 . 443"),
    }


@pytest.mark.parametrize(
    ("ruleset", "text"),
    [
        (f"{OURS}\n", OURS),
        (f"table inet filter {{\n\tchain a {{\n\t}}\n}}\n{OURS}\ntable inet z {{\n}}\n", OURS),
        (COUNTED.format("\t# count 1"), COUNTED.format("").rstrip("\n")),  # as nft 1.1.7 lists it
        (COUNTED.format(""), COUNTED.format("").rstrip("\n")),
        ("table inet mcpwrap2 {\n}\n", ""),
        ("", ""),
    ],
)
def test_our_table_is_found_among_others(
    monkeypatch: pytest.MonkeyPatch, ruleset: str, text: str
) -> None:
    monkeypatch.setattr(nft_table, "run", lambda *_: ruleset)
    assert nft_table.text() == text
    assert nft_table.is_loaded() == bool(text)


@pytest.mark.parametrize("read", [nft_table.elements, nft_table.text])
def test_if_nft_fails_there_is_nothing(
    monkeypatch: pytest.MonkeyPatch, read: Callable[[], object]
) -> None:
    def run(*argv: str) -> str:
        raise ToolError("No such file or directory", where=argv[0], fix="", code="E-TOOL-FAILED")

    monkeypatch.setattr(nft_table, "run", run)
    assert not read()
