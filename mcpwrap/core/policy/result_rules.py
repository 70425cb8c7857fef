"""Result rules of a policy: size limit, hidden characters, and redaction.

They protect against accidents. A server that intends to leak a token writes it another way.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from operator import is_not
from typing import Literal, assert_never

import msgspec
import re2
from msgspec.structs import replace

from mcpwrap.core.policy.decision import Decision, Judgement, ResultJudgement
from mcpwrap.core.policy.regex import Pattern, Patterns
from mcpwrap.core.policy.rules import ResultRule
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.text.globs import matches_any

# C0 but tab, newline and return; DEL; C1; and invisible characters, by which text is hidden from
# people and not from models: Default_Ignorable_Code_Point and format characters of Unicode, among
# them those that reverse text (CVE-2021-42574), tags, and selectors, of which each carries a byte.
# Joiners, and the selectors of text and emoji, stay where they join something.
_HIDDEN = re2.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x{9f}\x{ad}\x{34f}\x{600}-\x{605}\x{61c}\x{6dd}\x{70f}"
    r"\x{8e2}\x{115f}\x{1160}\x{17b4}\x{17b5}\x{180b}-\x{180f}\x{200b}\x{200e}\x{200f}"
    r"\x{2028}-\x{202e}\x{2060}-\x{206f}\x{3164}\x{fe00}-\x{fe0d}\x{feff}\x{ffa0}"
    r"\x{fff0}-\x{fffb}\x{1bca0}-\x{1bca3}\x{1d173}-\x{1d17a}\x{e0000}-\x{e0fff}]+"
    r"|[\x{200c}\x{200d}\x{fe0e}\x{fe0f}]{3,}"
)
_MAX_KEYS = 1024  # cached, with whether they are redacted
_SHORT_CHARS = 32  # keys and words of every result: `content`, `type`, `text`
_MAX_SHORT = 1024  # cached as unchanged
_LOOSE = json.JSONDecoder(strict=False)  # accepts `NaN`, `Infinity` and control characters
CHANGED = " changed the result"
LEFT_OUT = " left out "
_WOULD_CHANGE = " would change the result"
_WOULD_LEAVE_OUT = " would leave out "


class ResultRefusedError(Exception):
    """Refusal of a result; its argument is the reason."""


Check = Callable[[Json], Json]


@dataclass(frozen=True, slots=True)
class CompiledResultRule:
    """Rule and its checks, in order: each returns the same object if it changes nothing."""

    rule: ResultRule
    checks: tuple[Check, ...]
    texts: tuple[Check, ...]  # those for descriptions and instructions
    changes: tuple[Check, ...]  # the same, but they change what those refuse


def compiled(rule: ResultRule) -> CompiledResultRule:
    """Return the rule ready for use."""
    control = _control_checks(rule.control_characters)
    sizes = () if rule.max_bytes is None else (_size_check(rule.max_bytes),)
    redacted = (_Redaction(rule).changed,) if rule.redact_keys or rule.redact else ()
    # In a schema a key is the name of an argument, and the value there is not the argument's.
    texts = redacted
    if rule.redact_keys:
        texts = (_Redaction(replace(rule, redact_keys=())).changed,) if rule.redact else ()
    removed = _control_checks("remove") if control else ()
    return CompiledResultRule(
        rule, (*sizes, *control, *redacted), (*control, *texts), (*removed, *texts)
    )


def _control_checks(mode: Literal["remove", "block"] | None) -> tuple[Check, ...]:
    match mode:
        case None:
            return ()
        case "remove":
            return (_Strings(_without_hidden).changed,)
        case "block":
            return (_Strings(_refused_if_hidden).changed,)
        case _:
            assert_never(mode)


def judge_result(rules: tuple[CompiledResultRule, ...], value: Json) -> ResultJudgement:
    """Apply all rules for a result to it."""
    notes = []
    for compiled_rule in rules:
        name = compiled_rule.rule.name
        try:
            for check in compiled_rule.checks:
                before, value = value, check(value)
                if value is not before:
                    notes.append(f"{name}{CHANGED}")
        except ResultRefusedError as refused:
            refusal = Judgement(Decision.BLOCK, name, str(refused))
            return ResultJudgement(value, refusal, tuple(notes))
        except (RecursionError, UnicodeEncodeError):
            refusal = Judgement(Decision.BLOCK, name, "the result cannot be judged")
            return ResultJudgement(value, refusal, tuple(notes))
    return ResultJudgement(value, None, tuple(notes))


def observed(judgement: ResultJudgement, value: Json) -> ResultJudgement:
    """Return the judgement of a result for a server in `observe`: all is noted, nothing is done."""
    notes = tuple(map(_observed_note, judgement.notes))
    if judgement.refusal:
        notes += (f"{judgement.refusal.rule} would block the result",)
    return ResultJudgement(value, None, notes)


def _observed_note(note: str) -> str:
    rule, _, _ = note.partition(" ")  # no rule's name has one
    if note == rule + CHANGED:
        return rule + _WOULD_CHANGE
    return note.replace(LEFT_OUT, _WOULD_LEAVE_OUT, 1)


def _size_check(max_bytes: int) -> Check:
    def check(value: Json) -> Json:
        if len(msgspec.json.encode(value)) > max_bytes:
            raise ResultRefusedError(f"the result is over {max_bytes} bytes")
        return value

    return check


def _without_hidden(text: str) -> str:
    # Python calls some texts printable that are not ASCII and have selectors.
    if text.isascii() and text.isprintable():
        return text
    cleaned: str = _HIDDEN.sub("", text)
    return text if len(cleaned) == len(text) else cleaned


def _refused_if_hidden(text: str) -> str:
    if _without_hidden(text) is not text:
        raise ResultRefusedError("the result has invisible characters")
    return text


class _Strings:
    """Mapping over all strings of a value, keys too; an unchanged value stays the same object."""

    def __init__(self, change: Callable[[str], str]) -> None:
        self._change = change
        self._unchanged: set[str] = set()

    def changed(self, value: Json) -> Json:
        """Return the value with its strings changed.

        Raises:
            ResultRefusedError: two keys of an object would become one.
        """
        if isinstance(value, str):
            return self._changed_text(value)
        if isinstance(value, list):
            elements = [self.changed(element) for element in value]
            return elements if any(map(is_not, elements, value)) else value
        if isinstance(value, dict):
            return self._changed_object(value)
        return value

    def _changed_object(self, before: dict[str, Json]) -> Json:
        after: dict[str, Json] = {}
        is_same = True
        for key, value in before.items():
            new_key = key if key in self._unchanged else self._changed_text(key)
            new_value = self._of_key(key, value)
            is_same = is_same and new_key is key and new_value is value
            after[new_key] = new_value
        if len(after) != len(before):
            raise ResultRefusedError("two keys of the result would become one")
        return before if is_same else after

    def _changed_text(self, text: str) -> str:
        """Return a text changed; short texts that need no change are cached."""
        if len(text) > _SHORT_CHARS:
            return self._change(text)
        if text in self._unchanged:
            return text
        changed = self._change(text)
        if changed is text:
            if len(self._unchanged) >= _MAX_SHORT:
                self._unchanged.clear()
            self._unchanged.add(text)
        return changed

    def _of_key(self, key: str, value: Json) -> Json:
        return self.changed(value)


def _may_be_json(text: str) -> bool:
    return text[:64].lstrip().startswith(("{", "["))


def _written_loosely(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class _Redaction(_Strings):
    """Redaction of values by their keys, and of text by patterns."""

    def __init__(self, rule: ResultRule) -> None:
        super().__init__(self._redacted)
        self._marker = f"[redacted by {rule.name}]"
        self._globs = tuple(glob.lower() for glob in rule.redact_keys)
        self._is_named: dict[str, bool] = {}
        self._patterns = Patterns(rule.redact)
        self._each = tuple(map(Pattern, rule.redact))

    def _of_key(self, key: str, value: Json) -> Json:
        if self._globs and self._is_redacted(key):
            return value if value == self._marker else self._marker
        return self.changed(value)

    def _redacted(self, text: str) -> str:
        if self._globs:
            if _may_be_json(text):
                text = self._redacted_within(text)
            elif "\n{" in text or "\n[" in text:
                text = self._redacted_lines(text)
        for number in sorted(self._patterns.found_in(text)):
            text = self._each[number].replaced(text, self._marker)
        return text

    def _redacted_within(self, text: str) -> str:
        """Redact the named values in a text that is JSON itself, and encode it again.

        A text repeats the structured content (2025-06-18, tools, "Structured Content").
        """
        try:
            inner: Json = msgspec.json.decode(text)
        except msgspec.MsgspecError:
            return self._redacted_loosely(text)
        except RecursionError:
            return text
        changed = self.changed(inner)
        return text if changed is inner else msgspec.json.encode(changed).decode()

    def _redacted_loosely(self, text: str) -> str:
        """Redact text that is JSON to many parsers, with `NaN` or a raw newline; else its lines."""
        try:
            inner: Json = _LOOSE.decode(text)
        except RecursionError:
            return text
        except ValueError:
            return self._redacted_lines(text) if "\n" in text else text
        try:
            changed = self.changed(inner)
        except UnicodeEncodeError:  # `\ud83d` alone, as in a truncated text
            return text
        return text if changed is inner else _written_loosely(changed)

    def _redacted_lines(self, text: str) -> str:
        """Redact each line of a text that is JSON, as in logs."""
        lines = text.split("\n")
        after = [self._redacted_within(line) if _may_be_json(line) else line for line in lines]
        return "\n".join(after) if any(map(is_not, after, lines)) else text

    def _is_redacted(self, key: str) -> bool:
        known = self._is_named.get(key)
        if known is None:
            if len(self._is_named) >= _MAX_KEYS:
                self._is_named.clear()
            known = self._is_named[key] = matches_any(self._globs, key.lower())
        return known
