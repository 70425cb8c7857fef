"""JSON Schemas for editors: our files are valid, and parsers and schemas know the same keys."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import run
from textwrap import dedent
from types import ModuleType

import pytest
import tomli
import yaml
from jsonschema import Draft202012Validator

from mcpwrap.config.file_types import config_file as config_types
from mcpwrap.config.file_types.fields import FileTable, keys_of
from mcpwrap.config.json_schema import config_schema, policy_schema
from mcpwrap.config.model import ConfigError
from mcpwrap.config.parse import SourceFile, parse_part
from mcpwrap.config.policy import file_types as policy_types
from mcpwrap.config.policy.cases import parse_cases
from mcpwrap.config.policy.errors import PolicyError
from mcpwrap.config.policy.parse import parse_policy

TOP = Path(__file__).parents[3]
ONLY_SHIPPED = {"since"}  # keys of the default policy alone, which no operator writes
DEFAULT_POLICY = TOP / "mcpwrap/machine/default_policy/policy.yaml"
VALIDATORS = {
    "policy": Draft202012Validator(policy_schema()),
    "config": Draft202012Validator(config_schema()),
}
SERVER = "[mcp_servers.a]\n"
LOCAL = f"{SERVER}command = '/x'\n"
OURS = f"{LOCAL}[mcp_servers.a.mcpwrap]\n"
REMOTE = f"{SERVER}url = 'https://x.example/'\n"
REMOTE_OURS = f"{REMOTE}[mcp_servers.a.mcpwrap]\n"
PYTHON = f"{SERVER}python = '/usr/bin/python3'\n"
PYTHON_OURS = f"{PYTHON}[mcp_servers.a.mcpwrap]\n"
HUB = f"{SERVER}[mcp_servers.a.members.b]\n"
WORKER = "[worker]\nlisten = '10.0.0.5:9443'\ncertificate = '/etc/a'\nkey = '/etc/b'\n"


def errors(kind: str, text: str) -> list[str]:
    value = yaml.safe_load(text) if kind == "policy" else tomli.loads(text)
    return [error.message for error in VALIDATORS[kind].iter_errors(value)]


def _values_at(schema: object, key: str) -> Iterator[object]:
    """Yield each value of a key, anywhere in a schema."""
    if isinstance(schema, dict):
        yield from (value for name, value in schema.items() if name == key)
    for inner in schema.values() if isinstance(schema, dict) else ():
        yield from _values_at(inner, key)
    for inner in schema if isinstance(schema, list) else ():
        yield from _values_at(inner, key)


def codes(kind: str, text: str) -> list[str]:
    """Return the errors of a parser; empty if it accepts the file."""
    file = SourceFile("file", text.encode())
    try:
        parse_policy([file]) if kind == "policy" else parse_part([file])
    except PolicyError as error:
        return [flaw.code for flaw in error.flaws]
    except ConfigError as error:
        return [problem.code for problem in error.problems]
    return []


@pytest.mark.parametrize("kind", VALIDATORS)
def test_a_schema_is_one(kind: str) -> None:
    schema = VALIDATORS[kind].schema
    Draft202012Validator.check_schema(schema)
    assert schema["$id"] == f"urn:mcpwrap:schema:{kind}"
    # Editors match with ECMAScript or with Rust's regex, which has no lookaround.
    found = [re.compile(one) for one in _values_at(schema, "pattern") if isinstance(one, str)]
    assert found
    assert not [one.pattern for one in found if "(?=" in one.pattern or '\\"' in one.pattern]


@pytest.mark.parametrize("kind", VALIDATORS)
def test_each_key_is_described(kind: str) -> None:
    tables = [VALIDATORS[kind].schema, *VALIDATORS[kind].schema["$defs"].values()]
    for table in tables:
        assert table["additionalProperties"] is False
        assert "title" not in table or table is tables[0]
        for key, value in table["properties"].items():
            assert value["description"].endswith("."), key


def blocks() -> Iterator[tuple[str, str]]:
    """Yield each block of a document that could be one of our files, with where it stands."""
    for page in sorted([TOP / "README.md", *TOP.glob("docs/**/*.md")]):
        found = re.findall(r"(?ms)^```(?:ya?ml|toml)\n(.*?)^```", page.read_text())
        yield from ((f"{page.name}-{number}", text) for number, text in enumerate(found))
    for page in sorted(TOP.glob("docs/*.rst")):
        found = re.findall(r"::\n\n((?:(?:    .*)?\n)+)", page.read_text())
        yield from ((f"{page.name}-{number}", dedent(text)) for number, text in enumerate(found))


def files() -> dict[str, tuple[str, str]]:
    """Return kind and text of each example that is a whole file, by where it stands."""
    found = {
        where: ("policy" if "version: 1" in text else "config", text)
        for where, text in blocks()
        if "version: 1" in text or "[mcp_servers" in text
    }
    found = {where: one for where, one in found.items() if not codes(*one)}
    for path in sorted(TOP.glob("examples/**/*.*")):
        if ".cases" not in path.name:
            kind = "config" if path.suffix == ".toml" else "policy"
            found[path.name] = (kind, path.read_text())
    return found


FILES = files()


def test_examples_were_found() -> None:
    pages = {where.partition(".md-")[0].partition(".rst-")[0] for where in FILES}
    assert {"mcpwrap-policy.5", "mcpwrap.toml.5", "write-a-policy", "run-code"} <= pages
    assert {"config.toml", "no-destructive-git.yaml"} <= FILES.keys()
    assert len(FILES) > 20


@pytest.mark.parametrize("where", FILES)
def test_an_example_is_valid(where: str) -> None:
    assert errors(*FILES[where]) == []


def test_the_default_policy_is_valid() -> None:
    policy = yaml.safe_load(DEFAULT_POLICY.read_text())
    for entry in (*policy["rules"], *policy["limits"]):
        for key in ONLY_SHIPPED:
            entry.pop(key, None)
    assert [error.message for error in VALIDATORS["policy"].iter_errors(policy)] == []


def rule(rest: str) -> str:
    return f"version: 1\nrules:\n  - {{name: r, {rest}}}\n"


def when(rest: str) -> str:
    return rule(f"tool: t, action: block, when: [{rest}]")


RIGHT: list[tuple[str, str]] = [
    ("policy", "version: 1"),
    ("policy", "version: 1\ndefault: block\nobserve: git*"),
    ("policy", "version: 1\nlimits: {calls: 5/s}\napproval: {expires: 5m, wait: 30s}"),
    ("policy", "version: 1\napproval: {expires: never}"),
    ("policy", "version: 1\nlimits: [{tool: t, failures: 3, scope: session}, {calls: 9/h}]"),
    ("policy", rule("tool: [a, 'b_*'], action: hide")),
    ("policy", rule("method: resources/read, action: log, observe: true, message: Hm.")),
    ("policy", when("{arg: a, equals: null}, {arg: b, one_of: [1, x, {}]}")),
    ("policy", when("{arg: a, length: {min: 1}}, {arg: a, range: {min: 1, max: 2.5}}")),
    ("policy", when("{arg: a, sql: drop, dialect: any}, {arg: a, not: {inside: /srv}}")),
    ("policy", when("{not: {arg: a, matches: b, default: 5}}")),
    ("policy", when("{arguments: shell, runs: git push --force|-f}")),
    ("policy", when("{arguments: shell, shell: forces_a_push}")),
    ("policy", "version: 1\nresults: [{name: a, redact: ['[0-9]+'], max_bytes: 64K}]"),
    ("policy", "version: 1\nresults: [{name: a, tool: t, control_characters: remove}]"),
    ("config", ""),
    ("config", LOCAL),
    ("config", f"{LOCAL}args = []\nenv = {{ A = '${{KEY}}' }}\ninherits = ['TZ']"),
    ("config", f"{OURS}agents = ['alice']\nworkspace = ['/home/a/b:rw']\numask = '027'"),
    ("config", f"{OURS}limits = {{ memory = '1G', cpu = '50%', tasks = 9 }}\nidle_exit = 'never'"),
    ("config", f"{REMOTE}headers = {{ X-A = 'b' }}"),
    ("config", f"{REMOTE_OURS}oauth = true\nexpose = 'http'"),
    ("config", f"{REMOTE_OURS}oauth = {{ scopes = ['read'] }}"),
    ("config", f"{PYTHON_OURS}runs = {{ seconds = 5, output = '64K' }}\negress = ['@pypi']"),
    ("config", f"{HUB}namespace = 'x'\ntransports = ['stdio']"),
    ("config", f"{WORKER}[egress]\nparent = '10.0.0.1:3128'\n[approvals]\nsame_uid = true"),
]
WRONG: list[tuple[str, str]] = [
    ("policy", "{}"),  # no version
    ("policy", "version: 2"),
    ("policy", "version: 1\nrulez: []"),
    ("policy", "version: 1\nrules: []"),
    ("policy", "version: 1\ndefault: deny"),
    ("policy", "version: 1\nobserve: ['a b']"),
    ("policy", "version: 1\nlimits: {cals: 5/s}"),
    ("policy", "version: 1\nlimits: {server: s}"),  # without a limit
    ("policy", "version: 1\nlimits: {calls: 5}"),
    ("policy", "version: 1\nlimits: {calls: 5/day}"),
    ("policy", "version: 1\nlimits: {failures: 0}"),
    ("policy", "version: 1\nlimits: {calls: 5/s, scope: all}"),
    ("policy", "version: 1\napproval: {expires: Never}"),
    ("policy", "version: 1\napproval: {wait: never}"),
    ("policy", rule("tool: t")),
    ("policy", rule("action: block")),
    ("policy", rule("tool: t, method: x/y, action: block")),
    ("policy", rule("tool: t, action: deny")),
    ("policy", rule("tool: t, action: block, reason: x")),
    ("policy", rule("tool: t, action: block, observe: 1")),
    ("policy", rule("tool: t, action: block, project: src")),
    ("policy", rule("tool: '{a,b}', action: block")),
    ("policy", "version: 1\nrules: [{name: a b, tool: t, action: log}]"),
    ("policy", when("{arg: a}")),
    ("policy", when("{equals: a}")),
    ("policy", when("{arg: a, equals: 1, matches: b}")),
    ("policy", when("{arg: a, equal: 1}")),
    ("policy", when("{arg: a, equals: 1, dialect: mysql}")),
    ("policy", when("{arg: a, arguments: sql, sql: drop}")),
    ("policy", when("{arg: a, sql: drops}")),
    ("policy", when("{arg: a, sql: drop, dialect: oracle}")),
    ("policy", when("{arg: a, shell: rm}")),
    ("policy", when("{arguments: sqls, sql: drop}")),
    ("policy", when("{arg: a, runs: 'git; rm'}")),
    ("policy", when("{arg: a, length: {}}")),
    ("policy", when("{arg: a, length: {min: 1.5}}")),
    ("policy", when("{arg: a, range: {max: x}}")),
    ("policy", when("{arg: a, inside: srv}")),
    ("policy", when("{arg: a, matches: ''}")),
    ("policy", when("{arg: a, one_of: []}")),
    ("policy", when("{arg: a, not: {arg: b, equals: 1}}")),
    ("policy", when("{not: {arg: a, equals: 1}, default: 1}")),
    ("policy", "version: 1\nresults: [{name: a}]"),
    ("policy", "version: 1\nresults: [{name: a, tool: t, method: x/y, redact: a}]"),
    ("policy", "version: 1\nresults: [{name: a, max_bytes: 5}]"),
    ("policy", "version: 1\nresults: [{name: a, control_characters: strip}]"),
    ("config", "servers = {}"),
    ("config", "[mcp_servers.A]\ncommand = '/x'"),
    ("config", SERVER),
    ("config", f"{SERVER}command = 'x'"),
    ("config", f"{LOCAL}url = 'https://x.example/'"),
    ("config", f"{LOCAL}arg = []"),
    ("config", f"{LOCAL}args = '--x'"),
    ("config", f"{LOCAL}env = {{ A = 5 }}"),
    ("config", f"{REMOTE}args = []"),
    ("config", f"{SERVER}url = 'http://x.example/'"),
    ("config", f"{OURS}agent = ['alice']"),
    ("config", f"{OURS}agents = []"),
    ("config", f"{OURS}oauth = true"),
    ("config", f"{OURS}audit = 'all'"),
    ("config", f"{OURS}pins = 'on'"),
    ("config", f"{OURS}relay = 'none'"),
    ("config", f"{OURS}state = 'yes'"),
    ("config", f"{OURS}umask = '0700'"),
    ("config", f"{OURS}workspace = ['/home/a/b']"),
    ("config", f"{OURS}idle_exit = '15'"),
    ("config", f"{OURS}limits = {{ memory = 512 }}"),
    ("config", f"{OURS}limits = {{ tasks = 0 }}"),
    ("config", f"{OURS}limits = {{ cpus = '50%' }}"),
    ("config", f"{OURS}packages = []"),
    ("config", f"{REMOTE_OURS}workspace = ['/home/a/b:rw']"),
    ("config", f"{REMOTE_OURS}oauth = {{ scope = 'read' }}"),
    ("config", f"{PYTHON_OURS}relay = 'direct'"),
    ("config", f"{PYTHON_OURS}runs = {{ seconds = 3601 }}"),
    ("config", f"{SERVER}python = 'python3'"),
    ("config", f"{SERVER}members = {{}}"),
    ("config", f"{HUB}transports = ['sse']"),
    ("config", f"{HUB}[mcp_servers.a.mcpwrap]\nshared = true"),
    ("config", "[worker]\nlisten = '10.0.0.5:9443'"),
    ("config", f"{WORKER}port = 1"),
    ("config", "[egress]\nproxy = '10.0.0.1:3128'"),
    ("config", "[approvals]\nwebhook = 'http://x.example/'"),
]


@pytest.mark.parametrize(("kind", "text"), RIGHT)
def test_a_valid_file_passes_both(kind: str, text: str) -> None:
    assert codes(kind, text) == []
    assert errors(kind, text) == []


@pytest.mark.parametrize(("kind", "text"), WRONG)
def test_a_wrong_file_passes_neither(kind: str, text: str) -> None:
    assert codes(kind, text)
    assert errors(kind, text)


def test_a_process_that_makes_the_schemas_ends_without_an_error() -> None:
    code = "from mcpwrap.config.json_schema import SCHEMAS as s; [make() for make in s.values()]"
    environment = {"PYTHONMALLOC": "debug", "PYTHONPATH": str(TOP)}
    run([sys.executable, "-c", code], env=environment, check=True, timeout=60)


def test_a_case_file_is_no_policy() -> None:
    text = "- {server: s, tool: t, expect: allow}"
    assert parse_cases(SourceFile("cases.yaml", text.encode()))
    assert errors("policy", text)


# Readers of a table, whose first argument is a key.
READERS = {"one", "many", "flag", "count", "table", "text", "texts", "json", "node", "number",
           "flag_or_table", "mark_of", "refuse"}  # fmt: skip


def _keys_read(source: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            match node.args[0]:
                case ast.Constant(value=str(key)) if node.func.attr in READERS:
                    yield key


def _tables(base: type[FileTable], module: str) -> Iterator[type[FileTable]]:
    for table in base.__subclasses__():
        if table.__module__ == module:
            yield table
        yield from _tables(table, module)


@pytest.mark.parametrize(
    ("types", "folder", "names"),
    [
        (policy_types, "mcpwrap/config/policy", ("parse", "conditions")),
        (
            config_types,
            "mcpwrap/config",
            ("parse", "server_table", "local_program", "remote_server", "python_server", "hub"),
        ),
    ],
    ids=["policy", "config"],
)
def test_a_key_that_a_parser_reads_is_in_a_type(
    types: ModuleType, folder: str, names: tuple[str, ...]
) -> None:
    known = {key for table in _tables(FileTable, types.__name__) for key in keys_of(table)}
    read = {key for name in names for key in _keys_read(TOP / folder / f"{name}.py")}
    assert len(read) > 20
    assert read - ONLY_SHIPPED <= known


# A file in which a table may have one more key.
PLACES: list[tuple[str, type[FileTable], str]] = [
    ("policy", policy_types.PolicyFile, "version: 1\nKEY: 5"),
    ("policy", policy_types.RuleFields, rule("tool: t, action: log, KEY: 5")),
    ("policy", policy_types.ArgumentFields, when("{arg: a, KEY: 5}")),
    ("policy", policy_types.NegatedFields, when("{not: {arg: a, equals: 5}, KEY: 1}")),
    ("policy", policy_types.SingleTestFields, when("{arg: a, not: {sql: drop, KEY: 5}}")),
    ("policy", policy_types.LengthBounds, when("{arg: a, length: {KEY: 5}}")),
    ("policy", policy_types.RangeBounds, when("{arg: a, range: {KEY: 5}}")),
    ("policy", policy_types.ResultRuleFields, "version: 1\nresults: [{name: a, KEY: 5}]"),
    ("policy", policy_types.LimitsFields, "version: 1\nlimits: {KEY: 5}"),
    ("policy", policy_types.ApprovalFields, "version: 1\napproval: {KEY: 5}"),
    ("policy", policy_types.DefaultPolicyFields, "version: 1\ndefault_policy: {KEY: 5}"),
    (
        "policy",
        policy_types.DisabledRuleFields,
        "version: 1\ndefault_policy: {disabled: [{KEY: 5}]}",
    ),
    ("config", config_types.ConfigFile, "KEY = 5"),
    ("config", config_types.ProgramTable, f"{LOCAL}KEY = 5"),
    ("config", config_types.ProgramSettings, f"{OURS}KEY = 5"),
    ("config", config_types.SessionLimitsTable, f"{OURS}limits = {{ KEY = 5 }}"),
    ("config", config_types.PreviewTable, f"{OURS}previews.t = {{ KEY = 5 }}"),
    ("config", config_types.UrlTable, f"{OURS}http.u = {{ KEY = 5 }}"),
    ("config", config_types.RemoteTable, f"{REMOTE}KEY = 5"),
    ("config", config_types.RemoteSettings, f"{REMOTE_OURS}KEY = 5"),
    ("config", config_types.OAuthTable, f"{REMOTE_OURS}oauth = {{ KEY = 5 }}"),
    ("config", config_types.PythonTable, f"{PYTHON}KEY = 5"),
    ("config", config_types.PythonSettings, f"{PYTHON_OURS}KEY = 5"),
    ("config", config_types.RunLimitsTable, f"{PYTHON_OURS}runs = {{ KEY = 5 }}"),
    ("config", config_types.HubTable, f"{SERVER}members = {{ b = {{}} }}\nKEY = 5"),
    ("config", config_types.HubSettings, f"{HUB}[mcp_servers.a.mcpwrap]\nKEY = 5"),
    ("config", config_types.MemberTable, f"{HUB}KEY = 5"),
    ("config", config_types.EgressTable, "[egress]\nKEY = 5"),
    ("config", config_types.ApprovalsTable, "[approvals]\nKEY = 5"),
    ("config", config_types.WorkerTable, f"{WORKER}KEY = 5"),
]


@pytest.mark.parametrize(("kind", "table", "text"), PLACES)
def test_a_parser_knows_each_key_of_a_table_and_no_other(
    kind: str, table: type[FileTable], text: str
) -> None:
    for key in keys_of(table):
        lines = [line for line in text.splitlines() if not line.startswith(f"{key} = ")]
        assert not is_unknown(kind, "\n".join(lines).replace("KEY", key)), key
    assert is_unknown(kind, text.replace("KEY", "other"))


def is_unknown(kind: str, text: str) -> bool:
    """Return whether a parser finds a key that it does not know."""
    return any(code.endswith("-UNKNOWN-KEY") for code in codes(kind, text))


def test_each_table_has_a_place() -> None:
    placed = {table for _, table, _ in PLACES}
    bases = {policy_types.PlainTestFields, policy_types.ResultCheckFields}
    bases.add(config_types.ServerSettings)
    for types in (policy_types, config_types):
        assert set(_tables(FileTable, types.__name__)) - bases <= placed
