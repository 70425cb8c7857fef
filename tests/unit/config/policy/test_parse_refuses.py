"""Invalid policies: every flaw is found in one run, with its line, column and a fix."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.config.parse import SourceFile
from mcpwrap.config.policy.errors import Flaw, PolicyError, SourcePosition
from mcpwrap.config.policy.parse import parse_policy
from mcpwrap.config.policy.yaml_table import MAX_ITEMS

# The `«` in each marks the flaw's position, and is not part of the file.
TOP: list[tuple[str, str]] = [
    ("default: «allow_all", "is not a default"),
    ("default: «no", "to some readers"),
    ("default: «[allow]", "a list where text belongs"),
    ("«rulez: []", "has no key 'rulez'"),
    ("observe: «5", "a number where text belongs"),
    ("observe: «[]", "an empty list"),
    ("observe: [«'a b']", "is not a glob"),
    ("observe: «{a: b}", "a table where a list belongs"),
    ("rules: «{}", "a table where a list belongs"),
    ("rules:«", "nothing where a list belongs"),
    ("rules: [«5]", "a single value where a rule belongs"),
    ("results: [«[]]", "a list where a rule on results belongs"),
    ("limits: «5", "a single value where `limits` belongs"),
    ("limits: «[]", "an empty list"),
    ("limits: «{}", "limits without a limit"),
    ("limits: {«method: x/y, calls: 5/s}", "has no key 'method'"),
    ("limits: {calls: «5}", "a number where text belongs"),
    ("limits: {calls: «5/day}", "is not a rate"),
    ("limits: {calls: «0/s}", "is not a rate"),
    ("limits: {failures: «1" + 400 * "0" + "}", "too big"),
    ("limits: {calls: «10001/h}", "over 10000 calls"),
    ("limits: {«failures: 0}", "not a whole number"),
    ("limits: {«failures: true}", "not a whole number"),
    ("limits: {«failures: 5s}", "not a whole number"),
    ("limits: {failures: «0x5}", "to some readers"),
    ("limits: {cool_down: «never}", "is not a time"),
    ("approval: «5m", "a single value where `approval` belongs"),
    ("approval: {expires: «5}", "a number where text belongs"),
    ("approval: {expires: «Never}", "is not a time"),
    ("approval: {wait: «never}", "is not a time"),
    ("approval: {expires: «9s}", "9 s"),
    ("approval: {expires: «25h}", "90000 s"),
    ("approval: {wait: «4s}", "4 s"),
    ("approval: {wait: «61m}", "3660 s"),
    ("approval: {«after: 5s}", "has no key 'after'"),
    ("«version: 1", "appears twice"),
]
RULES: list[tuple[str, str]] = [
    ("«{tool: t, action: log}", "without a name"),
    ("{name: «a b, tool: t, action: log}", "is not a valid rule name"),
    ("{name: «default, tool: t, action: log}", "is not a valid rule name"),
    ("{name: «5, tool: t, action: log}", "a number where text belongs"),
    ("«{name: a, tool: t}", "without `action`"),
    ("{name: a, tool: t, action: «blok}", "is not an action"),
    ("«{name: a, action: log}", "needs either `tool` or `method`"),
    ("{name: a, tool: t, «method: x/y, action: log}", "needs either `tool` or `method`"),
    ("{name: a, method: «read_query, action: log}", "is not a method that is judged"),
    ("{name: a, method: «server/discover, action: block}", "is not a method that is judged"),
    ("{name: a, method: [«notifications/progress], action: log}", "is not a method that is judged"),
    ("{name: a, method: «'x y', action: log}", "is not a glob"),
    ("{name: a, tool: «'^git', action: log}", "is not a glob"),
    ("{name: a, tool: [t, «'{a,b}'], action: log}", "is not a glob"),
    ("{name: a, tool: «on, action: log}", "to some readers"),
    ("{name: a, tool: t, server: «'', action: log}", "is not a glob"),
    ("{name: a, tool: t, project: «'/a b', action: log}", "is not a glob"),
    ("{name: a, tool: t, project: «src/a, action: log}", "matches no project"),
    ("{name: a, tool: t, project: «'~/a', action: log}", "matches no project"),
    ("{name: a, tool: t, project: «/a/, action: log}", "matches no project"),
    ("{name: a, tool: t, project: [/a, «/], action: log}", "matches no project"),
    ("{name: a, tool: t, project: «'*/../a', action: log}", "matches no project"),
    ("{name: a, tool: t, project: «/a//b, action: log}", "matches no project"),
    ("{name: a, tool: t, «action: hide, when: [{arg: a, equals: 1}]}", "hidden or not"),
    ("{name: a, method: x/y, «action: hide}", "hidden or not"),
    ("{name: a, tool: t, action: log, «observe: 1}", "a number where true or false"),
    ("{name: a, tool: t, action: block, «ask_in_client: true}", "does not ask for an approval"),
    ("{name: a, tool: t, action: allow_with_approval, «ask_in_client: 1}", "where true or false"),
    ("{name: a, tool: t, action: block, «instead_of: b}", "only a rule that allows tools"),
    ("{name: a, method: x/y, action: allow, «instead_of: b}", "only a rule that allows tools"),
    (
        "{name: a, tool: t, action: allow, observe: true, «instead_of: b}",
        "only a rule that allows tools",
    ),
    ("{name: a, tool: t, action: allow, instead_of: [b, «'c d']}", "is not the name of a rule"),
    ("{name: a, tool: t, action: log, message: «\"a\\e[2J\"}", "not printable"),
    ("{name: a, tool: t, action: log, when: «{arg: a}}", "a table where a list belongs"),
    ("{name: a, tool: t, action: log, when: «[]}", "an empty list of conditions"),
    ("{name: a, tool: t, action: log, «reason: x}", "a rule has no key 'reason'"),
]  # fmt: skip
CONDITIONS: list[tuple[str, str]] = [
    ("«{equals: 1}", "needs either `arg` or `arguments`"),
    ("«{}", "needs either `arg` or `arguments`"),
    ("«5", "a single value where a condition belongs"),
    ("{«arg: a}", "no test"),
    ("{arg: a, equals: 1, «matches: b}", "more than one test"),
    ("{arg: «'a..b', equals: 1}", "is not an argument path"),
    ("{arg: «'', equals: 1}", "is not an argument path"),
    ("{arg: a, equals: «no}", "to some readers"),
    ("{arg: a, «equal: 1, matches: b}", "has no key 'equal'"),
    ("{arg: a, «one_of: 5}", "not a list of values"),
    ("{arg: a, «one_of: []}", "not a list of values"),
    ("{arg: a, one_of: «[5, yes]}", "to some readers"),
    ("{arg: a, matches: «'('}", "not a pattern of RE2"),
    ("{arg: a, matches: «'(?=a)'}", "not a pattern of RE2"),
    ("{arg: a, matches: «''}", "matches everything"),
    ("{arg: a, matches: «5}", "a number where text belongs"),
    ("{arg: a, length: «5}", "a single value where `length` belongs"),
    ("{arg: a, length: «{}}", "neither `min` nor `max`"),
    ("{arg: a, length: {«min: -1}}", "not a whole number"),
    ("{arg: a, length: {«min: 1.5}}", "not a whole number"),
    ("{arg: a, length: {«mim: 1, max: 2}}", "`length` has no key 'mim'"),
    ("{arg: a, range: {«min: 5, max: 4}}", "`min` is greater than `max`"),
    ("{arg: a, range: {«min: '5'}}", "text where a number belongs"),
    ("{arg: a, range: {«max: true}}", "true or false where a number belongs"),
    ("{arg: a, inside: «x}", "not an absolute path"),
    ("{arg: a, inside: «/a/../b}", "not in its shortest form"),
    ("{arg: a, sql: «select}", "is not a test of SQL"),
    ("{arg: a, sql: drop, dialect: «oracle}", "is not a supported SQL dialect"),
    ("{arg: a, equals: 1, «dialect: mysql}", "has no key 'dialect'"),
    ("{arguments: «shells, shell: forces_a_push}", "is not a kind of arguments"),
    ("«{arg: a, arguments: shell, shell: forces_a_push}", "needs either `arg`"),
    ("{arg: a, shell: «deletes}", "is not a test of shell commands"),
    ("{arg: a, runs: [«--force]}", "is not a pattern of commands"),
    ("{arg: a, runs: [«a --force|b]}", "is not a pattern of commands"),
    ("{arg: a, runs: [«a || b]}", "is not a pattern of commands"),
    ("{arg: a, runs: [«'a  b']}", "is not a pattern of commands"),
    ("{arg: a, runs: [«a; b]}", "is not a pattern of commands"),
    ("{arg: a, runs: «[]}", "empty"),
    ("{arg: a, not: «{}}", "`not` takes exactly one test"),
    ("{arg: a, not: «{equals: 1, matches: a}}", "`not` takes exactly one test"),
    ("{arg: a, not: «{not: {equals: 1}}}", "`not` takes exactly one test"),
    ("{arg: a, not: «5}", "a single value where a test belongs"),
    ("{arg: a, not: {equals: 1, «default: 1}}", "a test has no key 'default'"),
    ("{«not: {arg: 'a[*]', equals: 1}}", "keeps the rule from all others"),
    ("{not: «5}", "a single value where a condition belongs"),
    ("{not: {arg: a, equals: 1}, «message: a}", "has no key 'message'"),
    ("{arg: 'a[*]', equals: 1, «default: 1}", "cannot have a `default`"),
]
RESULTS: list[tuple[str, str]] = [
    ("«{name: a}", "a rule that does nothing"),
    ("«{max_bytes: 1M}", "without a name"),
    ("{name: a, max_bytes: «1000}", "a number where text belongs"),
    ("{name: a, max_bytes: «1G}", "is not a size"),
    ("{name: a, control_characters: «drop}", "is not a treatment of control characters"),
    ("{name: a, redact: «'x*'}", "matches the empty text"),
    ("{name: a, redact: [«'[']}", "not a pattern"),
    ("{name: a, redact_keys: «[]}", "an empty list"),
    ("{name: a, tool: t, «method: prompts/get, max_bytes: 1M}", "both `tool` and `method`"),
    ("{name: a, «method: resources/list, max_bytes: 1M}", "a rule that does nothing"),
    ("{name: a, «method: [initialize, 'tools/l*'], redact_keys: a}", "a rule that does nothing"),
    ("{name: a, method: «ping, max_bytes: 1M}", "matches no method whose results are judged"),
    (
        "{name: a, method: ['*', «'x/*'], max_bytes: 1M}",
        "matches no method whose results are judged",
    ),
    (
        "{name: a, method: «tasks/result, max_bytes: 1M}",
        "matches no method whose results are judged",
    ),
    ("{name: a, «when: [], max_bytes: 1M}", "has no key 'when'"),
]


def flaws(*texts: str) -> list[Flaw]:
    with pytest.raises(PolicyError) as caught:
        parse_policy([SourceFile(f"{n}.yaml", text.encode()) for n, text in enumerate(texts)])
    return list(caught.value.flaws)


def expect(marked: str, fragment: str) -> None:
    before = marked[: marked.index("«")]
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    found = flaws(marked.replace("«", ""))
    assert [(flaw.mark.line, flaw.mark.column) for flaw in found] == [(line, column)], found
    assert fragment in found[0].problem
    assert found[0].fix


@pytest.mark.parametrize(("text", "fragment"), TOP)
def test_a_file(text: str, fragment: str) -> None:
    expect(f"version: 1\n{text}", fragment)


@pytest.mark.parametrize(("text", "fragment"), RULES)
def test_a_rule(text: str, fragment: str) -> None:
    expect(f"version: 1\nrules:\n  - {text}", fragment)


@pytest.mark.parametrize(("text", "fragment"), CONDITIONS)
def test_a_condition(text: str, fragment: str) -> None:
    rule = "version: 1\nrules:\n  - name: a\n    tool: t\n    action: block\n    when:"
    expect(f"{rule}\n      - {text}", fragment)


@pytest.mark.parametrize(("text", "fragment"), RESULTS)
def test_a_rule_on_results(text: str, fragment: str) -> None:
    expect(f"version: 1\nresults:\n  - {text}", fragment)


@pytest.mark.parametrize("text", ["«rules: []", "«version: 2", "«version: '1'", "«version: 1.5"])
def test_a_file_says_which_version_it_is_in(text: str) -> None:
    found = flaws(text.replace("«", ""))
    assert (found[0].mark, found[0].problem) == (
        SourcePosition("0.yaml", 1, 1),
        "not a supported version",
    )


@pytest.mark.parametrize("action", ["allow", "block"])
def test_no_element_of_a_list_speaks_for_the_others(action: str) -> None:
    rule = f"version: 1\nrules: [{{name: a, tool: t, action: {action}, when: [%s]}}]"
    one, none = "{arg: 'p[*]', inside: /a}", "{not: {arg: 'p[*]', inside: /a}}"
    [flaw] = flaws(rule % (one if action == "allow" else none))
    assert "one element that passes the test" in flaw.problem


def test_no_argument_of_a_kind_speaks_for_the_others() -> None:
    rule = "version: 1\nrules: [{name: a, tool: t, action: %s, when: [%s]}]"
    reads = "{arguments: sql, not: {sql: writes}}"
    [flaw] = flaws(rule % ("allow", reads))
    assert "one argument that passes the test" in flaw.problem
    [flaw] = flaws(rule % ("block", "{arguments: sql, sql: writes, default: x}"))
    assert "cannot have a `default`" in flaw.problem
    for action, condition in (
        ("allow", f"{{not: {reads}}}"),
        ("block", "{arguments: sql, sql: writes}"),
        ("block", "{not: {arguments: sql, sql: writes}}"),
    ):
        source = SourceFile("0.yaml", (rule % (action, condition)).encode())
        assert len(parse_policy([source]).rules) == 1


def test_what_holds_for_all_files_stands_in_one() -> None:
    text = "version: 1\ndefault: block\nobserve: a\nlimits: {failures: 3}"
    found = flaws(text, text)
    assert [flaw.problem for flaw in found] == [
        "`default` is also set at 0.yaml:2:1",
        "`observe` is also set at 0.yaml:3:1",
        "`limits` is also set at 0.yaml:4:1",
    ]
    assert {flaw.mark.file for flaw in found} == {"1.yaml"}


def test_a_name_is_that_of_one_rule() -> None:
    rule = "version: 1\nrules: [{name: a, tool: t, action: log}]"
    [flaw] = flaws(rule, "version: 1\nresults: [{name: a, max_bytes: 1M}]")
    assert str(flaw.mark) == "1.yaml:2:12"
    assert flaw.problem == "'a' is also the name of the rule at 0.yaml:2:10"


def test_there_is_a_last_rule() -> None:
    rules = "\n".join(f"- {{name: r{n}, tool: t, action: log}}" for n in range(MAX_ITEMS + 1))
    [flaw] = flaws(f"version: 1\nrules:\n{rules}")
    assert "1001 rules" in flaw.problem


def test_one_run_reports_all_errors_from_top_to_bottom() -> None:
    text = "version: 1\nrules:\n" + "\n".join(f"  - {text}" for text, _ in RULES)
    found = flaws("x: [", text.replace("«", ""), "version: 3")
    places = [(flaw.mark.file, flaw.mark.line) for flaw in found]
    assert places == sorted(places)
    assert {line for file, line in places if file == "1.yaml"} == {*range(3, 3 + len(RULES))}
    with pytest.raises(PolicyError) as caught:
        parse_policy([SourceFile("a", b"version: 3"), SourceFile("b", b"version: 3")])
    assert str(caught.value).endswith("\n2 problems; nothing was changed")
    assert caught.value.where == "a:1:1"


def test_no_key_steers_the_terminal_that_shows_it() -> None:
    [flaw] = flaws('version: 1\n"a\\e[2J\\nb": 1')
    assert "\x1b" not in str(flaw)
    assert len(str(flaw).splitlines()) == 2


KEYS = [
    "version", "rules", "results", "limits", "name", "tool", "action", "when", "arg", "not", "sql",
    "length", "min", "default", "observe", "redact", "equals", "range", "message", "inside",
]  # fmt: skip
trees = st.recursive(
    st.sampled_from(["1", "block", "x", "'('", "no", "''", "a[*]", "null"]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4).map(
            lambda table: "{" + ", ".join(f"{key}: {value}" for key, value in table.items()) + "}"
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(KEYS[:4]), trees), st.text())
def test_every_file_is_a_policy_or_an_error(top: dict[str, str], text: str) -> None:
    for content in ("\n".join(f"{key}: {value}" for key, value in top.items()), text):
        with contextlib.suppress(PolicyError):
            parse_policy([SourceFile("f", content.encode(errors="surrogatepass"))])
