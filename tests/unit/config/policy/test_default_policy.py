"""Key `default_policy`, and the file that `mcpwrap policy default` writes."""

import pytest

from mcpwrap.config.parse import SourceFile
from mcpwrap.config.policy.default_policy_file import (
    DefaultPolicyChange,
    change_of,
    changed,
    entries_about,
    known_rule,
)
from mcpwrap.config.policy.errors import PolicyError
from mcpwrap.config.policy.parse import parse_default_policy, parse_policy, parse_with_warnings
from mcpwrap.core.policy.rules import DisabledDefault, LimitsEntry, Policy, Rule
from mcpwrap.errors import UsageError

OWN = "policy.d/default-policy.yaml"
TOP = """\
# Written by `mcpwrap policy default`, which replaces this file. Write rules into another one.
version: 1
"""
DEFAULT = Policy(
    rules=(Rule(name="default.force-push", tools=("*",), action="block"),),
    limits=(LimitsEntry(calls=1),),
)
LIMITS_AT_GIT = 'default_policy:\n  disabled:\n    - {rule: limits, server: ["git"]}\n'
NAMES = ("force-push", "delete-tools", "limits")


def file(text: str, name: str = "policy.yaml") -> SourceFile:
    return SourceFile(name, f"version: 1\n{text}\n".encode())


def off(rule: str, *servers: str) -> DisabledDefault:
    return DisabledDefault(rule=rule, servers=servers or ("*",))


@pytest.mark.parametrize(
    ("texts", "has_it", "disabled"),
    [
        ([], True, ()),
        (["default_policy: enabled"], True, ()),
        (["default_policy: disabled"], False, ()),
        (["default_policy: {disabled: []}"], True, ()),
        (["default_policy: {disabled: [{rule: force-push}]}"], True, (off("force-push"),)),
        # As a refusal names it.
        (["default_policy: {disabled: [{rule: default.force-push}]}"], True, (off("force-push"),)),
        (
            ['default_policy: {disabled: [{rule: "*", server: [a, "b*"]}]}'],
            True,
            (off("*", "a", "b*"),),
        ),
        # Lists of several files add up, and a rule that an upgrade removed is no error.
        (
            [
                "default_policy: {disabled: [{rule: gone}]}",
                "default_policy: {disabled: [{rule: limits, server: git}]}",
            ],
            True,
            (off("gone"), off("limits", "git")),
        ),
        (
            ["default_policy: disabled", "default_policy: {disabled: [{rule: limits}]}"],
            False,
            (off("limits"),),
        ),
    ],
)
def test_what_files_say_of_it(
    *, texts: list[str], has_it: bool, disabled: tuple[DisabledDefault, ...]
) -> None:
    found = parse_policy([file(text, str(number)) for number, text in enumerate(texts)])
    assert found == Policy(has_default_policy=has_it, disabled=disabled)


