"""Types of what a policy file may contain: one class for each table."""

from typing import Annotated, Any, ClassVar, Literal

from mcpwrap.config.file_types.fields import (
    NOT_EMPTY,
    OPTIONAL,
    AbsolutePath,
    FileTable,
    KeyConstraint,
    KeyRelations,
    about,
    any_key_of,
    keys_of,
    one_key_of,
)
from mcpwrap.config.policy.value_parsers import (
    MAX_MESSAGE_CHARS,
    PATTERNS,
    Default,
    Hidden,
    NamedShellTest,
)
from mcpwrap.config.policy.yaml_table import MAX_ITEMS
from mcpwrap.core.policy.rules import Action, Dialect, LimitScope, SqlTest

MAX_LENGTH = 2**31
_UP_TO_MANY = KeyConstraint(min_length=1, max_length=MAX_ITEMS)
_Glob = Annotated[str, PATTERNS["glob"]]
_Globs = _Glob | Annotated[list[_Glob], _UP_TO_MANY]
_Text = Annotated[str, KeyConstraint(min_length=1)]
_Texts = _Text | Annotated[list[_Text], _UP_TO_MANY]
_Command = Annotated[str, PATTERNS["command"]]
_Commands = _Command | Annotated[list[_Command], _UP_TO_MANY]
_Time = Annotated[str, PATTERNS["time"]]
_Count = Annotated[int, KeyConstraint(ge=1, le=1_000_000)]
_Length = Annotated[int, KeyConstraint(ge=0, le=MAX_LENGTH)]
_RuleName = Annotated[str, PATTERNS["name"]]
_Name = Annotated[str, PATTERNS["name"], about("Name in messages and logs; unique.")]
_Servers = Annotated[_Globs, about("Globs of server names.", "sqlite*", default="all servers")]
_Project = Annotated[str, PATTERNS["project"]]
_Projects = Annotated[
    _Project | Annotated[list[_Project], _UP_TO_MANY],
    about(
        "Globs of paths: the rule holds in sessions that see one of these projects.",
        "/home/alice/src/prod",
        default="all sessions",
    ),
]
_Tools = Annotated[_Globs, about("Globs of tool names. Not beside `method`.", "git_*")]
_Methods = Annotated[_Globs, about("Globs of methods. Not beside `tool`.", "resources/read")]


class LengthBounds(FileTable):
    """Bounds of a number of characters or elements."""

    min: Annotated[_Length, about("Least number.")] = OPTIONAL
    max: Annotated[_Length, about("Greatest number.")] = OPTIONAL


class RangeBounds(FileTable):
    """Bounds of a number."""

    min: Annotated[float, about("Least value.")] = OPTIONAL
    max: Annotated[float, about("Greatest value.")] = OPTIONAL


class PlainTestFields(FileTable):
    """Tests of a value."""

    equals: Annotated[Any, about("A value that is equal to it.")] = OPTIONAL
    one_of: Annotated[
        list[Any], KeyConstraint(min_length=1), about("Values, one of which is equal to it.")
    ] = OPTIONAL
    matches: Annotated[
        _Text, about("Regular expression of RE2, which may match anywhere in the text.")
    ] = OPTIONAL
    length: Annotated[
        LengthBounds, NOT_EMPTY, about("Number of characters of a text, or elements of a list.")
    ] = OPTIONAL
    range: Annotated[RangeBounds, NOT_EMPTY, about("Value of a number.")] = OPTIONAL
    inside: Annotated[AbsolutePath, about("Folder: the text is a path in it.", "/srv/data")] = (
        OPTIONAL
    )
    sql: Annotated[SqlTest, about("The text is SQL, and this holds for a statement in it.")] = (
        OPTIONAL
    )
    shell: Annotated[
        NamedShellTest, about("The text is a shell command line, and a command in it does this.")
    ] = OPTIONAL
    runs: Annotated[
        _Commands,
        about("The text is a shell command line that runs one of these.", "git push --force|-f"),
    ] = OPTIONAL


TESTS = keys_of(PlainTestFields)
_DIALECT: KeyRelations = {"dependentRequired": {"dialect": ["sql"]}}


class SingleTestFields(PlainTestFields):
    """Test of a value: exactly one of these keys, and `dialect` beside `sql`."""

    relations: ClassVar[KeyRelations] = {**one_key_of(*TESTS), **_DIALECT}

    dialect: Annotated[Dialect | Literal["any"], about("Dialect of the SQL.", default="sqlite")] = (
        OPTIONAL
    )


class ArgumentFields(SingleTestFields):
    """Condition on an argument: `arg` or `arguments`, and exactly one test."""

    relations: ClassVar[KeyRelations] = {
        "allOf": [one_key_of("arg", "arguments"), one_key_of(*TESTS, "not")],
        **_DIALECT,
    }

    arg: Annotated[
        _Text, about("Path of the value.", "query", "a.b[0].c", "paths[*]", 'a["odd key"]')
    ] = OPTIONAL
    arguments: Annotated[
        Literal["sql", "shell"], about("All arguments of the tool that are SQL, or shell commands.")
    ] = OPTIONAL
    not_: Annotated[SingleTestFields, about("A test that must not hold.")] = OPTIONAL
    default: Annotated[Any, about("Value that the server assumes if the argument is missing.")] = (
        OPTIONAL
    )


class NegatedFields(FileTable):
    """Negated condition."""

    not_: Annotated[ArgumentFields, about("A condition that must not hold.")]


