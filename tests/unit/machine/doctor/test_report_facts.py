"""Facts for a bug report, from the output of systemctl, journalctl and Squid."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mcpwrap.core.bug_report import JournalEntry
from mcpwrap.linux.systemd.systemctl import ToolError
from mcpwrap.machine.doctor import report_facts

LOG = """\
{"MESSAGE":"a","_SYSTEMD_UNIT":"mcpwrap-gate.service","__REALTIME_TIMESTAMP":"1500000"}
{"MESSAGE":[255,254],"UNIT":"mcpwrap@a.service","_SYSTEMD_UNIT":"init.scope","UNIT_RESULT":"signal"}
{"MESSAGE":null,"__REALTIME_TIMESTAMP":"0"}
{"MESSAGE":{"no":"text"}}
cut of
"""


def printing(text: str) -> Callable[..., str]:
    return lambda *_: text


def failing(*_: str) -> str:
    raise ToolError("x", where="x", fix="x", code="E-TOOL-FAILED")


def test_an_entry_is_of_the_unit_that_it_is_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_facts, "run", printing(LOG))
    assert list(report_facts.journal()) == [
        JournalEntry(unit="mcpwrap-gate.service", message="a", at_s=1.5),
        JournalEntry(unit="mcpwrap@a.service", message="", result="signal"),
        JournalEntry(unit="", message=""),
    ]


def test_units_are_those_that_systemd_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = "mcpwrap-gate.socket loaded active\nmcpwrap@a.service loaded failed\n"
    monkeypatch.setattr(report_facts, "run", printing(listed))
    monkeypatch.setattr(report_facts, "properties", lambda units, _: dict.fromkeys(units))
    assert list(report_facts.units()) == ["mcpwrap-gate.socket", "mcpwrap@a.service"]


@pytest.mark.parametrize(
    ("output", "version", "is_with_openssl"),
    [
        ("Squid Cache: Version 6.13\nconfigure options:  '--with-openssl'\n", "6.13", "yes"),
        ("Squid Cache: Version 5.7\nconfigure options:  '--with-gnutls'\n", "5.7", "no"),
    ],
)
def test_squid_states_version_and_features(
    monkeypatch: pytest.MonkeyPatch, output: str, version: str, is_with_openssl: str
) -> None:
    monkeypatch.setattr(report_facts, "run", printing(output))
    found = report_facts.versions()
    assert (found["Squid"], found["Squid with OpenSSL"]) == (version, is_with_openssl)


def test_without_its_tools_a_machine_has_few_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_facts, "run", failing)
    found = report_facts.versions()
    assert [found[name] for name in ("systemd", "nft", "Squid")] == ["", "", ""]
    assert found["kernel"]


@pytest.mark.parametrize(
    ("file", "version"),
    [("cgroup.controllers", "v2"), ("unified/x", "hybrid"), ("memory/x", "v1")],
)
def test_the_version_of_cgroups_is_that_of_the_mount(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, version: str
) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).touch()
    monkeypatch.setattr(report_facts, "_CGROUP", tmp_path)
    assert report_facts._cgroup() == version


def test_names_of_errors_and_modules_are_those_of_the_code() -> None:
    errors, modules = report_facts.own_words()
    assert {"E-DOCTOR-SESSION", "E-POLICY-FILE-MISSING", "E-REPORT-EXISTS"} <= errors
    assert {"mcpwrap/as_gate/main.py", "mcpwrap/core/bug_report.py"} <= modules