# The `«` in each marks the flaw's position, and is not part of the file.
@pytest.mark.parametrize(
    ("text", "problem", "code"),
    [
        ("default_policy: «off-by-one", "is neither `enabled`", "E-POLICY-DEFAULT"),
        ("default_policy:«", "is neither `enabled`", "E-POLICY-DEFAULT"),
        ("default_policy: «[]", "a list where `default_policy` belongs", "E-POLICY-TYPE"),
        ("default_policy: «{}", "neither a word nor a list", "E-POLICY-DEFAULT"),
        ("default_policy: {«enabled: [], disabled: []}", "'enabled'", "E-POLICY-UNKNOWN-KEY"),
        ("default_policy: {disabled: «force-push}", "where a list belongs", "E-POLICY-TYPE"),
        ("default_policy: {disabled: [«force-push]}", "a disabled rule belongs", "E-POLICY-TYPE"),
        ("default_policy: {disabled: [«{server: a}]}", "without its name", "E-POLICY-DEFAULT"),
        ("default_policy: {disabled: [{rule: «a b}]}", "'a b'", "E-POLICY-RULE-NAME"),
        ("default_policy: {disabled: [{rule: a, «since: b}]}", "'since'", "E-POLICY-UNKNOWN-KEY"),
        (
            "rules: [{«name: default.mine, tool: t, action: log}]",
            "only the default policy has names that begin with `default.`",
            "E-POLICY-RULE-NAME",
        ),
        (
            "rules: [{name: mine, «since: 0.2.0, tool: t, action: log}]",
            "no key 'since'",
            "E-POLICY-UNKNOWN-KEY",
        ),
        ("limits: {calls: 5/s, «since: 0.2.0}", "no key 'since'", "E-POLICY-UNKNOWN-KEY"),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, problem: str, code: str) -> None:
    before, _, _ = text.partition("«")
    with pytest.raises(PolicyError) as raised:
        parse_policy([file(text.replace("«", ""))])
    flaw = raised.value.flaws[0]
    assert problem in flaw.problem
    assert (flaw.code, flaw.mark.line, flaw.mark.column) == (code, 2, len(before) + 1)


def test_the_word_stands_in_one_file() -> None:
    files = [file("default_policy: disabled", "a"), file("default_policy: enabled", "b")]
    with pytest.raises(PolicyError, match="`default_policy` is also set at a:2:1"):
        parse_policy(files)


def test_unknown_names_are_warnings_for_who_knows_the_names() -> None:
    text = 'default_policy: {disabled: [{rule: force-pull}, {rule: "*"}, {rule: limits}]}'
    found = parse_with_warnings([file(text)], NAMES)[1]
    assert [(flaw.mark.column, flaw.fix) for flaw in found] == [(30, "did you mean `force-push`?")]
    assert parse_with_warnings([file(text)])[1] == []


def test_the_default_policy_itself_has_its_prefix_and_versions() -> None:
    text = "rules: [{name: default.a, since: 0.2.0, tool: t, action: block}]"
    limits = "limits: {calls: 5/s, since: 0.3.0}"
    found = parse_default_policy(file(f"{text}\n{limits}"))
    assert (found.rules[0].name, found.rules[0].since) == ("default.a", "0.2.0")
    assert found.limits[0].since == "0.3.0"
    with pytest.raises(PolicyError, match="only the default policy"):
        parse_default_policy(file(text.replace("default.a", "a")))


def change(verb: str, rule: str = "*", server: str = "*") -> DefaultPolicyChange:
    return change_of(verb, rule, server, DEFAULT)


@pytest.mark.parametrize(
    ("before", "done", "after"),
    [
        ("", change("disable"), "default_policy: disabled\n"),
        (
            "",
            change("disable", "default.force-push", "git*"),
            'default_policy:\n  disabled:\n    - {rule: force-push, server: ["git*"]}\n',
        ),
        (
            "default_policy: {disabled: [{rule: limits, server: git}]}",
            change("disable", "force-push"),
            LIMITS_AT_GIT + "    - {rule: force-push}\n",
        ),
        # A wider entry replaces a narrower one.
        (
            "default_policy: {disabled: [{rule: force-push, server: git}]}",
            change("disable", "force-push"),
            "default_policy:\n  disabled:\n    - {rule: force-push}\n",
        ),
        (
            "default_policy: {disabled: [{rule: force-push, server: git}]}",
            change("disable", "*", "git"),
            'default_policy:\n  disabled:\n    - {rule: "*", server: ["git"]}\n',
        ),
        (
            "default_policy: {disabled: [{rule: force-push}, {rule: limits}]}",
            change("enable", "force-push"),
            "default_policy:\n  disabled:\n    - {rule: limits}\n",
        ),
        # The file stays: `apply` may have recorded it.
        (
            "default_policy: {disabled: [{rule: force-push, server: git}]}",
            change("enable", "force-push", "git"),
            "default_policy: {disabled: []}\n",
        ),
        ("default_policy: disabled", change("enable"), "default_policy: {disabled: []}\n"),
        ("default_policy: {disabled: [{rule: limits}]}", change("enable"),
         "default_policy: {disabled: []}\n"),
        ("", change("enable", "limits"), "default_policy: {disabled: []}\n"),
        # Gone by an upgrade, and still taken out.
        ("default_policy: {disabled: [{rule: gone}]}", change("enable"),
         "default_policy: {disabled: []}\n"),
    ],
)  # fmt: skip
def test_the_commands_own_file(before: str, done: DefaultPolicyChange, after: str) -> None:
    files = [file("rules: [{name: a, tool: t, action: log}]"), file(before, OWN)]
    text = changed(files if before else files[:1], OWN, done)
    assert text == TOP + after
    parse_policy([files[0], SourceFile(OWN, text.encode())])


@pytest.mark.parametrize(
    ("files", "done", "problem", "code"),
    [
        (
            [file("rules: [{name: a, tool: t, action: log}]", OWN)],
            change("disable"),
            "has other settings than this command writes; nothing was changed",
            "E-POLICY-DEFAULT-FILE",
        ),
        (
            [file("default_policy: {disabled: [{rule: force-push}]}")],
            change("enable", "force-push"),
            "policy.yaml: disables force-push for all servers",
            "E-POLICY-DEFAULT-ELSEWHERE",
        ),
        (
            [file("default_policy: disabled")],
            change("enable", "limits", "git"),
            "policy.yaml: disables everything for all servers",
            "E-POLICY-DEFAULT-ELSEWHERE",
        ),
        (
            # An exception from its own entry cannot be written.
            [file('default_policy: {disabled: [{rule: limits, server: "g*"}]}', OWN)],
            change("enable", "limits", "git"),
            f"{OWN}: disables limits for g\\*",
            "E-POLICY-DEFAULT-ELSEWHERE",
        ),
        ([file("rulse: []")], change("disable"), "no key 'rulse'", "E-POLICY-UNKNOWN-KEY"),
        (
            [file("default_policy: disabled")],
            change("disable"),
            "`default_policy` is also set at",
            "E-POLICY-DUPLICATE",
        ),
    ],
)
def test_a_change_that_is_refused(
    files: list[SourceFile], done: DefaultPolicyChange, problem: str, code: str
) -> None:
    with pytest.raises(UsageError, match=problem) as raised:
        changed(files, OWN, done)
    assert raised.value.code == code


def test_a_rule_that_does_not_exist_is_refused() -> None:
    for rule in ("force-pull", "default.force-pull"):
        with pytest.raises(UsageError, match="no rule 'force-pull'") as raised:
            change("disable", rule)
        assert raised.value.fix == "did you mean `force-push`?"
    assert known_rule("default.force-push", DEFAULT) == "force-push"
    with pytest.raises(UsageError, match="--server: 'a b' is not a glob"):
        change("disable", "limits", "a b")
    with pytest.raises(ValueError, match="remove"):
        change("remove")


def test_a_change_is_told() -> None:
    assert change("disable").done() == "the default policy is disabled for all servers"
    assert change("enable", "limits", "g*").done() == "default.limits is enabled for g*"


def test_entries_are_found_by_rule_and_server() -> None:
    policy = Policy(disabled=(off("force-push", "git"), off("limits"), off("*", "x*")))
    table = [
        (("force-push", "*"), 2),
        (("force-push", "git"), 1),
        (("force-push", "time"), 0),
        (("limits", "x1"), 2),
        (("*", "*"), 3),
    ]
    for (rule, server), count in table:
        assert len(entries_about(policy, rule, server)) == count
    assert entries_about(Policy(has_default_policy=False), "limits", "git") == (off("*"),)
