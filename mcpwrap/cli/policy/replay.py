"""Replay of recorded requests against a policy (`mcpwrap policy replay`)."""

from collections.abc import Iterable

from mcpwrap.cli.audit import source
from mcpwrap.cli.common.output import ascii_json, print_json
from mcpwrap.core.audit.params import UnreadableParams, unsealing_box
from mcpwrap.core.audit.replay import Replay, ReplayGroup
from mcpwrap.core.audit.text_format import fields_of, line_of
from mcpwrap.core.policy.rules import Policy
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.text.sanitise import shown
from mcpwrap.errors import EXIT_OK
from mcpwrap.linux import tty
from mcpwrap.machine.logs import audit_files
from mcpwrap.machine.server_contexts import applied_contexts
from mcpwrap.plan import paths

_WHY_UNREAD = {
    UnreadableParams.HASHED: (
        'were recorded as a hash only and cannot be judged: set audit = "sealed"'
    ),
    UnreadableParams.SEALED: "have sealed params, which only root can open: run it with sudo",
    UnreadableParams.BROKEN: (
        "have sealed params that cannot be opened: run `sudo mcpwrap audit verify`"
    ),
}


def run_replay(policy: Policy, server: str, since: float, *, as_json: bool) -> int:
    """Exit status: 0, for any difference."""
    folder = source.SYSTEM
    files = audit_files.since(audit_files.session_files(folder), since)
    is_root = source.is_readable_as_root(folder)
    box = unsealing_box(source.keys_of(folder)) if is_root else None
    replay = Replay(policy, box, applied_contexts(paths.ACCESS_LIST))
    for file in files:
        for record in audit_files.records(file.path):
            if record.at >= since and server in {"", record.server}:
                replay.take(record)
    if as_json:
        print_json(_fields(replay))
    else:
        _print(replay)
    return EXIT_OK


def _print(replay: Replay) -> None:
    blocked, allowed = replay.blocked_by_rule.values(), replay.allowed_by_rule.values()
    for groups, what in ((blocked, "blocked"), (allowed, "allowed")):
        if groups:
            count = sum(group.count for group in groups)
            tty.say(f"{count} of {replay.judged} would now be {what}")
        for group in _by_count(groups):
            _print_group(group, "by" if what == "blocked" else "blocked until now by")
    if not blocked and not allowed:
        tty.say(f"{replay.judged} requests: no decision would change")
    for why, number in replay.unread.items():
        tty.say(f"{number} calls {_WHY_UNREAD[why]}")


def _print_group(group: ReplayGroup, by: str) -> None:
    rule = f"the rule {shown(group.rule)}" if group.rule else "the default"
    tty.say(f"  {by} {rule}: {group.count}")
    for record, params in group.examples:
        line = line_of(record, source.agent(record.uid))
        known = "" if params is None else f"  {shown(ascii_json(params))}"
        tty.say(f"    {line.before}  {line.after}{known}")


def _fields(replay: Replay) -> Json:
    return {
        "judged": replay.judged,
        "now_blocked": list(map(_group_fields, _by_count(replay.blocked_by_rule.values()))),
        "now_allowed": list(map(_group_fields, _by_count(replay.allowed_by_rule.values()))),
        "not_judged": {why.value: replay.unread[why] for why in UnreadableParams},
    }


def _group_fields(group: ReplayGroup) -> Json:
    examples: list[Json] = [
        fields_of(record, source.agent(record.uid), params) for record, params in group.examples
    ]
    return {"rule": group.rule, "count": group.count, "examples": examples}


def _by_count(groups: Iterable[ReplayGroup]) -> list[ReplayGroup]:
    return sorted(groups, key=lambda group: -group.count)