class RuleFields(FileTable):
    """Rule on messages. The first that applies and does not only log decides."""

    relations: ClassVar[KeyRelations] = one_key_of("tool", "method")

    name: _Name
    server: _Servers = OPTIONAL
    project: _Projects = OPTIONAL
    tool: _Tools = OPTIONAL
    method: _Methods = OPTIONAL
    when: Annotated[
        list[ArgumentFields | NegatedFields],
        _UP_TO_MANY,
        about("Conditions, all of which must hold."),
    ] = OPTIONAL
    action: Annotated[Action, about("Effect of the rule.")]
    message: Annotated[
        str,
        KeyConstraint(max_length=MAX_MESSAGE_CHARS),
        about("Text for the agent and for approvers."),
    ] = OPTIONAL
    observe: Annotated[
        bool, about("The effect is logged and not carried out.", default="false")
    ] = OPTIONAL
    ask_in_client: Annotated[
        bool, about("The agent's own user may approve, in its window.", default="false")
    ] = OPTIONAL
    only_if_sure: Annotated[
        bool, about("What cannot be judged does not make the rule apply.", default="false")
    ] = OPTIONAL
    instead_of: Annotated[
        list[_RuleName] | _RuleName,
        about("Of an `allow`: names of rules whose questions it answers; it decides nothing else."),
    ] = OPTIONAL


class ResultCheckFields(FileTable):
    """Checks of what servers send."""

    max_bytes: Annotated[
        str, PATTERNS["size"], about("Greatest size of a result, as JSON.", "64K", "1M")
    ] = OPTIONAL
    control_characters: Annotated[
        Hidden, about("What happens to control and invisible characters.")
    ] = OPTIONAL
    redact_keys: Annotated[_Globs, about("Globs of keys whose values are redacted.", "*_token")] = (
        OPTIONAL
    )
    redact: Annotated[_Texts, about("Regular expressions of RE2 whose matches are redacted.")] = (
        OPTIONAL
    )


CHECKS = keys_of(ResultCheckFields)


class ResultRuleFields(ResultCheckFields):
    """Rule on what servers send. It has at least one check."""

    relations: ClassVar[KeyRelations] = {
        **any_key_of(*CHECKS),
        "not": {"required": ["tool", "method"]},
    }

    name: _Name
    server: _Servers = OPTIONAL
    project: _Projects = OPTIONAL
    tool: _Tools = OPTIONAL
    method: _Methods = OPTIONAL


COUNTS = ("calls", "identical_calls", "repeated_calls", "failures", "cool_down")


class LimitsFields(FileTable):
    """Limits of calls. Of several entries the first that matches applies."""

    relations: ClassVar[KeyRelations] = any_key_of(*COUNTS)

    server: _Servers = OPTIONAL
    tool: Annotated[_Globs, about("Globs of tool names.", "git_*", default="all tools")] = OPTIONAL
    calls: Annotated[
        str, PATTERNS["rate"], about("Rate of calls of one tool.", "5/s", "120/min", "1000/h")
    ] = OPTIONAL
    identical_calls: Annotated[
        _Count, about("Calls with the same arguments and the same answer, within `window`.")
    ] = OPTIONAL
    repeated_calls: Annotated[
        _Count, about("Calls with the same arguments, whatever the answers, within `window`.")
    ] = OPTIONAL
    failures: Annotated[_Count, about("Failed calls in a row.")] = OPTIONAL
    cool_down: Annotated[
        _Time, about("How long calls are refused after that.", "5min", default="30s")
    ] = OPTIONAL
    window: Annotated[
        _Time, about("Time in which identical and repeated calls are counted.", default="10min")
    ] = OPTIONAL
    repeated_window: Annotated[
        _Time, about("Time in which `repeated_calls` are counted.", default="that of `window`")
    ] = OPTIONAL
    scope: Annotated[LimitScope, about("Whose calls are counted together.", default="agent")] = (
        OPTIONAL
    )


class ApprovalFields(FileTable):
    """Times of approvals."""

    expires: Annotated[
        str,
        PATTERNS["expiry"],
        about("How long a request waits for an approver.", "1h", "never", default="5m"),
    ] = OPTIONAL
    wait: Annotated[_Time, about("After how long the agent is told to retry.", default="45s")] = (
        OPTIONAL
    )


class DisabledRuleFields(FileTable):
    """Rule of the default policy that is disabled."""

    rule: Annotated[
        _Text, about("Its name, with or without `default.`; `limits` for the limits.", "force-push")
    ]
    server: _Servers = OPTIONAL


class DefaultPolicyFields(FileTable):
    """Rules of the default policy that are disabled; the others stay in force."""

    disabled: Annotated[
        list[DisabledRuleFields],
        KeyConstraint(max_length=MAX_ITEMS),
        about("Rules that are disabled."),
    ]


class PolicyFile(FileTable):
    """One policy file; the rules of all files are concatenated in the order of their names."""

    version: Annotated[Literal[1], about("Version of the format: 1.")]
    default: Annotated[
        Default, about("Decision on a message that no rule decides.", default="allow")
    ] = OPTIONAL
    default_policy: Annotated[
        Literal["enabled", "disabled"] | DefaultPolicyFields,
        about("Whether the default policy is in force, or which rules of it are not."),
    ] = OPTIONAL
    observe: Annotated[
        _Globs, about("Servers for which all is judged and logged, and nothing refused.")
    ] = OPTIONAL
    limits: Annotated[
        LimitsFields | Annotated[list[LimitsFields], _UP_TO_MANY], about("Limits of calls.")
    ] = OPTIONAL
    approval: Annotated[ApprovalFields, about("Times of approvals.")] = OPTIONAL
    rules: Annotated[list[RuleFields], _UP_TO_MANY, about("Rules on messages, in order.")] = (
        OPTIONAL
    )
    results: Annotated[
        list[ResultRuleFields], _UP_TO_MANY, about("Rules on what servers send, in order.")
    ] = OPTIONAL
