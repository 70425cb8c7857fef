"""Suggested rules from this machine's audit, for `mcpwrap policy suggest` and `accept`."""

from dataclasses import dataclass

from mcpwrap.cli.audit import filters, source
from mcpwrap.cli.policy.live import known_tools
from mcpwrap.config.parse import SourceFile
from mcpwrap.config.policy.errors import PolicyError
from mcpwrap.config.policy.parse import parse_policy
from mcpwrap.core.audit.params import UnreadableParams, unsealing_box
from mcpwrap.core.policy.compiled import NO_CONTEXT, CompiledPolicy, compile_policy
from mcpwrap.core.policy.rules import Policy
from mcpwrap.core.policy_review.questions import QuestionReader
from mcpwrap.core.policy_review.rule_text import (
    case_lines,
    rule_lines,
    summary,
    with_cases,
    with_rule,
)
from mcpwrap.core.policy_review.suggestions import MIN_APPROVED, Suggestion, suggest
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.errors import UsageError
from mcpwrap.linux import tty
from mcpwrap.machine import accepted_rules
from mcpwrap.machine.default_policy import shipped
from mcpwrap.machine.logs import audit_files
from mcpwrap.machine.policy_files import policy_files
from mcpwrap.machine.server_contexts import applied_contexts
from mcpwrap.plan import paths

_WHY_UNREAD = {
    UnreadableParams.HASHED: 'were recorded as a hash only: set audit = "sealed" for the server',
    UnreadableParams.SEALED: "have sealed params, which only root can open: run it with sudo",
    UnreadableParams.BROKEN: (
        "have sealed params that cannot be opened: run `sudo mcpwrap audit verify`"
    ),
}


@dataclass(frozen=True, slots=True)
class SuggestionReport:
    """Suggestions from a part of the audit, and what could not be read in it."""

    suggestions: tuple[Suggestion, ...]
    reader: QuestionReader


def report_since(since: str, server: str) -> SuggestionReport:
    """Return the suggestions from this machine's audit, under the policy of its files.

    Raises:
        UsageError: the audit or the policy cannot be read.
    """
    policy = shipped.extended(parse_policy(policy_files()))
    contexts = applied_contexts(paths.ACCESS_LIST)

    at, folder = filters.time_of(since), source.SYSTEM
    is_root = source.is_readable_as_root(folder)
    reader = QuestionReader(unsealing_box(source.keys_of(folder)) if is_root else None)
    for file in audit_files.since(audit_files.session_files(folder), at):
        for record in audit_files.records(file.path):
            if record.at >= at and server in {"", record.server}:
                reader.take(record)
    tools = known_tools({key.server for key in reader.by_key})

    def compiled(some: Policy, name: str) -> CompiledPolicy:
        made = compile_policy(some, name, contexts.get(name, NO_CONTEXT))
        if name in tools:
            made.learn(tools[name])
        return made

    found = suggest(policy, reader.by_key, compiled)
    return SuggestionReport(tuple(filter(_can_be_written, found)), reader)


def show(one: Suggestion) -> None:
    """Show a suggestion: its rule, its cases and what it does to the questions of the past."""
    (server,), (tool,) = one.rule.servers, one.rule.tools
    tty.say(tty.styled(f"{one.id}: {server}, {tool}", "bold"))
    tty.say_lines(rule_lines(one))
    tty.say("cases:")
    tty.say_lines([f"  {line}" for line in case_lines(one)])
    tty.say(summary(one))


def found(id_: str, since: str) -> Suggestion:
    """Return the suggestion of an ID.

    Raises:
        UsageError: there is none.
    """
    for one in report_since(since, "").suggestions:
        if one.id == id_:
            return one
    raise UsageError(
        f"there is no suggestion {id_!a}, or no longer; nothing was changed",
        where="mcpwrap policy accept",
        fix="`sudo mcpwrap policy suggest` shows the suggestions; give both the same `--since`",
        code="E-POLICY-NO-SUGGESTION",
    )


def written(one: Suggestion, before: str) -> tuple[str, str]:
    """Return the text of the accepted rules, and that of their cases, with one more.

    Raises:
        PolicyError: a policy file has errors, or the accepted rules end with another key.
        UsageError: the rule would be read as another one.
    """
    rules = with_rule(before, one)
    if one.rule not in accepted_rules.policy_with(policy_files(), rules).rules:
        raise UsageError(
            "the rule would be read as another one; nothing was changed",
            where=accepted_rules.RULES,
            fix="make `rules` the last key of the file, with an indentation of two spaces",
            code="E-POLICY-ACCEPTED-FILE",
        )
    return rules, with_cases(accepted_rules.content(accepted_rules.CASES), one)


def _can_be_written(one: Suggestion) -> bool:
    """Return whether the text of the rule is read as the rule: some names have no glob."""
    file = SourceFile("suggestion", with_rule("", one).encode())
    try:
        return parse_policy([file]).rules == (one.rule,)
    except PolicyError:
        return False


def show_rest(report: SuggestionReport) -> None:
    """Show how many questions there were, and what could not be read."""
    asked = sum(len(history.questions) for history in report.reader.by_key.values())
    if not report.suggestions:
        tty.say(
            f"no suggestion from {asked} questions: it takes {MIN_APPROVED} approvals of similar"
            " calls, and no rule may allow a call that was denied or refused"
        )
    elif len(report.suggestions) > 1:
        left = asked - sum(one.answered for one in report.suggestions)
        tty.say(f"all together: {asked} questions would have been {left}")
    for why, number in report.reader.unread().items():
        tty.say(f"{number} questions {_WHY_UNREAD[why]}")
    if report.reader.secret:
        tty.say(f"{report.reader.secret} calls are left out: an argument looks like a secret")


def fields_of(report: SuggestionReport) -> Json:
    """Return a report for JSON."""
    unread = report.reader.unread()
    return {
        "suggestions": [
            {
                "id": one.id,
                "server": one.rule.servers[0],
                "tool": one.rule.tools[0],
                "instead_of": list(one.rule.instead_of),
                "rule": "\n".join(rule_lines(one)),
                "cases": "\n".join(case_lines(one)),
                "questions": one.asked,
                "answered": one.answered,
                "denied": one.denied,
            }
            for one in report.suggestions
        ],
        "not_read": {why.value: unread[why] for why in UnreadableParams},
        "left_out_as_secret": report.reader.secret,
    }
