"""Offer of an approval rule: the arguments that may differ, with a pattern for each."""

import json
import re

import msgspec

from mcpwrap.core.approval import approval_rule
from mcpwrap.core.approval.approval_rule import (
    ANY,
    MAX_GLOB_CHARS,
    FixedArguments,
    RuleRequest,
    TickedArgument,
    UnsavableRuleError,
    arguments_of,
    may_be,
    why_fixed,
)
from mcpwrap.core.approval.document import Question, document
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.methods import TOOLS_CALL
from mcpwrap.core.text import globs
from mcpwrap.core.text.sanitise import one_line

_ORIGIN = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://[^/?#\s*]+)([/?#].*)?", re.DOTALL)
_WORD = "x"  # a pattern that is not `*`


class OfferedArgument(msgspec.Struct, frozen=True):
    """Argument of the approved call, and how it may differ in later ones."""

    name: str
    value: str  # on one line
    glob: str  # proposed; "" if a person has to write one
    why_fixed: str  # "" if it may differ
    needs_pattern: bool  # a rule of the policy is about it, so it must not have any value


def why_unsavable(question: Question) -> str:
    """Return why a call cannot be approved as a rule; "" if it can."""
    if question.method != TOOLS_CALL:
        return "only calls of tools can be approved by a rule"
    if question.definition:
        return "the server has changed the tool since it first listed it, so no rule covers it"
    if len(document(question)) > approval_rule.MAX_DOCUMENT_BYTES:
        return f"the call is over {approval_rule.MAX_DOCUMENT_BYTES} bytes"
    return ""


def offered(question: Question, fixed: FixedArguments) -> list[OfferedArgument]:
    """Return the arguments of a call in one order, deciding ones not first: their places count."""
    found = []
    for name, value in sorted((arguments_of(question) or {}).items()):
        needs_pattern = bool(why_fixed(TickedArgument(name), fixed))
        glob = suggested_glob(value)
        found.append(
            OfferedArgument(
                name=name,
                value=one_line(json.dumps(value, ensure_ascii=False, sort_keys=True)),
                glob="" if needs_pattern and glob == ANY else glob,
                why_fixed=why_fixed(TickedArgument(name, _WORD), fixed),
                needs_pattern=needs_pattern,
            )
        )
    return found


def suggested_glob(value: Json) -> str:
    """Return a pattern of which a value is one: the same folder, or the same origin.

    A folder or origin with a wildcard has none: in a pattern it would not be the agent's text.
    """
    if not isinstance(value, str):
        return ANY
    if origin := _ORIGIN.fullmatch(value):
        folder = origin[1]
    elif "/" in value[1:]:
        folder = value.rpartition("/")[0]
    else:
        return ANY
    if globs.WILDCARDS & set(folder):
        return ANY
    glob = f"{folder}/*"
    return glob if len(glob) <= MAX_GLOB_CHARS and may_be(glob, value) else ANY


def check(request: RuleRequest, question: Question, fixed: FixedArguments) -> None:
    """Check that a call can be approved as this rule, and that the rule covers the call itself.

    Raises:
        UnsavableRuleError: it cannot.
    """
    if why := why_unsavable(question):
        raise UnsavableRuleError(why)
    arguments = arguments_of(question) or {}
    for one in request.ticked:
        if one.name not in arguments:
            raise UnsavableRuleError(f"the call has no argument {one.name!a}")
        if not may_be(one.glob, arguments[one.name]):
            raise UnsavableRuleError(f"{one.name!a} of this call is not like {one.glob!a}")
    approval_rule.check(request, fixed, document(question))
