"""Result rules applied to lists of tools, prompts and resources, and to server instructions.

Agents put these texts before their model. Only `control_characters` and `redact` apply: the keys
are those of schemas, and a list that is refused for its size would make the server unusable.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import is_not

from mcpwrap.core.policy.decision import ResultJudgement
from mcpwrap.core.policy.result_rules import (
    CHANGED,
    LEFT_OUT,
    Check,
    CompiledResultRule,
    ResultRefusedError,
)
from mcpwrap.core.protocol import methods
from mcpwrap.core.protocol.case_variants import has_case_variant_in_result
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.text.sanitise import shown

Rules = tuple[CompiledResultRule, ...]
Checks = Sequence[tuple[str, tuple[Check, ...]]]  # by rule name
# The key of each list, and the keys by which an agent names an entry of it.
_LISTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    methods.TOOLS_LIST: ("tools", ("name",)),
    methods.PROMPTS_LIST: ("prompts", ("name",)),
    "resources/list": ("resources", ("uri",)),
    "resources/templates/list": ("resourceTemplates", ("uriTemplate",)),
    "resources/directory/read": ("resources", ("uri",)),
    "skills/list": ("skills", ("name", "uri")),
    "tasks/list": ("tasks", ("taskId",)),
}
# Values that are sent back byte for byte, or on which the session depends.
_KEPT = frozenset(
    {
        "protocolVersion", "supportedVersions", "capabilities",
        "nextCursor", "requestState", "inputRequests",
    }
)  # fmt: skip
_REQUIRED = "serverInfo"  # without it clients end the session, so it may be changed, not left out
_MAX_NAMED = 10  # entries that a note names
_NO_LIST = "", ("",)


def judge_description(
    rules: Rules, rules_of: Callable[[str], Rules], method: str, value: dict[str, Json]
) -> ResultJudgement:
    """Apply `rules` to a result, and to each entry of its list the `rules_of` its name."""
    list_key, ids = _LISTS.get(method, _NO_LIST)
    judging = _Judging()
    after: dict[str, Json] = {}
    for key, part in value.items():
        if key in _KEPT:
            after[key] = part
        elif key == list_key and isinstance(part, list):
            after[key] = _judge_entries(judging, part, ids, rules_of)
        else:
            whole: dict[str, Json] = {"": part}  # the key itself is not judged
            checks = _always if key == _REQUIRED else _texts
            judged = judging.judge(checks(rules), whole, key)
            after |= {} if judged is None else {key: judged[""]}
    is_same = len(after) == len(value) and not any(map(is_not, after.values(), value.values()))
    return ResultJudgement(value if is_same else after, None, judging.notes())


def _judge_entries(
    judging: "_Judging", entries: list[Json], ids: tuple[str, ...], rules_of: Callable[[str], Rules]
) -> list[Json]:
    """Return the entries that stay, changed or not; the same list if all are unchanged."""
    after: list[Json] = []
    for entry in entries:
        if not isinstance(entry, dict):  # no agent can use it
            after.append(entry)
            continue
        name = entry.get(ids[0])
        name = name if isinstance(name, str) else ""
        judged = judging.judge(_texts(rules_of(name)), entry, name, ids)
        if judged is not None:
            after.append(judged)
    is_same = len(after) == len(entries) and not any(map(is_not, after, entries))
    return entries if is_same else after


def _texts(rules: Rules) -> Checks:
    return [(one.rule.name, one.texts) for one in rules]


def _always(rules: Rules) -> Checks:
    return [(one.rule.name, one.changes) for one in rules]


class _Judging:
    """Application of rules to the parts of one result, with notes on the changes."""

    def __init__(self) -> None:
        self._changed_by: dict[str, None] = {}
        self._left_out_by: dict[str, list[str]] = {}

    def judge(
        self, rules: Checks, part: dict[str, Json], name: str, ids: tuple[str, ...] = ()
    ) -> dict[str, Json] | None:
        """Return a part after the rules; None if it is left out."""
        for rule, checks in rules:
            after = _checked(checks, part)
            if after is part:
                continue
            if after is None or has_case_variant_in_result(after) or _differ(part, after, ids):
                self._left_out_by.setdefault(rule, []).append(name)
                return None
            self._changed_by[rule] = None
            part = after
        return part

    def notes(self) -> tuple[str, ...]:
        """Return a note for each rule that changed or left out something."""
        left_out = (
            rule + LEFT_OUT + ", ".join(map(shown, names[:_MAX_NAMED])) + _more(names)
            for rule, names in self._left_out_by.items()
        )
        return (*(rule + CHANGED for rule in self._changed_by), *left_out)


def _more(names: list[str]) -> str:
    return f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""


def _checked(checks: tuple[Check, ...], part: dict[str, Json]) -> dict[str, Json] | None:
    after: Json = part
    try:
        for check in checks:
            after = check(after)
    except (ResultRefusedError, RecursionError, UnicodeEncodeError):
        return None
    return after if isinstance(after, dict) else None


def _differ(before: dict[str, Json], after: dict[str, Json], keys: tuple[str, ...]) -> bool:
    return any(before.get(key) != after.get(key) for key in keys)
