"""File of an approval rule."""

import hashlib

import pytest

from mcpwrap.core.approval.rule_file import DamagedRuleError, decode, encode
from tests.unit.core.approval.questions import ITEM, call, rule

RULE = rule(call(ITEM), {"id": "*"})
GOOD = encode(RULE)


def with_digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode() + b"\n" + content


def test_there_and_back() -> None:
    assert decode(GOOD, RULE.id) == RULE


@pytest.mark.parametrize(
    ("content", "id_"),
    [
        (b"", RULE.id),
        (GOOD[:-1], RULE.id),
        (GOOD.replace(b"groceries", b"groceriex"), RULE.id),
        (GOOD.partition(b"\n")[2], RULE.id),
        (GOOD, "another"),
        (with_digest(b"{}"), RULE.id),
        (with_digest(b"\xff"), RULE.id),
    ],
)
def test_a_damaged_file_is_no_rule(content: bytes, id_: str) -> None:
    with pytest.raises(DamagedRuleError):
        decode(content, id_)
