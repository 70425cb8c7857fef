"""Default policy as shipped: its JSON is of the YAML, and each rule has cases both ways."""

import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from mcpwrap.core.policy.cases import Case
from mcpwrap.core.policy.compiled import compile_policy
from mcpwrap.core.policy.rules import ArgumentCondition, Equals, Policy, Rule
from mcpwrap.machine.default_policy import shipped
from tests.project.imports import TOP
from tests.project.pages import default_policy
from tests.project.pages.default_policy import breaches, main
from tests.shared.definitions import corpora

ASK = Rule(
    name="default.ask", since="0.2.0", tools=("drop",), action="allow_with_approval", message="No."
)


def case(tool: str, *, decides: bool, server: str = "s") -> Case:
    return Case(
        name=tool,
        server=server,
        method="tools/call",
        params={"name": tool, "arguments": {}},
        expect="needs-approval" if decides else "allow",
        rule=ASK.name if decides else None,
    )


DROPS, READS = case("drop", decides=True), case("read", decides=False)


def found(rule: Rule, *cases: Case) -> list[str]:
    return [breach.problem for breach in breaches(Policy(rules=(rule,)), cases)]


def test_the_shipped_files_agree_and_each_rule_has_its_cases() -> None:
    assert main(["--check"]) == 0
    assert shipped.load() == default_policy.policy_of(TOP)


def test_what_is_missing_is_named() -> None:
    assert found(ASK, DROPS, READS) == []
    assert found(ASK, READS) == ["default.ask has no case that it decides"]
    assert found(ASK, DROPS) == ["default.ask has no case that it leaves alone"]
    elsewhere = case("read", decides=False, server="other")
    assert found(ASK, DROPS, elsewhere) == ["default.ask has no case that it leaves alone"]
    assert found(replace(ASK, since=""), DROPS, READS) == ["default.ask: not supported"]
    assert found(replace(ASK, action="log"), DROPS, READS)[:1] == ["default.ask: not supported"]
    unsure = replace(ASK, when=(ArgumentCondition("x", Equals("1"), "1"),))
    assert found(unsure, DROPS, READS)[:1] == ["default.ask: not supported"]
    wrong = found(ASK, DROPS, READS, case("keep", decides=True))
    assert wrong == ["keep: expected needs-approval by default.ask, got allow by the default"]


def test_the_json_is_written_and_then_current(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(TOP / default_policy.FOLDER, tmp_path / default_policy.FOLDER)
    target = tmp_path / default_policy.FOLDER / shipped.ENCODED
    target.write_text("{}\n")
    assert main(["--check", "--tree", str(tmp_path)]) == 1
    assert "not that of the YAML; run `make default-policy`" in capsys.readouterr().err
    main(["--tree", str(tmp_path)])
    assert target.read_bytes() == (TOP / default_policy.FOLDER / shipped.ENCODED).read_bytes()


def test_of_the_recorded_servers_only_tools_that_destroy_ask() -> None:
    """Of 25 real servers; not those that edit a document or a graph, nor those with a trash."""
    policy = shipped.extended(Policy())
    found = {
        f"{name} {tool}"
        for name, server in corpora.real_servers().items()
        for tool in server.names()
        for rule in compile_policy(policy, name).default_rules_for_tool(tool)
        if not rule.conditions
    }
    assert found == {
        "atlassian jira_delete_issue",
        "mongodb delete-many",
        "mongodb drop-collection",
        "mongodb drop-database",
    }
